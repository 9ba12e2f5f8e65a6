"""What ops of stacks of matrices share: shapes, checks of inputs, products of small blocks.

Functions of LAPACK on stacks of matrices: some matrices at a time where a deadline holds.

Source: TensorFlow core/ops/linalg_ops.cc, core/kernels/linalg/linalg_ops_common.cc.
"""

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from opkernel.device.budget import current_budget
from opkernel.device.work_clock import LOOK_AFTER, SLOW, check_seconds, in_time
from opkernel.errors import InvalidArgumentError
from opkernel.opdef import DimensionHandle, InferenceContext, ShapeHandle
from opkernel.opdef.common_shapes.rules import shape_rule
from opkernel.ops.input_checks import require_equal, require_rank_at_least
from opkernel.ops.registration import COMPLEX, WIDE_FLOATS

NUMBERS = (*WIDE_FLOATS, *COMPLEX)
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


def square_matrices(c: InferenceContext) -> tuple[ShapeHandle, DimensionHandle]:
    """The leading dimensions and the size of the matrices of input 0; refused if not square."""
    batch, rows, columns = matrices(c, 0)
    return batch, c.merge(rows, columns)


square_shape = shape_rule("[..., n, n] -> [..., n, n]")


def check_stacks(*tensors: Any) -> None:
    """Refuse what are no stacks of matrices, each of as many matrices as the first.

    Raises:
        InvalidArgumentError: ranks are below 2 or differ, or the leading dimensions differ.
    """
    for number, tensor in enumerate(tensors):
        require_rank_at_least(
            tensor, 2, f"Input tensor {number} must have rank >= 2, got {tensor.ndim}"
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
    require_equal(tensor.shape[-1], tensor.shape[-2], f"{what} must be square.")


def adjoint(tensor: Any) -> Any:
    """The conjugates of the transposed matrices: a view where the numbers are real."""
    return np.conj(tensor.swapaxes(-1, -2))


_OF_CALL = 1 << 11
"""The work of a function of LAPACK on the smallest of matrices, in nanoseconds."""


def of_stack(function: Callable[[Any], Any], stack: Any, cost: float, doing: str) -> Any:
    """What a function gives for a stack of matrices `[..., m, n]`, in one array or several.

    Nothing interrupts LAPACK. So a matrix that is sure to take longer than there is time is not begun.

    Args:
        function: The function of a stack.
        stack: The matrices.
        cost: The least nanoseconds of the function, for each element and each of the smaller size.
        doing: The work, for the error: "decomposing matrices".

    Raises:
        DeadlineExceededError: no time is left, or not enough for a matrix.
    """
    budget = current_budget()
    if budget is None or budget.deadline is None:
        return function(stack)
    seconds = seconds_of(stack, cost)
    check_seconds(seconds, doing)
    batch, count = stack.shape[:-2], math.prod(stack.shape[:-2])
    step = max(int(LOOK_AFTER / (_OF_CALL + seconds * 1e9)), 1)
    if step >= count:
        return function(stack)
    flat = stack.reshape(count, *stack.shape[-2:])
    starts = in_time(range(0, count, step), SLOW, doing)
    parts = [function(flat[start : start + step]) for start in starts]
    if not isinstance(parts[0], tuple):
        return _joined(parts, batch)
    return tuple([_joined(some, batch) for some in zip(*parts, strict=True)])


def _joined(parts: Any, batch: tuple[int, ...]) -> Any:
    whole = np.concatenate(parts)
    return whole.reshape(*batch, *whole.shape[1:])


def seconds_of(stack: Any, cost: float) -> float:
    """The least seconds that a function takes for one matrix of a stack."""
    rows, columns = stack.shape[-2:]
    parts = 2 if stack.dtype.kind == "c" else 1
    return float(parts * cost * rows * columns * min(rows, columns) * 1e-9)
