"""Kernel libraries: packages and folders with ops and kernels, which are found when needed.

Source: TensorFlow load_op_library, load_library.
"""

from opkernel.lazy_exports import lazy_exports

__getattr__, __dir__, __all__ = lazy_exports(__name__)
