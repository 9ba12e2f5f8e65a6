"""Ops of the topic: linear algebra of stacks of matrices."""
