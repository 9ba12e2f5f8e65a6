"""Updates of a tensor at given indices: ScatterNd, TensorScatterAdd and others, InplaceAdd and others, and gradients.

The last dimension of `indices` holds index vectors; `updates` holds for each the slice of the output that it names. The
places of the Inplace ops are rows. TensorFlow may write into their input; here the output is always another tensor.

Source: TensorFlow core/ops/array_ops.cc, core/kernels/scatter_nd_op.cc, inplace_ops.cc.
"""

import math
from collections.abc import Callable
from typing import Any

import numpy as np

import opkernel.gradients as g
from opkernel.errors import InvalidArgumentError
from opkernel.kernel import check_allocation
from opkernel.opdef import InferenceContext, register_op
from opkernel.opdef.common_shapes import scatter_nd_shape, unchanged_shape
from opkernel.ops.array.fill import zeros
from opkernel.ops.array.gather import bad_index_error, find_bad_indices, ignores_bad_indices
from opkernel.ops.input_checks import require, require_equal, require_rank_at_least, require_vector
from opkernel.ops.registration import (
    INDEX,
    NUMBERS,
    POD,
    POD_OR_STRING,
    REAL_NUMBERS,
    register_kernel,
)
from opkernel.types import DataType, TensorShape

_Shape = tuple[int, ...]
ScatterAt = Callable[[Any, Any, Any], None]
_MAX_INDEX_DEPTH = 7
_POLICY = "bad_indices_policy: string = ''"
_INT = "int32, int64"


def scatter_into_shape(c: InferenceContext) -> None:
    """The value of `shape`, with which indices and updates must agree."""
    indices, updates = (c.with_rank_at_least(c.input(i), 1) for i in (0, 1))
    scatter_nd_shape(c, indices, updates, c.make_shape_from_shape_tensor(2))


def tensor_scatter_shape(c: InferenceContext) -> None:
    """The shape of the tensor, with which indices and updates must agree."""
    tensor, indices = (c.with_rank_at_least(c.input(i), 1) for i in (0, 1))
    scatter_nd_shape(c, indices, c.input(2), tensor)


SCATTER_ND = register_op(
    "ScatterNd(indices: Tindices, updates: T, shape: Tindices) -> output: T",
    attrs=["T: type", "Tindices: {int16, int32, int64}", _POLICY],
    shape_fn=scatter_into_shape,
    doc="Zeros of `shape` to which `updates` are added at `indices`.",
    traits="cost=linear",
)


SCATTER_ND_NON_ALIASING_ADD = register_op(
    "ScatterNdNonAliasingAdd(input: T, indices: Tindices, updates: T) -> output: T",
    attrs=["T: {numbertype, bool}", "Tindices: {int32, int64}", _POLICY],
    shape_fn=tensor_scatter_shape,
    doc="`input` plus `updates` at `indices`.",
)


@register_kernel(
    SCATTER_ND, types={"T": POD_OR_STRING, "Tindices": INDEX}, host_memory=["shape"], factory=True
)
def scatter_nd(*, T: DataType, bad_indices_policy: str) -> Callable[[Any, Any, Any], Any]:
    ignore = ignores_bad_indices(bad_indices_policy)

    def scatter(indices: Any, updates: Any, shape: Any) -> Any:
        output = zeros(scattered_shape(indices, updates, shape, T), T)
        scatter_slices(add_at, output, indices, updates, ignore)
        return output

    return scatter


def _scatters(
    scatter_at: ScatterAt, check: Callable[[Any, Any, Any], None]
) -> Callable[..., Callable[[Any, Any, Any], Any]]:
    """A kernel, by the function that combines the slices of the output with the updates."""

    def make(*, bad_indices_policy: str) -> Callable[[Any, Any, Any], Any]:
        ignore = ignores_bad_indices(bad_indices_policy)

        def scatter(tensor: Any, indices: Any, updates: Any) -> Any:
            check(tensor, indices, updates)
            output = np.array(tensor, order="C")
            scatter_slices(scatter_at, output, indices, updates, ignore)
            return output

        return scatter

    return make


def _check_output(tensor: Any, indices: Any, updates: Any) -> None:
    require_rank_at_least(tensor, 1, "Output must be at least 1-D, got shape: {}")


