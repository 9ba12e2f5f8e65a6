"""`blas`: faster forms of matrix products and of what can be computed as matrix products.

Products are cut into parts for several threads, and into such sizes as NumPy's BLAS is best at (`products`,
`small_kernels`); weights that stay are stored in the order that products read them in (`panels`). A
convolution is computed by the first of several algorithms that pays for its sizes (`convolutions`).
"""

import importlib
from typing import Any

from opkernel.kernel import KernelProvider

__all__ = ["BLAS"]

_MODULES = {
    "matrix_products": ("MatMul", "SparseMatMul", "_FusedMatMul"),
    "batch_products": ("BatchMatMul", "Einsum"),
    "convolutions": ("Conv", "Depthwise", "FusedPadConv", "_FusedConv", "_FusedDepthwise"),
}
"""The modules with kernels, and the beginnings of their ops' names."""


class _Blas(KernelProvider):
    """Kernels on top of NumPy's matrix products."""

    def __init__(self) -> None:
        super().__init__("blas", priority=10)
        self.kernels.set_loader(_load)

    def prepare(self, input: Any, value: Any, version: int) -> Any:
        """A weight in another form: `input` is the function that makes it, and what this takes beside."""
        make, *sizes = input
        return make(value, *sizes)


def _load(op: str) -> None:
    """Import the module that has the kernels of an op, if there is one."""
    for module, beginnings in _MODULES.items():
        if op.startswith(beginnings):
            importlib.import_module(f"{__name__}.{module}")


BLAS = _Blas()
