"""The kernels of products of two matrices."""

import numpy as np

from opkernel.ops.math.matmul import register_matmul
from opkernel.ops.nn.fused_matmul import Fusion, register_fused_matmul
from opkernel.providers.blas import BLAS
from opkernel.providers.blas.epilogue import activate
from opkernel.providers.blas.products import SMALL_PRODUCT, product, small_product
from opkernel.types import Array


def _small_fused(a: Array, b: Array, bias: Array, fusion: Fusion) -> Array | None:
    """A small product with its bias and activation, in half the time; None of all others."""
    if not a.ndim == b.ndim == 2 or bias.ndim != 1:
        return None
    (rows, terms), (inner, columns) = a.shape, b.shape
    count = rows * terms * columns
    if terms != inner or bias.shape[0] != columns or not 0 < count <= SMALL_PRODUCT:
        return None
    result = small_product(a, b, count)
    row = result[0] if rows == 1 else result  # broadcasting would take longer than adding
    np.add(row, bias, row)
    activate(result, fusion.activation, fusion.alpha)
    return result


register_matmul(product, BLAS.kernels, prepares=("b",))
register_fused_matmul(product, _small_fused, BLAS.kernels, prepares=("b",))
