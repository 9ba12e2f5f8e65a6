"""What an op is: its declaration, its registry, the nodes that use it and the shapes it gives."""

from opkernel.lazy_exports import lazy_exports

__getattr__, __dir__, __all__ = lazy_exports(__name__)
