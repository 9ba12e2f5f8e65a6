"""Shapes of ops that keep, merge or broadcast the shapes of their inputs, or set a plain one.

Source: TensorFlow core/framework/common_shape_fns.cc.
"""

from opkernel.errors import InternalError, InvalidArgumentError
from opkernel.opdef.shapes.inference_context import InferenceContext, ShapeFn
from opkernel.opdef.shapes.shape_handles import UNKNOWN_DIM, DimensionHandle, ShapeHandle


def no_outputs(c: InferenceContext) -> None:
    """The op has no outputs."""


def unknown_shape(c: InferenceContext) -> None:
    """Nothing is known of any output."""
    for i in range(c.num_outputs()):
        c.set_output(i, c.unknown_shape())


def scalar_shape(c: InferenceContext) -> None:
    """Output 0 is a scalar."""
    c.set_output(0, c.scalar())


def keep_contents(c: InferenceContext, output: int = 0, source: int = 0) -> None:
    """The resource or variant at `output` holds what the one at input `source` holds."""
    held = c.input_handle_shapes_and_types(source)
    if held is not None:
        c.set_output_handle_shapes_and_types(output, held)


def unchanged_shape(c: InferenceContext) -> None:
    """Output 0 has the shape of input 0, and the same contents if it is a resource or variant."""
    c.set_output(0, c.input(0))
    keep_contents(c)


def unchanged_shape_with_rank(rank: int) -> ShapeFn:
    """A shape function: output 0 has the shape of input 0, whose rank must be `rank`."""
    return lambda c: c.set_output(0, c.with_rank(c.input(0), rank))


def unchanged_shape_with_rank_at_least(rank: int) -> ShapeFn:
    """A shape function: output 0 has the shape of input 0, of rank `rank` or more."""
    return lambda c: c.set_output(0, c.with_rank_at_least(c.input(0), rank))


def unchanged_shape_with_rank_at_most(rank: int) -> ShapeFn:
    """A shape function: output 0 has the shape of input 0, of rank `rank` or less."""
    return lambda c: c.set_output(0, c.with_rank_at_most(c.input(0), rank))


def merge_both_inputs_shape_fn(c: InferenceContext) -> None:
    """Inputs 0 and 1 and output 0 have the same shape."""
    c.set_output(0, c.merge(c.input(0), c.input(1)))


def broadcast_binary_op_shape(c: InferenceContext) -> None:
    """Output 0 is inputs 0 and 1 broadcast."""
    c.set_output(0, broadcast_binary_op_output_shape(c, c.input(0), c.input(1)))


def broadcast_binary_op_output_shape_fn(output_index: int) -> ShapeFn:
    """A shape function: the given output is inputs 0 and 1 broadcast."""

    def shape_fn(c: InferenceContext) -> None:
        shape = broadcast_binary_op_output_shape(c, c.input(0), c.input(1))
        c.set_output(output_index, shape)

    return shape_fn


def broadcast_binary_op_output_shape(
    c: InferenceContext,
    first: ShapeHandle,
    second: ShapeHandle,
    incompatible_shape_error: bool = True,
) -> ShapeHandle:
    """The shape of two shapes broadcast, as NumPy does: aligned at the end, 1 stretches.

    Without `incompatible_shape_error`, shapes that cannot be broadcast give a scalar (the op then
    answers one bool), and shapes that perhaps cannot give an unknown shape.

    Raises:
        InvalidArgumentError: they cannot be broadcast.
    """
    if first.dims is None or second.dims is None:
        return c.unknown_shape()
    rank = max(len(first.dims), len(second.dims))
    one = DimensionHandle(1)
    padded_first = (one,) * (rank - len(first.dims)) + first.dims
    padded_second = (one,) * (rank - len(second.dims)) + second.dims
    pairs = list(zip(padded_first, padded_second, strict=True))
    if incompatible_shape_error:
        return c.make_shape([_broadcast_dims(c, a, b, one) for a, b in pairs])
    for a, b in pairs:
        if UNKNOWN_DIM in (a.value, b.value):
            if a is not b and a.value != 1 and b.value != 1 and a.value != b.value:
                return c.unknown_shape()
        elif a.value != b.value and 1 not in (a.value, b.value):
            return c.scalar()
    return c.make_shape([_broadcast_dims(c, a, b, one) for a, b in pairs])


def _broadcast_dims(
    c: InferenceContext, a: DimensionHandle, b: DimensionHandle, padding: DimensionHandle
) -> DimensionHandle:
    """One dimension of the broadcast; `padding` is the 1 put before a shorter shape."""
    if UNKNOWN_DIM not in (a.value, b.value):
        if a.value == 1 and b is not padding:
            return b
        return a if b.value == 1 else c.merge(a, b)
    if a.value > 1 or b.value == 1 or a is b:
        return a
    return b if b.value > 1 or a.value == 1 else DimensionHandle()


def random_shape(c: InferenceContext) -> None:
    """Output 0 has the shape that input 0 holds."""
    c.set_output(0, c.make_shape_from_shape_tensor(0))


def explicit_shape(c: InferenceContext) -> None:
    """Output 0 has the shape of the attr `shape`."""
    c.set_output(0, c.make_shape_from_partial_shape(c.get_attr("shape")))


def explicit_shapes(c: InferenceContext) -> None:
    """The outputs have the shapes of the attr `shapes`."""
    shapes = c.get_attr("shapes")
    if not shapes:
        raise InternalError("shapes must not be empty")
    if len(shapes) != c.num_outputs():
        raise InvalidArgumentError(f"{len(shapes)} shapes given for {c.num_outputs()} outputs")
    for i, shape in enumerate(shapes):
        c.set_output(i, c.make_shape_from_partial_shape(shape))
