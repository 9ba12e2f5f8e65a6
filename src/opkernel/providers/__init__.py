"""The kernel providers that come with opkernel, beside the reference kernels of `opkernel.ops`.

Importing this room registers them; their kernels are loaded when a node first needs one.
"""

from opkernel.kernel import register_provider
from opkernel.providers.blas import BLAS

__all__ = ["BLAS"]

register_provider(BLAS)
