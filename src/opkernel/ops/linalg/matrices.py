"""What ops of stacks of matrices share: shapes, checks of inputs, products of small blocks.

Source: TensorFlow core/ops/linalg_ops.cc, core/kernels/linalg/linalg_ops_common.cc.
"""

from typing import Any, NamedTuple

import numpy as np

from opkernel.errors import InvalidArgumentError
from opkernel.opdef import DimensionHandle, InferenceContext, ShapeHandle
from opkernel.types import DataType

__all__ = [
    "NUMBERS",
    "T_SPEC",
    "Matrices",
    "adjoint",
    "check_square",
    "check_stacks",
    "matrices",
    "square_matrices",
    "square_shape",
]

NUMBERS = (
    DataType.DT_FLOAT,
    DataType.DT_DOUBLE,
    DataType.DT_COMPLEX64,
    DataType.DT_COMPLEX128,
)
"""The types that the kernels take."""
T_SPEC = "T: {double, float, half, complex64, complex128}"


class Matrices(NamedTuple):
    """The shape of a stack of matrices: [..., rows, columns]."""

    batch: ShapeHandle
    rows: DimensionHandle
    columns: DimensionHandle


def matrices(c: InferenceContext, index: int) -> Matrices:
    """The matrices of an input; refused if its rank is below 2."""
    shape = c.with_rank_at_least(c.input(index), 2)
    return Matrices(c.subshape(shape, 0, -2), c.dim(shape, -2), c.dim(shape, -1))


def square_matrices(c: InferenceContext, index: int = 0) -> tuple[ShapeHandle, DimensionHandle]:
    """The leading dimensions and the size of the matrices of an input; refused if not square."""
    batch, rows, columns = matrices(c, index)
    return batch, c.merge(rows, columns)


def square_shape(c: InferenceContext) -> None:
    """[..., n, n] -> [..., n, n]."""
    batch, size = square_matrices(c)
    c.set_output(0, c.concatenate(batch, c.matrix(size, size)))


def check_stacks(*tensors: Any) -> None:
    """Refuse what are no stacks of matrices, each of as many matrices as the first.

    Raises:
        InvalidArgumentError: ranks are below 2 or differ, or the leading dimensions differ.
    """
    for number, tensor in enumerate(tensors):
        if tensor.ndim < 2:
            raise InvalidArgumentError(
                f"Input tensor {number} must have rank >= 2, got {tensor.ndim}"
            )
    if any(tensor.ndim != tensors[0].ndim for tensor in tensors):
        raise InvalidArgumentError("All input tensors must have the same rank.")
    if any(tensor.shape[:-2] != tensors[0].shape[:-2] for tensor in tensors):
        raise InvalidArgumentError("All input tensors must have the same outer dimensions.")


def check_square(tensor: Any, what: str = "Input matrix") -> None:
    """Refuse what is no stack of square matrices.

    Raises:
        InvalidArgumentError: it is none.
    """
    check_stacks(tensor)
    if tensor.shape[-1] != tensor.shape[-2]:
        raise InvalidArgumentError(f"{what} must be square.")


def adjoint(tensor: Any) -> Any:
    """The conjugates of the transposed matrices: a view where the numbers are real."""
    return np.conj(tensor.swapaxes(-1, -2))
