"""Shapes of reductions, concatenation, slices, gathers and scatters.

Source: TensorFlow core/framework/common_shape_fns.cc.
"""

from collections.abc import Sequence

from opkernel.errors import InvalidArgumentError
from opkernel.opdef.common_shapes.elementwise import unknown_shape
from opkernel.opdef.common_shapes.resources import validate_variable_resource_handle
from opkernel.opdef.shapes.inference_context import InferenceContext
from opkernel.opdef.shapes.shape_handles import UNKNOWN_RANK, DimensionHandle, ShapeHandle

_FIRST_VERSION_WITH_VECTOR_INDICES = 21


def reduction_shape(c: InferenceContext) -> None:
    """Input 0 without the axes that input 1 holds; with `keep_dims` they stay, of size 1."""
    shape = c.input(0)
    if c.graph_def_version >= _FIRST_VERSION_WITH_VECTOR_INDICES:
        c.with_rank_at_most(c.input(1), 1)
    keep_dims = c.get_attr("keep_dims")
    axes = c.input_tensor(1)
    if axes is None or shape.dims is None:
        if keep_dims and shape.dims is not None:
            c.set_output(0, c.unknown_shape_of_rank(len(shape.dims)))
        else:
            unknown_shape(c)
        return
    if axes.dtype.name not in ("int32", "int64"):
        raise InvalidArgumentError("reduction_indices can only be int32 or int64")
    rank = len(shape.dims)
    reduced = set()
    for axis in axes.reshape(-1).tolist():
        if not -rank <= axis < rank:
            raise InvalidArgumentError(
                f"Invalid reduction dimension {axis} for input with {rank} dimensions."
            )
        reduced.add(axis % rank)
    kept = [
        DimensionHandle(1) if i in reduced else dim
        for i, dim in enumerate(shape.dims)
        if keep_dims or i not in reduced
    ]
    c.set_output(0, c.make_shape(kept))


def concat_shape(c: InferenceContext, num_inputs_to_concat: int | None = None) -> None:
    """Inputs 1, 2, ... joined along the axis that input 0 holds; by default all others."""
    count = c.num_inputs() - 1 if num_inputs_to_concat is None else num_inputs_to_concat
    _concat_shape(c, [c.input(i) for i in range(1, count + 1)], 0)


def concat_v2_shape(c: InferenceContext) -> None:
    """All inputs but the last, joined along the axis that the last holds."""
    quantized_concat_v2_shape(c, c.num_inputs() - 1)


def quantized_concat_v2_shape(c: InferenceContext, num_inputs_to_concat: int) -> None:
    """The first inputs, joined along the axis that the input after them holds."""
    shapes = [c.input(i) for i in range(num_inputs_to_concat)]
    _concat_shape(c, shapes, num_inputs_to_concat)


def _concat_shape(c: InferenceContext, shapes: Sequence[ShapeHandle], axis_index: int) -> None:
    c.with_rank(c.input(axis_index), 0)
    axis_tensor = c.input_tensor(axis_index)
    if axis_tensor is None or not shapes:
        c.set_output(0, _concat_on_unknown_axis(c, shapes))
        return
    axis = int(axis_tensor.reshape(-1)[0])
    before, middle, after = _cut_at(c, shapes[-1], axis)
    for shape in reversed(shapes[:-1]):
        left, size, right = _cut_at(c, shape, axis)
        before = c.merge(left, before)
        middle = c.add(middle, size)
        after = c.merge(right, after)
    c.set_output(0, c.concatenate(c.concatenate(before, c.vector(middle)), after))


def _concat_on_unknown_axis(c: InferenceContext, shapes: Sequence[ShapeHandle]) -> ShapeHandle:
    """An unknown shape of the rank that all shapes share, if any is known."""
    ranks = (c.rank(shape) for shape in shapes if c.rank_known(shape))
    rank = next(ranks, UNKNOWN_RANK)
    if rank == UNKNOWN_RANK:
        return c.unknown_shape()
    if rank == 0:
        raise InvalidArgumentError("Can't concatenate scalars (use tf.stack instead)")
    for shape in shapes:
        c.with_rank(shape, rank)
    return c.unknown_shape_of_rank(rank)


def _cut_at(
    c: InferenceContext, shape: ShapeHandle, axis: int
) -> tuple[ShapeHandle, DimensionHandle, ShapeHandle]:
    """The parts before, at and after an axis; refused if the shape has no such axis."""
    shape = c.with_rank_at_least(shape, -axis if axis < 0 else axis + 1)
    after = c.scalar() if axis == -1 else c.subshape(shape, axis + 1)
    return c.subshape(shape, 0, axis), c.dim(shape, axis), after


def slice_shape(c: InferenceContext) -> None:
    """The part of input 0 that starts at input 1 and has the sizes of input 2; -1 is the rest."""
    shape = c.input(0)
    length = c.dim(c.merge(c.with_rank(c.input(1), 1), c.with_rank(c.input(2), 1)), 0)
    if c.value_known(length):
        shape = c.with_rank(shape, c.value(length))
    # A begin is no shape, but like a shape it may be known in part.
    begin = c.make_shape_from_shape_tensor(1)
    size_tensor = c.input_tensor(2)
    if size_tensor is not None:
        sizes = size_tensor.reshape(-1).tolist()
        begin = c.with_rank(begin, len(sizes))
        dims = [_slice_dim(c, shape, begin, i, size) for i, size in enumerate(sizes)]
        c.set_output(0, c.make_shape(dims))
        return
    sizes_as_shape = c.make_shape_from_shape_tensor(2)
    if sizes_as_shape.dims is not None:
        c.with_rank(begin, len(sizes_as_shape.dims))
        c.set_output(0, c.make_shape(sizes_as_shape.dims))
    else:
        c.set_output(0, c.unknown_shape_of_rank(c.rank(shape)))


