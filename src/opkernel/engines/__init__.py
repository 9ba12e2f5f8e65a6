"""Engines: what compiles parts of graphs. Each that works with a library of others stands in a package of its own."""

from opkernel.lazy_exports import lazy_exports

__getattr__, __dir__, __all__ = lazy_exports(__name__)
