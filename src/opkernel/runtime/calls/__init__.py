"""Calls of functions: instantiated functions, their runs within steps, traced functions. Loaded at need."""

from opkernel.lazy_exports import lazy_exports

__getattr__, __dir__, __all__ = lazy_exports(__name__)
