"""`blas`: faster forms of matrix products and of what can be computed as matrix products.

Products are cut into parts for several threads, and into such sizes as NumPy's BLAS is best at (`products`,
`small_kernels`); weights that stay are stored in the order that products read them in (`panels`). A
convolution is computed by the first of several algorithms that pays for its sizes (`convolutions`).
"""

from typing import Any

from opkernel.kernel import KernelProvider

__all__ = ["BLAS"]

_MODULES = {
    f"{__name__}.matrix_products": ("MatMul", "SparseMatMul", "_FusedMatMul"),
    f"{__name__}.batch_products": ("BatchMatMul", "Einsum"),
    f"{__name__}.convolutions": (
        "Conv",
        "Depthwise",
        "FusedPadConv",
        "_FusedConv",
        "_FusedDepthwise",
    ),
}


class _Blas(KernelProvider):
    """Kernels on top of NumPy's matrix products."""

    def prepare(self, input: Any, value: Any, version: int) -> Any:
        """A weight in another form: `input` is the function that makes it, and what this takes beside."""
        make, *sizes = input
        return make(value, *sizes)


BLAS = _Blas("blas", priority=10, modules=_MODULES)
