"""Updates of a tensor at given indices: ScatterNd and the TensorScatter ops, and gradients.

The last dimension of `indices` holds index vectors; `updates` holds for each the slice of the
output that it names.

Source: TensorFlow core/ops/array_ops.cc, core/kernels/scatter_nd_op.cc.
"""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

import opkernel.gradients as g
from opkernel.errors import InvalidArgumentError
from opkernel.kernel import check_allocation
from opkernel.opdef import InferenceContext, OpHandle, register_op
from opkernel.opdef.common_shapes import scatter_nd_shape
from opkernel.ops.array.bad_indices import (
    BadIndicesPolicy,
    bad_index_error,
    find_bad_indices,
)
from opkernel.ops.array.fill import zeros
from opkernel.ops.input_checks import require_rank_at_least, require_vector
from opkernel.ops.kernel_types import INDEX, NUMBERS, POD, POD_OR_STRING, REAL_NUMBERS
from opkernel.ops.registration import register_kernel
from opkernel.types import DataType, TensorShape

_Shape = tuple[int, ...]
ScatterAt = Callable[[Any, Any, Any], None]
_MAX_INDEX_DEPTH = 7
_POLICY = "bad_indices_policy: string = ''"


def scatter_into_shape(c: InferenceContext) -> None:
    """The value of `shape`, with which indices and updates must agree."""
    indices, updates = (c.with_rank_at_least(c.input(i), 1) for i in (0, 1))
    scatter_nd_shape(c, indices, updates, c.make_shape_from_shape_tensor(2))


def tensor_scatter_shape(c: InferenceContext) -> None:
    """The shape of the tensor, with which indices and updates must agree."""
    tensor, indices = (c.with_rank_at_least(c.input(i), 1) for i in (0, 1))
    scatter_nd_shape(c, indices, c.input(2), tensor)


SCATTER_ND = register_op(
    "ScatterNd",
    inputs=["indices: Tindices", "updates: T", "shape: Tindices"],
    outputs=["output: T"],
    attrs=["T: type", "Tindices: {int16, int32, int64}", _POLICY],
    shape_fn=scatter_into_shape,
    doc="Zeros of `shape` to which `updates` are added at `indices`.",
    traits="cost=linear",
)


def _declare(name: str, index_types: str, doc: str) -> OpHandle:
    return register_op(
        name,
        inputs=["tensor: T", "indices: Tindices", "updates: T"],
        outputs=["output: T"],
        attrs=["T: type", f"Tindices: {{{index_types}}}", _POLICY],
        shape_fn=tensor_scatter_shape,
        traits="cost=linear",
        doc=doc,
    )


TENSOR_SCATTER_UPDATE = _declare(
    "TensorScatterUpdate",
    "int16, int32, int64, uint16",
    "`tensor` with `updates` at `indices`; of several for one place the last counts.",
)
TENSOR_SCATTER_ADD = _declare(
    "TensorScatterAdd", "int32, int64", "`tensor` plus `updates` at `indices`."
)
TENSOR_SCATTER_SUB = _declare(
    "TensorScatterSub", "int32, int64", "`tensor` minus `updates` at `indices`."
)
TENSOR_SCATTER_MAX = _declare(
    "TensorScatterMax", "int32, int64", "The larger of `tensor` and `updates` at `indices`."
)
TENSOR_SCATTER_MIN = _declare(
    "TensorScatterMin", "int32, int64", "The smaller of `tensor` and `updates` at `indices`."
)

SCATTER_ND_NON_ALIASING_ADD = register_op(
    "ScatterNdNonAliasingAdd",
    inputs=["input: T", "indices: Tindices", "updates: T"],
    outputs=["output: T"],
    attrs=[
        "T: {numbertype, bool}",
        "Tindices: {int32, int64}",
        _POLICY,
    ],
    shape_fn=tensor_scatter_shape,
    doc="`input` plus `updates` at `indices`.",
)


@register_kernel(
    SCATTER_ND, types={"T": POD_OR_STRING, "Tindices": INDEX}, host_memory=["shape"], factory=True
)
def scatter_nd(*, T: DataType, bad_indices_policy: str) -> Callable[[Any, Any, Any], Any]:
    policy = BadIndicesPolicy.from_attr(bad_indices_policy)

    def scatter(indices: Any, updates: Any, shape: Any) -> Any:
        output = zeros(scattered_shape(indices, updates, shape, T), T)
        scatter_slices(np.add.at, output, indices, updates, policy)
        return output

    return scatter


def _register(op: OpHandle, types: Sequence[DataType], scatter_at: ScatterAt) -> None:
    """A TensorScatter op, by the function that combines the slices of the output with the updates."""

    def make(*, bad_indices_policy: str) -> Callable[[Any, Any, Any], Any]:
        policy = BadIndicesPolicy.from_attr(bad_indices_policy)

        def tensor_scatter(tensor: Any, indices: Any, updates: Any) -> Any:
            check_tensor_scatter(tensor, indices, updates)
            output = np.array(tensor, order="C")
            scatter_slices(scatter_at, output, indices, updates, policy)
            return output

        return tensor_scatter

    make.__name__ = op.name
    register_kernel(op, types={"T": types, "Tindices": INDEX}, factory=True)(make)


