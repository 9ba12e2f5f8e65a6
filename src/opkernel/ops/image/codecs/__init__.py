"""Image files: JPEG, PNG, GIF, BMP and WebP."""
