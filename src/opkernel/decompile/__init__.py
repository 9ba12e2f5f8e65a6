"""Models as programs of Python: `opkernel decompile`."""

from opkernel.decompile.program import Program, decompile

__all__ = ["Program", "decompile"]
