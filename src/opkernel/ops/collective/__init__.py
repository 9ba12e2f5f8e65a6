"""What groups of devices compute together."""
