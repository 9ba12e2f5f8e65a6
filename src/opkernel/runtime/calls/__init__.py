"""Calls of functions: instantiated, run as parts of steps, traced; loaded where there are any."""

from opkernel.lazy_exports import lazy_exports

__getattr__, __dir__, __all__ = lazy_exports(__name__)
