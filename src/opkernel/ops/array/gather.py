"""Elements at given indices: Gather, GatherV2, GatherNd, and gradients.

Index vectors outside of the tensor that they index are errors, or ignored if the attr `bad_indices_policy` says so.

Source: TensorFlow core/ops/array_ops.cc, core/kernels/gather_op.cc, gather_nd_op.h, core/util/bad_indices_policy.h.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

import opkernel.gradients as g
from opkernel.errors import InvalidArgumentError, UnimplementedError
from opkernel.opdef import InferenceContext, register_op
from opkernel.opdef.common_shapes import gather_nd_shape
from opkernel.ops.array.fill import zeros
from opkernel.ops.input_checks import require, require_rank_at_least, require_scalar
from opkernel.ops.registration import (
    ALL,
    ALL_QUANTIZED,
    FLOAT8,
    QUANTIZED,
    WIDE_INDEX,
    register_kernel,
)
from opkernel.types import Array, DataType, TensorShape


def ignores_bad_indices(policy: str) -> bool:
    """Whether a value of the attr `bad_indices_policy` says to ignore them. The default on the CPU is an error.

    Raises:
        InvalidArgumentError: there is no such policy.
    """
    if policy not in ("", "DEFAULT", "ERROR", "IGNORE"):
        raise InvalidArgumentError(f"Unknown bad indices handling attribute: {policy}")
    return policy == "IGNORE"


def find_bad_indices(rows: Any, limits: Sequence[int]) -> Array | None:
    """Which of the index vectors [n, depth] lie outside of `limits`; None if none does."""
    if rows.size == 0:
        return None
    most = int(np.iinfo(rows.dtype).max) + 1
    columns = rows.view(f"u{rows.dtype.itemsize}").T  # in which those below 0 are the largest
    if all(one.max() < min(limit, most) for one, limit in zip(columns, limits, strict=True)):
        return None
    outside: Array = ((rows < 0) | (rows >= np.array(limits))).any(axis=1)
    return outside if outside.any() else None


def bad_index_error(
    rows: Any, bad: Any, outer: Sequence[int], what: str, shape: Sequence[int]
) -> InvalidArgumentError:
    """The error for the first bad index vector.

    Args:
        rows: the index vectors [n, depth].
        bad: which of them are bad.
        outer: the shape that the n of them stand in.
        what: what is indexed, such as "shape".
        shape: its shape.
    """
    first = int(np.argmax(bad))
    place = ",".join(str(i) for i in np.unravel_index(first, tuple(outer)))
    return InvalidArgumentError(
        f"indices[{place}] = {rows[first].tolist()} does not index into {what} {TensorShape(shape)}"
    )


_GATHER_TYPES = (*ALL, *FLOAT8, *ALL_QUANTIZED)
_MAX_INDEX_DEPTH = 7


def gather_shape(c: InferenceContext) -> None:
    """[n, rest...] at indices [...] -> [..., rest...]."""
    params = c.with_rank_at_least(c.input(0), 1)
    c.set_output(0, c.concatenate(c.input(1), c.subshape(params, 1)))


def gather_v2_shape(c: InferenceContext) -> None:
    """The dimension `axis` of params becomes the dimensions of indices that are not batch."""
    params, indices = c.with_rank_at_least(c.input(0), 1), c.input(1)
    c.with_rank(c.input(2), 0)
    axis_tensor = c.input_tensor(2)
    batch_dims: int = c.get_attr("batch_dims")
    if axis_tensor is None:
        ranks_known = c.rank_known(params) and c.rank_known(indices)
        rank = c.rank(params) + c.rank(indices) - 1 - batch_dims if ranks_known else -1
        c.set_output(0, c.unknown_shape_of_rank(rank))
        if batch_dims < 0:  # TensorFlow subtracts it as it is, and not what it counts from the end
            c.doubt_output(0)
        return
    axis = int(axis_tensor.item())
    params = c.with_rank_at_least(params, -axis if axis < 0 else axis + 1)
    indices = c.with_rank_at_least(indices, abs(batch_dims))
    if batch_dims < 0 and c.rank_known(indices):
        batch_dims += c.rank(indices)
    params = c.with_rank_at_least(params, max(batch_dims, 0) + 1)
    outer = c.subshape(params, 0, axis)
    out = c.concatenate(outer, c.subshape(indices, batch_dims))
    if axis != -1:
        out = c.concatenate(out, c.subshape(params, axis + 1))
    c.set_output(0, out)


GATHER = register_op(
    "Gather(params: Tparams, indices: Tindices) -> output: Tparams",
    attrs=["validate_indices: bool = true", "Tparams: type", "Tindices: {int32, int64}"],
    shape_fn=gather_shape,
    traits="value_rule=gather cost=linear",
    doc="The slices of `params` along its first dimension that `indices` name.",
)

GATHER_V2 = register_op(
    "GatherV2(params: Tparams, indices: Tindices, axis: Taxis) -> output: Tparams",
    attrs=[
        "batch_dims: int = 0",
        "Tparams: type",
        "Tindices: {int16, int32, int64}",
        "Taxis: {int32, int64}",
    ],
    shape_fn=gather_v2_shape,
    traits="value_rule=gather cost=linear row_rule=looked_up",
    doc="""The slices of `params` along dimension `axis` that `indices` name.

    With `batch_dims` the leading dimensions of both are a batch, each with its own indices.""",
)


@register_kernel(GATHER, types={"Tparams": _GATHER_TYPES, "Tindices": WIDE_INDEX})
def gather(params: Any, indices: Any, *, xp: Any) -> Any:
    require_rank_at_least(params, 1, "params must be at least 1 dimensional")
    return _take(params, indices, 0, xp)


@register_kernel(
    GATHER_V2, types={"Tparams": _GATHER_TYPES, "Tindices": WIDE_INDEX}, host_memory=["axis"]
)
def gather_v2(params: Any, indices: Any, axis: Any, *, batch_dims: int, xp: Any) -> Any:
    require_scalar(axis, "axis must be scalar")
    rank, at = params.ndim, axis.item()
    needed = at + 1 if at >= 0 else -at
    if rank < needed:
        raise InvalidArgumentError(f"params must be at least {needed} dimensional")
    at %= rank
    if not batch_dims:
        return _take(params, indices, at, xp)
    batch = _checked_batch_dims(batch_dims, params.shape, indices.shape, at)
    return _take_batched(params, indices, at, batch, xp)


def _checked_batch_dims(
    batch_dims: int, params: tuple[int, ...], indices: tuple[int, ...], axis: int
) -> int:
    """The number of batch dimensions, which both shapes must share."""
    rank = len(indices)
    if not -rank <= batch_dims <= rank:
        raise InvalidArgumentError(
            f"Expected batch_dims in the range [{-rank}, {rank}], but got {batch_dims}"
        )
    batch = batch_dims + rank if batch_dims < 0 else batch_dims
    require(
        batch < len(params), f"batch_dims ({batch}) must be less than rank(params) ({len(params)})."
    )
    require(batch <= axis, f"batch_dims ({batch}) must be less than or equal to axis ({axis}).")
    for i in range(batch):
        if params[i] != indices[i]:
            raise InvalidArgumentError(
                f"params.shape[{i}]: {params[i]} should be equal to indices.shape[{i}]: {indices[i]}"
            )
    return batch


def _take(params: Any, indices: Any, axis: int, xp: Any) -> Any:
    shape = params.shape
    out_shape = shape[:axis] + indices.shape + shape[axis + 1 :]
    if 0 in out_shape:  # as in TensorFlow no index is looked at
        return xp.zeros(out_shape, dtype=params.dtype)
    flat = indices if indices.ndim == 1 else indices.reshape(-1)
    if xp is np:
        try:
            taken = params.take(_without_negative(flat, shape[axis]), axis)
        except IndexError:
            raise _index_error(indices, shape[axis]) from None
    else:
        taken = xp.take(params, flat, axis=axis, mode="clip")  # a trace cannot refuse values
    return taken if indices.ndim == 1 else taken.reshape(out_shape)


_UNSIGNED: dict[np.dtype[Any], np.dtype[Any]] = {
    np.dtype(np.int16): np.dtype(np.uint16),
    np.dtype(np.int32): np.dtype(np.uint32),
}


def _without_negative(indices: Any, limit: int) -> Any:
    """The indices as NumPy takes them without counting from the end.

    Read as unsigned, a negative index is larger than any dimension: one pass less over them.
    """
    unsigned = _UNSIGNED.get(indices.dtype)
    if unsigned is not None and limit <= 1 << (8 * unsigned.itemsize - 1):
        return indices.view(unsigned)
    if indices.size and indices.min() < 0:
        raise IndexError
    return indices


def _take_batched(params: Any, indices: Any, axis: int, batch: int, xp: Any) -> Any:
    """As [batch, outer, n, inner] at [batch, indices]."""
    shape = params.shape
    out_shape = shape[:axis] + indices.shape[batch:] + shape[axis + 1 :]
    if 0 in out_shape:
        return xp.zeros(out_shape, dtype=params.dtype)
    if xp is not np:  # a trace cannot refuse values
        indices = xp.clip(indices, 0, shape[axis] - 1)
    elif indices.size and not (indices.max() < shape[axis] and indices.min() >= 0):
        raise _index_error(indices, shape[axis])
    batches = math.prod(shape[:batch])
    outer = math.prod(shape[batch:axis])
    inner = math.prod(shape[axis + 1 :])
    count = math.prod(indices.shape[batch:])
    blocks = params.reshape((batches, outer, shape[axis], inner))
    taken = blocks[
        xp.arange(batches)[:, None, None],
        xp.arange(outer)[:, None],
        indices.reshape((batches, 1, count)),
    ]
    return taken.reshape(out_shape)


def _index_error(indices: Any, limit: int) -> InvalidArgumentError:
    """The error for the first index that is out of range."""
    flat = indices.reshape(-1)
    bad = int(np.argmax((flat < 0) | (flat >= limit)))
    place = ",".join(str(i) for i in np.unravel_index(bad, indices.shape))
    return InvalidArgumentError(
        f"indices{f'[{place}]' if place else ''} = {flat[bad]} is not in [0, {limit})"
    )


GATHER_ND = register_op(
    "GatherNd(params: Tparams, indices: Tindices) -> output: Tparams",
    attrs=["Tparams: type", "Tindices: {int16, int32, int64}", "bad_indices_policy: string = ''"],
    shape_fn=gather_nd_shape,
    doc="The slices of `params` at the index vectors that the last dimension of `indices` holds.",
    traits="cost=linear function_gradient=yes",
)


@register_kernel(
    GATHER_ND,
    types={"Tparams": (*ALL, *FLOAT8, *QUANTIZED), "Tindices": WIDE_INDEX},
    attrs={"bad_indices_policy": ["", "DEFAULT", "ERROR", "IGNORE"]},
    factory=True,
)
def gather_nd(*, bad_indices_policy: str, Tparams: DataType, xp: Any) -> Callable[[Any, Any], Any]:
    ignore = ignores_bad_indices(bad_indices_policy)

    def gather_at(params: Any, indices: Any) -> Any:
        depth = _checked_depth(params, indices)
        outer, rest = indices.shape[:-1], params.shape[depth:]
        rows = indices.reshape((math.prod(outer), depth))
        if xp is not np:
            return _traced_at(params, rows, ignore, xp).reshape(outer + rest)
        bad = find_bad_indices(rows, params.shape[:depth])
        if bad is None:
            return _at(params, rows).reshape(outer + rest)
        if not ignore:
            raise bad_index_error(rows, bad, outer, "param shape", params.shape)
        output = zeros((len(rows), *rest), Tparams)
        output[~bad] = _at(params, rows[~bad])
        return output.reshape(outer + rest)

    return gather_at


def _at(params: Any, rows: Any) -> Any:
    """The slices of `params` at index vectors [n, depth] -> [n, rest...]."""
    depth = rows.shape[1]
    if depth == 0:
        return params[None].repeat(len(rows), axis=0)
    if isinstance(params, np.ndarray) and params.flags.c_contiguous and len(rows):
        outer, rest = params.shape[:depth], params.shape[depth:]
        places = np.ravel_multi_index(tuple(rows.T), outer)
        return params.reshape(math.prod(outer), *rest).take(places, axis=0)  # much the faster way
    return params[(*(rows[:, i] for i in range(depth)), ...)]


def _traced_at(params: Any, rows: Any, ignore: bool, xp: Any) -> Any:
    """As `_at`; a trace cannot refuse values, so that bad indices give zeros or are moved inside."""
    highest = np.iinfo(rows.dtype).max
    last = [min(size - 1, highest) for size in params.shape[: rows.shape[1]]]
    inside = xp.clip(rows, 0, xp.asarray(last, dtype=rows.dtype))
    found = _at(params, inside)
    if not ignore:
        return found
    is_good = xp.all(rows == inside, axis=1).reshape((-1, *(1 for _ in found.shape[1:])))
    return xp.where(is_good, found, xp.zeros((), dtype=params.dtype))


def _checked_depth(params: Any, indices: Any) -> int:
    """How many dimensions of `params` the index vectors of `indices` speak of."""
    for name, tensor in (("params", params), ("indices", indices)):
        require_rank_at_least(tensor, 1, f"{name} must be at least a vector")
    depth: int = indices.shape[-1]
    if depth > params.ndim:
        raise InvalidArgumentError(
            f"index innermost dimension length must be <= params rank; saw: {depth} vs. {params.ndim}"
        )
    if params.size == 0 and math.prod(indices.shape[:-1]) > 0:
        raise InvalidArgumentError(
            f"Requested more than 0 entries, but params is empty.  Params shape: {TensorShape(params.shape)}"
        )
    if depth > _MAX_INDEX_DEPTH:
        raise UnimplementedError(
            f"Only indices.shape[-1] values between 1 and 7 are currently supported.  Requested rank: {depth}"
        )
    return depth


_INT32 = DataType.DT_INT32


@g.register_gradient("Gather")
def gather_gradient(op: g.Operation, grad: g.Tensor) -> g.Gradients:
    return rows_gradient(g.shape_of(op.inputs[0]), op.inputs[1], grad), None


@g.register_gradient("GatherV2")
def gather_v2_gradient(op: g.Operation, grad: g.Tensor) -> g.Gradients:
    params, indices, axis = op.inputs
    if g.constant_value(axis) == 0:  # and so there are no batch dimensions
        return rows_gradient(g.shape_of(params), indices, grad), None, None
    return _along_axis(op, grad), None, None


@g.register_gradient("GatherNd")
def gather_nd_gradient(op: g.Operation, grad: g.Tensor) -> g.Gradients:
    params, indices = op.inputs
    shape = g.nodes.Shape(params, out_type=indices.dtype)
    return points_gradient(shape, indices, grad, op.get_attr("bad_indices_policy")), None


def rows_gradient(shape: g.Tensor, indices: g.Tensor, grad: g.Tensor) -> g.IndexedSlices:
    """The gradient of a tensor of a shape of which the rows of indices were taken."""
    size = g.nodes.Reshape(g.nodes.Size(indices), [1])
    row_shape = g.nodes.StridedSlice(shape, [1], [0], [1], end_mask=1)
    values = g.nodes.Reshape(grad, g.nodes.ConcatV2([size, row_shape], 0))
    return g.IndexedSlices(values, g.nodes.Reshape(indices, size), shape)


def points_gradient(shape: g.Tensor, indices: g.Tensor, grad: g.Tensor, policy: Any = "") -> Any:
    """The gradient of a gathered tensor of some shape, by the indices of the gathered slices."""
    dims = indices.shape.dims
    if dims is not None and len(dims) == 2 and dims[1] == 1:
        return g.IndexedSlices(grad, g.nodes.Squeeze(indices, squeeze_dims=[-1]), shape)
    return g.nodes.ScatterNd(indices, grad, shape, bad_indices_policy=policy)


def _along_axis(op: g.Operation, grad: g.Tensor) -> Any:
    """The gradient for an axis that is not the first, or not known.

    The axis is moved behind the batch axes, and all of these made one, so that a sum of segments
    can put the elements back.
    """
    params, indices, axis = op.inputs
    batch_dims = _batch_dims(op)
    shape, axis = g.nodes.Shape(params), g.nodes.Reshape(g.nodes.Cast(axis, DstT=_INT32), [])
    rank = g.nodes.Rank(params)
    axis = g.nodes.FloorMod(g.nodes.AddV2(axis, rank), rank)
    one = g.nodes.AddV2(axis, 1)
    outer, inner = _part(shape, 0, axis), _part(shape, one, rank)
    flat = g.nodes.Reshape(grad, g.nodes.ConcatV2([outer, [-1], inner], 0))
    order = g.nodes.ConcatV2(
        [_range(0, batch_dims), _vector(axis), _range(batch_dims, axis), _range(one, rank)], 0
    )
    moved_shape = g.nodes.GatherV2(shape, order, 0)
    moved = _sum_of_rows(moved_shape, g.nodes.Transpose(flat, order), indices, batch_dims)
    return g.nodes.Reshape(g.nodes.Transpose(moved, g.nodes.InvertPermutation(order)), shape)


def _batch_dims(op: g.Operation) -> int:
    batch_dims, rank = int(op.get_attr("batch_dims")), op.inputs[1].shape.rank
    if batch_dims >= 0:
        return batch_dims
    if rank is None:
        raise InvalidArgumentError(
            f"The gradient of '{op.name}' is not known for batch_dims {batch_dims} and indices of unknown rank"
        )
    return batch_dims + rank


def _sum_of_rows(shape: g.Tensor, values: g.Tensor, indices: g.Tensor, batch_dims: int) -> Any:
    """Values of shape `[batch..., n, ...]` added at indices of a tensor of shape `[batch..., ...]`."""
    row_shape = _part(shape, batch_dims + 1, g.nodes.Size(shape))
    places = _in_one_axis(g.nodes.Cast(shape, DstT=indices.dtype), indices, batch_dims)
    number = g.nodes.Prod(_part(shape, 0, batch_dims + 1), [0])
    rows = g.nodes.Reshape(values, g.nodes.ConcatV2([[-1], row_shape], 0))
    total = g.nodes.UnsortedSegmentSum(rows, g.nodes.Reshape(places, [-1]), number)
    return g.nodes.Reshape(total, shape)


def _in_one_axis(sizes: g.Tensor, indices: g.Tensor, batch_dims: int) -> Any:
    """Indices into the last of several axes as indices into all of them made one."""
    if not batch_dims:
        return indices
    batches = g.nodes.Prod(_part(sizes, 0, batch_dims), [0])
    size = g.nodes.StridedSlice(sizes, [batch_dims], [batch_dims + 1], [1], shrink_axis_mask=1)
    number = g.nodes.Range(g.nodes.ZerosLike(batches), batches, g.nodes.OnesLike(batches))
    starts = g.nodes.Reshape(g.nodes.Mul(number, size), [-1, 1])
    return g.nodes.AddV2(g.nodes.Reshape(indices, g.nodes.Pack([batches, -1])), starts)


def _part(vector: g.Tensor, begin: Any, end: Any) -> Any:
    return g.nodes.StridedSlice(vector, _vector(begin), _vector(end), [1])


def _vector(scalar: Any) -> Any:
    return g.nodes.Reshape(scalar, [1]) if isinstance(scalar, g.Tensor) else [scalar]


def _range(begin: Any, end: Any) -> Any:
    return g.nodes.Range(begin, end, 1)
