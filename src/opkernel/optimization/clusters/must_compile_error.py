"""MustCompileError: a node that must be compiled cannot be."""

from opkernel.errors import InvalidArgumentError

__all__ = ["MustCompileError"]


class MustCompileError(InvalidArgumentError):
    """A node is marked as one that must be compiled, and the compiler refuses it."""
