"""A kernel provider of 60 lines: matrix products, some columns at a time."""

from collections.abc import Callable, Hashable, Sequence
from typing import Any

import numpy as np

from opkernel.errors import InvalidArgumentError
from opkernel.kernel import (
    KernelContract,
    KernelProvider,
    NodeProperties,
    allocate,
    register_kernel,
    register_provider,
)
from opkernel.types import DataType, PartialTensorShape, as_dtype

Array = np.ndarray[Any, Any]
Blocks = list[tuple[slice, Array]]

WIDTH = 64
FLOATS = [DataType.DT_FLOAT, DataType.DT_DOUBLE]


class Blocked(KernelProvider):
    """MatMul of float and double."""

    def supports(self, node: NodeProperties, shapes: Sequence[PartialTensorShape]) -> bool:
        """Not of what is known to be a row: there is nothing to be gained."""
        return shapes[0].rank != 2 or shapes[0].as_list()[0] != 1

    def prepare(self, input: Hashable, value: Any, version: int) -> Blocks:
        """The columns of a matrix in blocks, each by itself in memory."""
        return blocks_of(value)


BLOCKED = register_provider(Blocked("blocked", priority=5))


def blocks_of(matrix: Array) -> Blocks:
    """Copies of some columns at a time, and which they are."""
    pieces = [slice(at, at + WIDTH) for at in range(0, matrix.shape[1], WIDTH)]
    return [(piece, np.array(matrix[:, piece], order="C")) for piece in pieces]


@register_kernel(
    "MatMul",
    device="CPU",
    types={"T": FLOATS},
    contract=KernelContract(outputs_as_declared=True, prepares=("b",)),
    factory=True,
    registry=BLOCKED.kernels,
)
def matmul(*, transpose_a: bool, transpose_b: bool) -> Callable[[Array, Array], Array]:
    def product(a: Array, b: Array) -> Array:
        if a.ndim != 2 or b.ndim != 2:
            raise InvalidArgumentError(f"matrices are wanted, not ranks {a.ndim} and {b.ndim}")
        blocks: Blocks | None = None if transpose_b else BLOCKED.prepared("b", b)
        a, b = a.T if transpose_a else a, b.T if transpose_b else b
        if a.shape[1] != b.shape[0]:
            raise InvalidArgumentError(f"shapes {a.shape} and {b.shape} do not fit")
        out = allocate((a.shape[0], b.shape[1]), as_dtype(a.dtype))
        for columns, block in blocks or blocks_of(b):
            np.matmul(a, block, out=out[:, columns])
        return out

    return product
