"""Ops: their declarations, their registry, their nodes, and the shapes of their outputs."""

from opkernel.lazy_exports import lazy_exports

__getattr__, __dir__, __all__ = lazy_exports(__name__)
