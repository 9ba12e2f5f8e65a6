"""Convolutions: as matrix products, by several algorithms, and of each channel by itself."""
