"""Kernels: their registration, their construction, their computation.

Source: TensorFlow framework/op_kernel, kernel_def_builder, cancellation, rendezvous.
"""

from opkernel.lazy_exports import lazy_exports

__getattr__, __dir__, __all__ = lazy_exports(__name__)
