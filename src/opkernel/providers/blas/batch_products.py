"""The kernels of products of batches of matrices."""

from opkernel.ops.math.einsum import register_einsum
from opkernel.ops.math.products import register_batch_matmul
from opkernel.providers.blas import BLAS
from opkernel.providers.blas.products import batch_product

register_batch_matmul(batch_product, BLAS.kernels)
register_einsum(batch_product, BLAS.kernels)
