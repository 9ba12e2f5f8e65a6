"""Training: variables, modules, gradients with respect to them, optimisers."""

from opkernel.lazy_exports import lazy_exports

__getattr__, __dir__, __all__ = lazy_exports(__name__)