_AT_ONCE = 1 << 14
"""So many elements are combined in one call."""


def at_rows(ufunc: np.ufunc) -> ScatterAt:
    """Makes `ufunc.at` for the rows of a contiguous tensor, in the order of the rows.

    Rows are combined element by element: NumPy is several times as fast where each index is of one element.
    """

    def combine(output: Any, rows: Any, updates: Any) -> None:
        width = math.prod(output.shape[1:])
        if output.ndim == 1 or not output.size:
            ufunc.at(output, rows, updates)
            return
        flat, columns = output.reshape(-1), np.arange(width)
        slices = np.broadcast_to(updates, (len(rows), *output.shape[1:]))
        step = -(-_AT_ONCE // width)
        for start in range(0, len(rows), step):
            some = slice(start, start + step)
            places = rows[some, None].astype(np.intp) * width + columns
            ufunc.at(flat, places.reshape(-1), slices[some].reshape(-1))

    return combine


add_at, subtract_at, _maximum_at, _minimum_at = map(
    at_rows, (np.add, np.subtract, np.maximum, np.minimum)
)


def set_at(output: Any, rows: Any, updates: Any) -> None:
    output[rows] = updates


def max_at(output: Any, rows: Any, updates: Any) -> None:
    """As Eigen: an update that is no number loses."""
    _maximum_at(output, rows, _numbers_or(updates, -np.inf))


def min_at(output: Any, rows: Any, updates: Any) -> None:
    _minimum_at(output, rows, _numbers_or(updates, np.inf))


def _numbers_or(updates: Any, other: float) -> Any:
    if updates.dtype.kind in "iu":
        return updates
    is_nan = np.isnan(updates)
    return np.where(is_nan, updates.dtype.type(other), updates) if is_nan.any() else updates


def scattered_shape(indices: Any, updates: Any, shape: Any, T: DataType) -> _Shape:
    """The shape that the input `shape` of ScatterNd holds, with which indices and updates must agree.

    Raises:
        InvalidArgumentError: they do not.
    """
    _check_ranks(indices, updates)
    require_vector(shape, "Shape must be a vector, got shape {}")
    sizes = check_allocation(shape.tolist(), T)
    _check_not_empty(shape.size, indices, updates)
    _check_fit(sizes, indices, updates, indices.ndim - 1, indices.shape[-1])
    return sizes


def check_tensor_scatter(tensor: Any, indices: Any, updates: Any) -> None:
    """Raise InvalidArgumentError unless indices and updates of a TensorScatter op agree with the tensor."""
    _check_ranks(indices, updates)
    _check_not_empty(tensor.size, indices, updates)
    outer, depth = indices.ndim - 1, indices.shape[-1]
    if indices.shape[:outer] != updates.shape[:outer]:
        raise InvalidArgumentError(
            "Outer dimensions of indices and update must match. Indices shape: "
            f"{TensorShape(indices.shape)}, updates shape:{TensorShape(updates.shape)}"
        )
    if _rest_differs(tensor.shape, updates.shape, outer, depth):
        raise InvalidArgumentError(
            "Inner dimensions of output shape must match inner dimensions of updates shape. "
            f"Output: {TensorShape(tensor.shape)} updates: {TensorShape(updates.shape)}"
        )


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


def _rest_differs(shape: _Shape, updates: _Shape, outer: int, depth: int) -> bool:
    return len(updates) - outer != len(shape) - depth or updates[outer:] != shape[depth:]


def _check_fit(shape: _Shape, indices: Any, updates: Any, outer: int, depth: int) -> None:
    """Refuse updates that are no slice of the output for each index vector."""
    if indices.ndim == 0 or indices.shape[:outer] != updates.shape[:outer]:
        raise InvalidArgumentError(
            f"Dimensions [0,{outer}) of indices[shape={TensorShape(indices.shape)}] must match "
            f"dimensions [0,{outer}) of updates[shape={TensorShape(updates.shape)}]"
        )
    if _rest_differs(shape, updates.shape, outer, depth):
        raise InvalidArgumentError(
            f"Dimensions [{depth},{len(shape)}) of input[shape={TensorShape(shape)}] must match "
            f"dimensions [{outer},{updates.ndim}) of updates[shape={TensorShape(updates.shape)}]"
        )


def scatter_slices(
    scatter_at: ScatterAt, output: Any, indices: Any, updates: Any, ignore: bool
) -> None:
    """Apply the updates to `output`, which is contiguous and the caller's own; bad indices may be ignored.

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
    if bad is not None and ignore:
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
            f"Indices and updates specified for empty output.  indices shape: {TensorShape(indices.shape)}"
        )
    outer = max(indices.ndim - 1, 1)
    depth = indices.shape[-1] if indices.ndim > 1 else 1
    _check_fit(output.shape, indices, updates, outer, depth)
    if output.size and not 1 <= depth <= _MAX_INDEX_DEPTH:
        raise InvalidArgumentError(
            f"Only indices.shape[-1] values between 1 and 5 are currently supported.  Requested rank: {depth}"
        )
    return depth


for _name, _index, _types, _at, _doc in (
    (
        "Update",
        "int16, int32, int64, uint16",
        POD_OR_STRING,
        set_at,
        "`tensor` with `updates` at `indices`; of several for one place the last counts.",
    ),
    ("Add", _INT, NUMBERS, add_at, "`tensor` plus `updates` at `indices`."),
    ("Sub", _INT, NUMBERS, subtract_at, "`tensor` minus `updates` at `indices`."),
    ("Max", _INT, REAL_NUMBERS, max_at, "The larger of `tensor` and `updates` at `indices`."),
    ("Min", _INT, REAL_NUMBERS, min_at, "The smaller of `tensor` and `updates` at `indices`."),
):
    _op = register_op(
        f"TensorScatter{_name}(tensor: T, indices: Tindices, updates: T) -> output: T",
        attrs=["T: type", f"Tindices: {{{_index}}}", _POLICY],
        shape_fn=tensor_scatter_shape,
        traits="cost=linear",
        doc=_doc,
    )
    register_kernel(_op, types={"T": _types, "Tindices": INDEX}, factory=True)(
        _scatters(_at, check_tensor_scatter)
    )

register_kernel(SCATTER_ND_NON_ALIASING_ADD, types={"T": POD, "Tindices": INDEX}, factory=True)(
    _scatters(add_at, _check_output)
)


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


def _register_in_place(
    name: str, types: tuple[DataType, ...], scatter_at: ScatterAt, doc: str
) -> None:
    """An op by the function that combines rows. Places count modulo the number of rows, as in TensorFlow."""
    op = register_op(
        f"{name}(x: T, i: int32, v: T) -> y: T",
        attrs=["T: type"],
        shape_fn=unchanged_shape,
        doc=f"`x` {doc} the rows of `v` at the places `i`.",
    )

    def updated(x: Any, i: Any, v: Any, *, T: DataType) -> Any:
        _check_rows(x.shape, i.shape, v.shape)
        require(T in types, f"Unsupported data type: {T.string}")
        y = np.array(x, order="C")
        if y.size and v.size:
            scatter_at(y, i % len(y), v)
        return y

    register_kernel(op)(updated)


_register_in_place("InplaceUpdate", POD_OR_STRING, set_at, "with")
_register_in_place("InplaceAdd", NUMBERS, add_at, "plus")
_register_in_place("InplaceSub", NUMBERS, subtract_at, "minus")


def _check_rows(x: tuple[int, ...], i: tuple[int, ...], v: tuple[int, ...]) -> None:
    if len(i) != 1:
        raise InvalidArgumentError(f"i must be a vector. {TensorShape(i)}")
    both = f"{TensorShape(x)} vs. {TensorShape(v)}"
    require_equal(len(x), len(v), f"x and v shape doesn't match (ranks differ): {both}")
    require(x, "x and v must have rows: they are scalars")
    for axis in range(1, len(x)):
        require(x[axis] == v[axis], f"x and v shape doesn't match at index {axis} : {both}")
    if i[0] != v[0]:
        raise InvalidArgumentError(
            f"i and x shape doesn't match at index 0: {TensorShape(i)} vs. {TensorShape(v)}"
        )
