"""Checkpoints of TensorFlow, read and written: V2 (TensorBundle) and V1, state files, object graphs.

Source: TensorFlow core/util/tensor_bundle, tensor_slice_reader, python/checkpoint.
"""

from opkernel.lazy_exports import lazy_exports

__getattr__, __dir__, __all__ = lazy_exports(__name__)
