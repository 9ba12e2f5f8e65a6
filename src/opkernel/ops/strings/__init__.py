"""Ops on tensors of strings, which are object arrays of bytes."""
