"""The `opkernel` command."""
