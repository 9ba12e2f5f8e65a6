"""Draws the attrs of a node, with values that the OpDef and one of the kernels allow."""

from collections.abc import Mapping, Sequence
from typing import Any

from hypothesis import strategies as st

from opkernel.errors import UnimplementedError
from opkernel.opdef import attr_to_python
from opkernel.proto import KernelDef, OpDef
from opkernel.testing.draw_values import DRAWABLE_TYPES, Draw, draw_tensor
from opkernel.types import DataType, PartialTensorShape

_USUAL_TYPES = [
    DataType.DT_FLOAT,
    DataType.DT_INT32,
    DataType.DT_BOOL,
    DataType.DT_DOUBLE,
    DataType.DT_INT64,
    DataType.DT_STRING,
]
_TEXTS = ["", "a", "{}", "ab", "%s"]
_FLOATS = [0.0, 1.0, 0.5, -1.0, 2.0, 0.125, 6.0, 1e-3]


def draw_attrs(
    draw: Draw, op_def: OpDef, kernel_def: KernelDef, given: Mapping[str, Any]
) -> dict[str, Any]:
    """Attrs by name, as Python values; an attr in `given` is drawn from its strategy, or taken.

    Raises:
        UnimplementedError: an attr is a function, which cannot be drawn.
    """
    attrs: dict[str, Any] = {}
    window = _Window(draw)
    lengths = {arg.number_attr for arg in op_def.input_arg}
    for attr in sorted(op_def.attr, key=lambda attr: attr.type == "tensor"):
        constraint = [c.allowed_values.list for c in kernel_def.constraint if c.name == attr.name]
        if attr.name in given:
            value = given[attr.name]
            attrs[attr.name] = draw(value) if isinstance(value, st.SearchStrategy) else value
        elif attr.type.removeprefix("list(").startswith("type"):
            attrs[attr.name] = _types(draw, attr, [list(one.type) for one in constraint])
        elif attr.name in lengths:
            least = attr.minimum if attr.has_minimum else 0
            attrs[attr.name] = draw(st.integers(least, max(least + 2, 3)))
        elif constraint:
            attrs[attr.name] = draw(st.sampled_from(_allowed(constraint[0])))
        elif attr.HasField("default_value") and draw(st.booleans()) is False:
            attrs[attr.name] = attr_to_python(attr.default_value, attr.type)
        else:
            attrs[attr.name] = _other(draw, attr, attrs, window)
    return attrs


class _Window:
    """Draws lists of one number a dimension of an image or a volume: all of a node are alike.

    Batch and channels have 1; the channels are last, or follow the batch.
    """

    def __init__(self, draw: Draw) -> None:
        self._draw = draw
        self._layout: tuple[int, bool] | None = None

    def sizes(self, least: int) -> list[int]:
        """Sizes, strides, or rates."""
        if self._layout is None:
            ranks = st.sampled_from([2, 2, 3] if least < 5 else [3])
            self._layout = self._draw(ranks), self._draw(st.booleans())
        rank, channels_first = self._layout
        inner = self._draw(st.lists(st.integers(1, 3), min_size=rank, max_size=rank))
        return [1, 1, *inner] if channels_first else [1, *inner, 1]


def _allowed(values: Any) -> list[Any]:
    texts = [text.decode() for text in values.s]
    return [*texts, *values.i, *values.b]


def _types(draw: Draw, attr: OpDef.AttrDef, constraints: Sequence[Sequence[int]]) -> Any:
    """A type, or a list of types, that the op and the kernel allow."""
    allowed = list(attr.allowed_values.list.type) or [int(t) for t in DRAWABLE_TYPES]
    for constraint in constraints:
        allowed = [number for number in allowed if number in constraint]
    types = [DataType(number) for number in allowed if DataType(number) in DRAWABLE_TYPES]
    if not types:
        raise UnimplementedError(f"no type is allowed for attr '{attr.name}' by op and kernel")
    types.sort(key=lambda t: _USUAL_TYPES.index(t) if t in _USUAL_TYPES else int(t) + 100)
    if attr.type == "type":
        return draw(st.sampled_from(types))
    least = attr.minimum if attr.has_minimum else 0
    return draw(st.lists(st.sampled_from(types), min_size=least, max_size=max(least, 3)))


def _other(draw: Draw, attr: OpDef.AttrDef, attrs: Mapping[str, Any], window: _Window) -> Any:
    """A value that is no type, and no length of an argument."""
    if attr.type.startswith("list("):
        return _list(draw, attr, window)
    if attr.type == "tensor":
        dtype = next((v for v in attrs.values() if isinstance(v, DataType)), DataType.DT_FLOAT)
        return draw_tensor(draw, dtype, draw(_SHAPES))
    return draw(_one(attr, attr.type))


def _list(draw: Draw, attr: OpDef.AttrDef, window: _Window) -> list[Any]:
    kind = attr.type.removeprefix("list(").removesuffix(")")
    least = attr.minimum if attr.has_minimum else 0
    if kind == "int" and draw(st.integers(0, 7)):
        return window.sizes(least)
    return draw(st.lists(_one(attr, kind), min_size=least, max_size=max(least, 4)))  # type: ignore[no-any-return]  # st.composite's draw is untyped


def _one(attr: OpDef.AttrDef, kind: str) -> st.SearchStrategy[Any]:
    """Values for one element of an attr."""
    allowed = _allowed(attr.allowed_values.list)
    if allowed:
        return st.sampled_from(allowed)
    if kind == "int":
        least = attr.minimum if attr.has_minimum and not attr.type.startswith("list") else -2
        return st.integers(least, max(least, 0) + 4)
    if kind == "float":
        return st.sampled_from(_FLOATS)
    if kind == "bool":
        return st.booleans()
    if kind == "string":
        return st.sampled_from(_TEXTS)
    if kind == "shape":
        sizes = st.lists(st.sampled_from([None, 1, 2, 3, 0]), max_size=3)
        return st.one_of(st.none(), sizes).map(PartialTensorShape)
    raise UnimplementedError(f"attr '{attr.name}' is of type {attr.type}, which cannot be drawn")


_SHAPES = st.lists(st.integers(0, 3), max_size=3)
