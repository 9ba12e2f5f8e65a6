"""The convolutions: of images and volumes, of each channel by itself, fused, and their gradients."""
