"""The places of the largest and of the smallest elements along an axis.

Source: TensorFlow core/ops/math_ops.cc, core/kernels/argmax_op.cc.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import opkernel.gradients as g
from opkernel.errors import InvalidArgumentError
from opkernel.opdef import InferenceContext, OpHandle, register_op
from opkernel.ops.input_checks import require_scalar
from opkernel.ops.kernel_types import INDEX, REAL_NUMBERS
from opkernel.ops.registration import register_kernel
from opkernel.types import DataType

_MAX_RANK = 7
_ATTR_TYPES = "realnumbertype, quantizedtype, bool"
_TYPES = (*REAL_NUMBERS, DataType.DT_BOOL)


def arg_shape(c: InferenceContext) -> None:
    """Input 0 without the axis that input 1 holds."""
    c.with_rank(c.input(1), 0)
    shape = c.input(0)
    if not c.rank_known(shape):
        c.set_output(0, c.unknown_shape())
        return
    rank = c.rank(shape)
    if rank <= 1:
        c.set_output(0, c.scalar())
        return
    dimension = c.input_tensor(1)
    if dimension is None:
        c.set_output(0, c.unknown_shape_of_rank(rank - 1))
        return
    axis = int(dimension)
    if not -rank <= axis < rank:
        raise InvalidArgumentError(
            f"Dimension ({axis}) must be in the range [{-rank}, {rank}), where {rank} is the "
            "number of dimensions in the input."
        )
    axis %= rank
    c.set_output(0, c.concatenate(c.subshape(shape, 0, axis), c.subshape(shape, axis + 1)))


def _declare(name: str, which: str, index_types: str, output_types: str) -> OpHandle:
    return register_op(
        name,
        inputs=["input: T", "dimension: Tidx"],
        outputs=["output: output_type"],
        attrs=[
            f"T: {{{_ATTR_TYPES}}}",
            f"Tidx: {{{index_types}}} = DT_INT32",
            f"output_type: {{{output_types}}} = DT_INT64",
        ],
        shape_fn=arg_shape,
        doc=f"The index of the first of the {which} elements of `input` along the axis `dimension`.",
    )


ARG_MAX = _declare("ArgMax", "largest", "int16, int32, int64", "int16, uint16, int32, int64")
ARG_MIN = _declare("ArgMin", "smallest", "int32, int64", "int32, int64")


def _axis(input: Any, dimension: Any) -> int:
    """The axis, after TensorFlow's checks."""
    require_scalar(dimension, "dim must be a scalar, but received tensor of shape: {}")
    axis, rank = int(dimension), input.ndim
    if not -rank <= axis < rank:
        raise InvalidArgumentError(
            f"Expected dimension in the range [{-rank}, {rank}), but got {axis}"
        )
    if input.shape[axis] == 0:
        raise InvalidArgumentError(
            f"Reduction axis {axis % rank} is empty in shape {list(input.shape)}"
        )
    if rank > _MAX_RANK:
        raise InvalidArgumentError(
            f"Argmax and Argmin only support up to {_MAX_RANK} input dimensions, but got {rank}. "
            f"Inputs shape: {list(input.shape)}"
        )
    return axis


def _search(
    largest: bool, T: DataType, output_type: DataType, xp: Any
) -> Callable[[Any, Any], Any]:
    """The function of the inputs.

    Eigen starts at index 0 with the worst finite number, and moves on only to better numbers. So NaNs are
    passed over, and the index is 0 where nothing is better.
    """
    find = xp.argmax if largest else xp.argmin
    worst = T.numpy_dtype.type(T.min if largest else T.max) if T.is_floating else None

    def found(input: Any, dimension: Any) -> Any:
        axis = _axis(input, dimension)
        if worst is not None:
            input = xp.where((input > worst) if largest else (input < worst), input, worst)
        return find(input, axis=axis).astype(output_type.numpy_dtype)

    return found


@register_kernel(
    ARG_MAX,
    types={"T": _TYPES, "output_type": (DataType.DT_INT16, DataType.DT_UINT16, *INDEX)},
    host_memory=["dimension"],
    factory=True,
)
def arg_max(*, T: DataType, output_type: DataType, xp: Any) -> Callable[[Any, Any], Any]:
    return _search(True, T, output_type, xp)


@register_kernel(
    ARG_MIN, types={"T": _TYPES, "output_type": INDEX}, host_memory=["dimension"], factory=True
)
def arg_min(*, T: DataType, output_type: DataType, xp: Any) -> Callable[[Any, Any], Any]:
    return _search(False, T, output_type, xp)


@g.register_gradient("ArgMax", "ArgMin")
def arg_gradient(op: g.Operation, grad: g.Tensor) -> g.Gradients:
    return None, None
