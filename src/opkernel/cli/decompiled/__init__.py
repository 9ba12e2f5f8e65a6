"""Models as programs of Python: `opkernel decompile`."""

from opkernel.cli.decompiled.program import Program, decompile

__all__ = ["Program", "decompile"]