def _slice_dim(
    c: InferenceContext, shape: ShapeHandle, begin: ShapeHandle, axis: int, size: int
) -> DimensionHandle:
    dim = c.dim(shape, axis)
    if size == -1:
        return c.subtract(dim, c.dim(begin, axis))
    if size < 0:
        raise InvalidArgumentError(
            f"Out of bounds slicing on dimension {axis} of length {c.value(dim)}: sizes vector "
            f"cannot be < -1, but was {size}"
        )
    return DimensionHandle(size)


def gather_nd_shape(c: InferenceContext) -> None:
    """Input 0 (or the variable that it holds) at indices [..., n] -> [..., rest of it]."""
    params = c.input(0)
    if c.input_handle_shapes_and_types(0) is not None:
        params = validate_variable_resource_handle(c)[0].shape
    indices = c.with_rank_at_least(c.input(1), 1)
    depth = c.dim(indices, -1)
    if not c.rank_known(params) or not c.value_known(depth):
        c.set_output(0, c.unknown_shape())
        return
    if c.value(depth) > c.rank(params):
        raise InvalidArgumentError(
            "indices.shape[-1] must be <= params.rank, but saw indices shape: "
            f"{indices} and params shape: {params}"
        )
    rest = c.subshape(params, c.value(depth))
    c.set_output(0, c.concatenate(c.subshape(indices, 0, -1), rest))


def scatter_nd_shape(
    c: InferenceContext, indices: ShapeHandle, updates: ShapeHandle, input_shape: ShapeHandle
) -> None:
    """Check updates [..., s] for indices [..., n] into a shape; output 0, if any, has that shape.

    Raises:
        InvalidArgumentError: the leading dimensions of indices and updates differ, or the dimensions
            that the indices leave free are not the rest of the updates.
    """
    if c.value(c.num_elements(input_shape)) == 0 and (
        c.value(c.num_elements(indices)) > 0 or c.value(c.num_elements(updates)) > 0
    ):
        raise InvalidArgumentError("Indices and updates specified for empty input")
    if c.rank_known(indices) and c.rank_known(updates) and c.rank(updates) != 0:
        depth = c.dim(indices, -1)
        if c.value_known(depth):
            _check_scatter(c, indices, updates, input_shape, c.value(depth))
    if c.input_handle_shapes_and_types(0) is None and c.num_outputs() > 0:
        c.set_output(0, input_shape)


def _check_scatter(
    c: InferenceContext,
    indices: ShapeHandle,
    updates: ShapeHandle,
    input_shape: ShapeHandle,
    depth: int,
) -> None:
    outer = c.rank(indices) - 1
    prefix, prefix_updates = c.subshape(indices, 0, outer), c.subshape(updates, 0, outer)
    try:
        c.merge(prefix, prefix_updates)
    except InvalidArgumentError as error:
        raise InvalidArgumentError(
            f"Dimensions [0,{outer}) of indices[shape={indices}] = {prefix} must match dimensions "
            f"[0,{outer}) of updates[shape={updates}] = {prefix_updates}: {error}"
        ) from error
    rest, rest_updates = c.subshape(input_shape, depth), c.subshape(updates, outer)
    try:
        c.merge(rest, rest_updates)
    except InvalidArgumentError as error:
        raise InvalidArgumentError(
            f"Dimensions [{depth},{c.rank(input_shape)}) of input[shape={input_shape}] = {rest} "
            f"must match dimensions [{outer},{c.rank(updates)}) of updates[shape={updates}] = "
            f"{rest_updates}: {error}"
        ) from error


def segment_reduction_with_num_segments_shape(c: InferenceContext) -> None:
    """Data [ids..., rest...] -> [num_segments, rest...]."""
    data, ids = c.input(0), c.input(1)
    c.with_rank(c.input(2), 0)
    if not c.rank_known(ids):
        c.set_output(0, c.unknown_shape())
        return
    data, ids = c.merge_prefix(data, ids)
    segments = c.make_dim_for_scalar_input(2)
    rest = c.subshape(data, c.rank(ids))
    c.set_output(0, c.concatenate(c.vector(segments), rest))


def reduce_scatter_shape(c: InferenceContext) -> None:
    """Input 0, the axis that input 2 holds divided by the size of the groups of input 1."""
    shape, groups = c.input(0), c.input(1)
    if shape.dims is None:
        c.set_output(0, c.unknown_shape())
        return
    if c.rank(groups) != 2:
        raise InvalidArgumentError("ReduceScatter group_assignment should be rank 2")
    axis_tensor = c.input_tensor(2)
    if axis_tensor is None:
        c.set_output(0, c.unknown_shape())
        return
    dims, axis = list(shape.dims), c.get_scalar_from_tensor(axis_tensor)
    if 0 <= axis < len(dims):  # the kernel refuses others
        dims[axis] = c.divide(dims[axis], c.dim(groups, 1), evenly_divisible=True)
    c.set_output(0, c.make_shape(dims))
