"""Ops on lists of tensors, which are values: an op that changes a list returns a new one."""
