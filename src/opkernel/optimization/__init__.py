"""Optimisation: passes that edit a graph so that it computes the same with less work."""

from opkernel.lazy_exports import lazy_exports

__getattr__, __dir__, __all__ = lazy_exports(__name__)
