"""For authors of ops and kernels: run one op, compare tensors, test kernels on drawn calls.

Source: TensorFlow framework/ops_testutil.
"""

from opkernel.lazy_exports import lazy_exports

__getattr__, __dir__, __all__ = lazy_exports(__name__)
