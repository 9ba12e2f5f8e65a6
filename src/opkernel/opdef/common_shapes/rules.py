"""Pieces of which shape functions are made: checks of inputs one by one, shape functions from shapes, and `shape_rule`.

In texts of ranks, `0` and `1` are ranks; `?` means rank 1 at most, `+` rank 1 at least. `h` means two elements: a handle
that is a vector of strings, container and name. `.` means anything. Inputs beyond the text are not checked.

`shape_rule` makes a shape function that is written as the dimensions of the inputs and outputs:

    shape_fn=shape_rule("[batch, classes], [batch] -> [batch], [batch, classes]")

A dimension is a name, a size, `{attr}` for the size that an int attr says, or `?` for an unknown one. Dimensions of
one name are equal. `...` stands for the same dimensions everywhere. `_` is an input of any shape, and so are
inputs beyond the text. An output `in0` has the shape of input 0.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence

from opkernel.errors import InvalidArgumentError
from opkernel.opdef.common_shapes.elementwise import no_outputs, scalar_shape, unknown_shape
from opkernel.opdef.core.op_def_builder import OpShapeInferenceFn
from opkernel.opdef.shapes.inference_context import InferenceContext
from opkernel.opdef.shapes.shape_handles import DimensionHandle, DimensionOrConstant, ShapeHandle
from opkernel.types import PartialTensorShape


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


def shape_held_by(index: int, rank: int | None = None) -> OpShapeInferenceFn:
    """A shape function: output 0 has the shape that an input holds, which must have this rank."""

    def shape_fn(c: InferenceContext) -> None:
        shape = c.make_shape_from_shape_tensor(index)
        c.set_output(0, shape if rank is None else c.with_rank(shape, rank))

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


def check_handle(c: InferenceContext, shape: ShapeHandle) -> None:
    """Refuse the shape of a handle that does not have two elements."""
    c.with_value(c.dim(c.with_rank(shape, 1), 0), 2)


_CHECKS: dict[str, Callable[[InferenceContext, ShapeHandle], object]] = {
    "0": lambda c, shape: c.with_rank(shape, 0),
    "1": lambda c, shape: c.with_rank(shape, 1),
    "?": lambda c, shape: c.with_rank_at_most(shape, 1),
    "+": lambda c, shape: c.with_rank_at_least(shape, 1),
    "h": check_handle,
    ".": lambda c, shape: None,
}


def check_inputs(c: InferenceContext, ranks: str) -> None:
    """Refuse the first input that is not what its character says."""
    for i, character in enumerate(ranks):
        _CHECKS[character](c, c.input(i))


def checked(ranks: str, then: OpShapeInferenceFn) -> OpShapeInferenceFn:
    """The shape function `then`, after a check of the inputs."""

    def shape_fn(c: InferenceContext) -> None:
        check_inputs(c, ranks)
        then(c)

    return shape_fn


def checked_no_outputs(ranks: str) -> OpShapeInferenceFn:
    """A shape function that only checks the inputs."""
    return checked(ranks, no_outputs)


def checked_scalar(ranks: str) -> OpShapeInferenceFn:
    """A shape function: after a check of the inputs, the output is a scalar."""
    return checked(ranks, scalar_shape)


def checked_unknown(ranks: str) -> OpShapeInferenceFn:
    """A shape function: after a check of the inputs, nothing is known of the outputs."""
    return checked(ranks, unknown_shape)


_SHAPE = re.compile(r"_|in\d+|\[.*?\]")
_REST = "..."


def shape_rule(text: str) -> OpShapeInferenceFn:
    """A shape function for inputs and outputs of these dimensions.

    It checks the ranks of all inputs first, then that dimensions of one name are equal, then the given sizes.
    """
    before, after = (_SHAPE.findall(side) for side in text.split("->"))
    inputs = [(i, _dims(shape)) for i, shape in enumerate(before) if shape != "_"]

    def shape_fn(c: InferenceContext) -> None:
        checked = {i: (dims, _with_rank_of(c, dims, c.input(i))) for i, dims in inputs}
        known = _Known(c)
        for dims, shape in checked.values():
            known.merge(dims, shape)
        for dims, shape in checked.values():
            known.check_sizes(dims, shape)
        for output, name in enumerate(after):
            if name.startswith("in"):
                i = int(name[2:])
                c.set_output(output, checked[i][1] if i in checked else c.input(i))
            else:
                c.set_output(output, known.shape(_dims(name)))

    return shape_fn


def _dims(shape: str) -> Sequence[str]:
    """The dimensions that stand between brackets."""
    return shape[1:-1].split(", ") if shape != "[]" else ()


def _with_rank_of(c: InferenceContext, dims: Sequence[str], shape: ShapeHandle) -> ShapeHandle:
    """The shape, of the rank that the dimensions ask for."""
    if _REST in dims:
        return c.with_rank_at_least(shape, len(dims) - 1)
    return c.with_rank(shape, len(dims))


class _Known:
    """What the inputs tell of the dimensions by their names."""

    def __init__(self, c: InferenceContext) -> None:
        self.c = c
        self.sizes: dict[str, DimensionHandle] = {}
        self.rest: ShapeHandle | None = None

    def merge(self, dims: Sequence[str], shape: ShapeHandle) -> None:
        """Add the named dimensions of an input.

        Raises:
            InvalidArgumentError: they differ from those of the inputs before.
        """
        for i, name in _places(dims):
            if name.isidentifier():
                size = self.c.dim(shape, i)
                self.sizes[name] = self.c.merge(self.sizes.get(name, size), size)
        if _REST in dims:
            at = dims.index(_REST)
            rest = self.c.subshape(shape, at, at + 1 - len(dims) or None)
            self.rest = rest if self.rest is None else self.c.merge(self.rest, rest)

    def check_sizes(self, dims: Sequence[str], shape: ShapeHandle) -> None:
        """Refuse an input whose dimensions do not have the given sizes."""
        for i, name in _places(dims):
            size = self._given(name)
            if size is not None:
                self.c.with_value(self.c.dim(shape, i), size)

    def shape(self, dims: Sequence[str]) -> ShapeHandle:
        """The shape of an output."""
        if self.rest is None or _REST not in dims:
            return self.c.make_shape([self._dim(name) for name in dims])
        at = dims.index(_REST)
        before, after = self.shape(dims[:at]), self.shape(dims[at + 1 :])
        shape = self.c.concatenate(before, self.rest) if at else self.rest
        return self.c.concatenate(shape, after) if after.dims else shape

    def _dim(self, name: str) -> DimensionOrConstant:
        if name.isidentifier():
            return self.sizes.setdefault(name, self.c.unknown_dim())
        return self._given(name)

    def _given(self, name: str) -> int | None:
        """The size that is written, or that an attr says."""
        if name.startswith("{"):
            size: int = self.c.get_attr(name[1:-1])
            return size
        return int(name) if name.isdigit() else None


def _places(dims: Sequence[str]) -> Iterator[tuple[int, str]]:
    """The dimensions and where they are; those after `...` are counted from the end."""
    at = dims.index(_REST) if _REST in dims else len(dims)
    yield from enumerate(dims[:at])
    yield from ((i - len(dims), dims[i]) for i in range(at + 1, len(dims)))