def set_at(output: Any, rows: Any, updates: Any) -> None:
    output[rows] = updates


def max_at(output: Any, rows: Any, updates: Any) -> None:
    """As Eigen: an update that is no number loses."""
    np.maximum.at(output, rows, _numbers_or(updates, -np.inf))


def min_at(output: Any, rows: Any, updates: Any) -> None:
    np.minimum.at(output, rows, _numbers_or(updates, np.inf))


def _numbers_or(updates: Any, other: float) -> Any:
    if updates.dtype.kind in "iu":
        return updates
    return np.where(np.isnan(updates), updates.dtype.type(other), updates)


_register(TENSOR_SCATTER_UPDATE, POD_OR_STRING, set_at)
_register(TENSOR_SCATTER_ADD, NUMBERS, np.add.at)
_register(TENSOR_SCATTER_SUB, NUMBERS, np.subtract.at)
_register(TENSOR_SCATTER_MAX, REAL_NUMBERS, max_at)
_register(TENSOR_SCATTER_MIN, REAL_NUMBERS, min_at)


@register_kernel(SCATTER_ND_NON_ALIASING_ADD, types={"T": POD, "Tindices": INDEX}, factory=True)
def scatter_nd_non_aliasing_add(*, bad_indices_policy: str) -> Callable[[Any, Any, Any], Any]:
    policy = BadIndicesPolicy.from_attr(bad_indices_policy)

    def scatter_add(tensor: Any, indices: Any, updates: Any) -> Any:
        require_rank_at_least(tensor, 1, "Output must be at least 1-D, got shape: {}")
        output = np.array(tensor, order="C")
        scatter_slices(np.add.at, output, indices, updates, policy)
        return output

    return scatter_add


def scattered_shape(indices: Any, updates: Any, shape: Any, T: DataType) -> _Shape:
    """The shape that the input `shape` of ScatterNd holds, with which indices and updates must agree.

    Raises:
        InvalidArgumentError: they do not.
    """
    _check_ranks(indices, updates)
    require_vector(shape, "Shape must be a vector, got shape {}")
    sizes = check_allocation(shape.tolist(), T)
    _check_not_empty(shape.size, indices, updates)
    _check_scatter_nd(sizes, indices.shape, updates.shape)
    return sizes


def check_tensor_scatter(tensor: Any, indices: Any, updates: Any) -> None:
    """Raise InvalidArgumentError unless indices and updates of a TensorScatter op agree with the tensor."""
    _check_ranks(indices, updates)
    _check_not_empty(tensor.size, indices, updates)
    _check_tensor_scatter(tensor.shape, indices.shape, updates.shape)


def _check_ranks(indices: Any, updates: Any) -> None:
    for name, tensor in (("Indices", indices), ("Updates", updates)):
        require_rank_at_least(tensor, 1, f"{name} shape must have rank at least one. Found:{{}}")


def _check_not_empty(outputs: int, indices: Any, updates: Any) -> None:
    """Indices and updates may be empty only together, and only then may the output be."""
    if not _fits_empty(outputs, indices, updates):
        raise InvalidArgumentError("Indices and updates specified for empty output shape")


def _fits_empty(outputs: int, indices: Any, updates: Any) -> bool:
    sizes = indices.size, updates.size
    return sizes == (0, 0) or 0 not in (outputs, *sizes)


def _check_scatter_nd(shape: _Shape, indices: _Shape, updates: _Shape) -> None:
    outer, depth = len(indices) - 1, indices[-1]
    if indices[:outer] != updates[:outer]:
        raise _prefix_error(outer, indices, updates)
    if len(updates) - outer != len(shape) - depth or updates[outer:] != shape[depth:]:
        raise _suffix_error(depth, shape, outer, updates)


def _check_tensor_scatter(shape: _Shape, indices: _Shape, updates: _Shape) -> None:
    outer, depth = len(indices) - 1, indices[-1]
    if indices[:outer] != updates[:outer]:
        raise InvalidArgumentError(
            "Outer dimensions of indices and update must match. Indices shape: "
            f"{TensorShape(indices)}, updates shape:{TensorShape(updates)}"
        )
    if len(updates) - outer != len(shape) - depth or updates[outer:] != shape[depth:]:
        raise InvalidArgumentError(
            "Inner dimensions of output shape must match inner dimensions of updates shape. "
            f"Output: {TensorShape(shape)} updates: {TensorShape(updates)}"
        )


def _prefix_error(outer: int, indices: _Shape, updates: _Shape) -> InvalidArgumentError:
    return InvalidArgumentError(
        f"Dimensions [0,{outer}) of indices[shape={TensorShape(indices)}] must match dimensions "
        f"[0,{outer}) of updates[shape={TensorShape(updates)}]"
    )


