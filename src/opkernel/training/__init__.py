"""Training: variables, modules, gradients with respect to them, optimisers.

Source: TensorFlow python/ops/resource_variable_ops, lookup_ops, python/module, python/training.
"""

from opkernel.lazy_exports import lazy_exports

__getattr__, __dir__, __all__ = lazy_exports(__name__)
