"""Pieces of which the shape functions of several topics are made."""

from collections.abc import Iterable

from opkernel.errors import InvalidArgumentError
from opkernel.opdef import InferenceContext, OpShapeInferenceFn, ShapeHandle
from opkernel.types import PartialTensorShape

__all__ = [
    "check_csv_defaults",
    "check_input_ranks",
    "check_ranks",
    "check_ranks_at_most",
    "check_scalars",
    "defined_shape",
    "each_output_as_its_input",
    "fixed_shapes",
    "outputs_as_inputs",
    "scalar_inputs_and_outputs",
    "set_outputs",
    "unknown_from_scalars",
]


def check_input_ranks(c: InferenceContext, *ranks: int) -> list[ShapeHandle]:
    """The shapes of the first inputs, which must have these ranks."""
    return [c.with_rank(c.input(i), rank) for i, rank in enumerate(ranks)]


def check_ranks(c: InferenceContext, rank: int, *inputs: int) -> None:
    """These inputs must have this rank."""
    for i in inputs:
        c.with_rank(c.input(i), rank)


def check_ranks_at_most(c: InferenceContext, rank: int, *inputs: int) -> None:
    """These inputs must have this rank or a smaller one."""
    for i in inputs:
        c.with_rank_at_most(c.input(i), rank)


def check_scalars(c: InferenceContext, *inputs: int) -> None:
    """These inputs must be scalars."""
    check_ranks(c, 0, *inputs)


def defined_shape(shape: PartialTensorShape) -> PartialTensorShape:
    """The value of a shape attr where an op wants a defined one: an unknown rank reads as 0.

    Raises:
        InvalidArgumentError: a dimension is unknown.
    """
    if shape.rank is None:
        return PartialTensorShape([])
    if not shape.is_fully_defined():
        raise InvalidArgumentError(f"Shape {shape} is not fully defined")
    return shape


def set_outputs(c: InferenceContext, shapes: Iterable[ShapeHandle]) -> None:
    """Set the shapes of the first outputs."""
    for i, shape in enumerate(shapes):
        c.set_output(i, shape)


def fixed_shapes(
    *shapes: tuple[int | None, ...], input_ranks: tuple[int, ...] = ()
) -> OpShapeInferenceFn:
    """A shape function: the first inputs must have these ranks, the outputs have these shapes."""

    def shape_fn(c: InferenceContext) -> None:
        check_input_ranks(c, *input_ranks)
        set_outputs(c, map(c.make_shape, shapes))

    return shape_fn


def unknown_from_scalars(*inputs: int) -> OpShapeInferenceFn:
    """A shape function: these inputs are scalars, nothing is known of the outputs."""
    return lambda c: check_scalars(c, *inputs)


def outputs_as_inputs(*inputs: int) -> OpShapeInferenceFn:
    """A shape function: output i has the shape of input `inputs[i]`."""
    return lambda c: set_outputs(c, map(c.input, inputs))


def each_output_as_its_input(c: InferenceContext) -> None:
    """Output i has the shape of input i."""
    set_outputs(c, map(c.input, range(c.num_outputs())))


def scalar_inputs_and_outputs(c: InferenceContext) -> None:
    """All inputs and outputs are scalars."""
    check_scalars(c, *range(c.num_inputs()))
    set_outputs(c, [c.scalar() for _ in range(c.num_outputs())])


def check_csv_defaults(c: InferenceContext, start: int, stop: int) -> None:
    """The inputs from `start` to `stop` are scalars, or vectors of one value or none."""
    for i in range(start, stop):
        default = c.with_rank_at_most(c.input(i), 1)
        if c.rank(default) == 1 and c.dim(default, 0).value > 1:
            raise InvalidArgumentError(
                "Shape of a default must be a length-0 or length-1 vector, or a scalar."
            )
