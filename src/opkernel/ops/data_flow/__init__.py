"""Ops that route tensors by data: partitions and stitches."""