def _suffix_error(depth: int, shape: _Shape, outer: int, updates: _Shape) -> InvalidArgumentError:
    return InvalidArgumentError(
        f"Dimensions [{depth},{len(shape)}) of input[shape={TensorShape(shape)}] must match "
        f"dimensions [{outer},{len(updates)}) of updates[shape={TensorShape(updates)}]"
    )


def scatter_slices(
    scatter_at: ScatterAt, output: Any, indices: Any, updates: Any, policy: BadIndicesPolicy
) -> None:
    """Apply the updates to `output`, which is contiguous and the caller's own.

    Raises:
        InvalidArgumentError: shapes do not fit, or an index is bad; what stands before it is done.
    """
    shape = output.shape
    depth = checked_depth(output, indices, updates)
    if output.size == 0 or indices.size == 0:
        return
    rows = indices.reshape((-1, depth))
    slices = updates.reshape((len(rows), -1))
    bad, error = find_bad_indices(rows, shape[:depth]), None
    if bad is not None and policy is BadIndicesPolicy.IGNORE:
        rows, slices = rows[~bad], slices[~bad]
    elif bad is not None:
        error = bad_index_error(
            rows, bad, indices.shape[: max(indices.ndim - 1, 1)], "shape", shape
        )
        rows, slices = rows[: np.argmax(bad)], slices[: np.argmax(bad)]
    flat = np.ravel_multi_index(tuple(rows.T), shape[:depth])
    if slices.shape[1] == 1:  # much the faster way where each slice is one element
        scatter_at(output.reshape(-1), flat, slices[:, 0])
    else:
        scatter_at(output.reshape((-1, slices.shape[1])), flat, slices)
    if error is not None:
        raise error


def checked_depth(output: Any, indices: Any, updates: Any) -> int:
    """How many dimensions of the output an index speaks of; a vector holds single indices.

    Raises:
        InvalidArgumentError: the shapes do not fit.
    """
    if not _fits_empty(output.size, indices, updates):
        raise InvalidArgumentError(
            "Indices and updates specified for empty output.  indices shape: "
            f"{TensorShape(indices.shape)}"
        )
    outer = max(indices.ndim - 1, 1)
    depth = indices.shape[-1] if indices.ndim > 1 else 1
    if indices.ndim == 0 or indices.shape[:outer] != updates.shape[:outer]:
        raise _prefix_error(outer, indices.shape, updates.shape)
    if updates.ndim != outer + output.ndim - depth or updates.shape[outer:] != output.shape[depth:]:
        raise _suffix_error(depth, output.shape, outer, updates.shape)
    if output.size and not 1 <= depth <= _MAX_INDEX_DEPTH:
        raise InvalidArgumentError(
            "Only indices.shape[-1] values between 1 and 5 are currently supported.  "
            f"Requested rank: {depth}"
        )
    return depth


@g.register_gradient("ScatterNd")
def scatter_nd_gradient(op: g.Operation, grad: g.Tensor) -> g.Gradients:
    return None, g.nodes.GatherNd(grad, op.inputs[0]), None


@g.register_gradient("ScatterNdNonAliasingAdd", "TensorScatterAdd")
def scatter_add_gradient(op: g.Operation, grad: g.Tensor) -> g.Gradients:
    return grad, None, g.nodes.GatherNd(grad, op.inputs[1])


@g.register_gradient("TensorScatterSub")
def tensor_scatter_sub_gradient(op: g.Operation, grad: g.Tensor) -> g.Gradients:
    return grad, None, g.nodes.Neg(g.nodes.GatherNd(grad, op.inputs[1]))


@g.register_gradient(
    "TensorScatterUpdate", not_derivative="an index that is there twice counts twice"
)
def tensor_scatter_update_gradient(op: g.Operation, grad: g.Tensor) -> g.Gradients:
    _, indices, updates = op.inputs
    rest = g.nodes.TensorScatterUpdate(grad, indices, g.zeros_like(updates))
    return rest, None, g.nodes.GatherNd(grad, indices)


@g.register_gradient("TensorScatterMax", "TensorScatterMin")
def tensor_scatter_extreme_gradient(op: g.Operation, grad: g.Tensor) -> g.Gradients:
    """Equal elements share the gradient."""
    x, indices, updates = op.inputs
    policy = g.attrs_of(op, "bad_indices_policy")

    def at_indices(tensor: g.Tensor) -> Any:
        return g.nodes.GatherNd(tensor, indices, **policy)

    result = op.outputs[0]
    is_x = g.nodes.Cast(g.nodes.Equal(x, result), DstT=grad.dtype)
    is_update = g.nodes.Cast(g.nodes.Equal(updates, at_indices(result)), DstT=grad.dtype)
    shape = g.nodes.Shape(x, out_type=indices.dtype)
    number = g.nodes.AddV2(is_x, g.nodes.ScatterNd(indices, is_update, shape, **policy))
    for_x = g.nodes.RealDiv(g.nodes.Mul(grad, is_x), number)
    return for_x, None, g.nodes.Mul(at_indices(g.nodes.RealDiv(grad, number)), is_update)
