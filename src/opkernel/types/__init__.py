"""The types of tensors, their shapes, and their wire format.

Source: TensorFlow framework/types, tensor_shape, tensor.
"""

from opkernel.lazy_exports import lazy_exports

__getattr__, __dir__, __all__ = lazy_exports(__name__)
