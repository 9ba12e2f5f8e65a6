"""Ops from type hints: `@opkernel.op` declares an op, and registers its kernel, from one function."""

from opkernel.lazy_exports import lazy_exports

__getattr__, __dir__, __all__ = lazy_exports(__name__)
