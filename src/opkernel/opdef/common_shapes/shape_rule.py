"""`shape_rule`: a shape function written as the dimensions of the inputs and outputs.

    shape_fn=shape_rule("[batch, classes], [batch] -> [batch], [batch, classes]")

A dimension is a name, a size, `{attr}` for the size that an int attr says, or `?` for an unknown one. Dimensions of
one name are equal. `...` stands for the same dimensions everywhere. `_` is an input of any shape, and so are
inputs beyond the text. An output `in0` has the shape of input 0.
"""

import re
from collections.abc import Iterator, Sequence

from opkernel.opdef.core.op_def_builder import OpShapeInferenceFn
from opkernel.opdef.shapes.inference_context import InferenceContext
from opkernel.opdef.shapes.shape_handles import DimensionHandle, DimensionOrConstant, ShapeHandle

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
