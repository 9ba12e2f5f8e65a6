"""Engines, which compile parts of graphs: a package for each library that does the compiling."""

from opkernel.lazy_exports import lazy_exports

__getattr__, __dir__, __all__ = lazy_exports(__name__)
