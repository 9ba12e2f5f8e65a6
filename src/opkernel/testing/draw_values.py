"""Draws tensors and attrs: values by type, simple ones first, so that failures shrink to zeros and ones.

Attrs of a node get values that the OpDef and one of the kernels allow.
"""

import functools
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from hypothesis import strategies as st

from opkernel.errors import UnimplementedError
from opkernel.opdef import attr_to_python
from opkernel.proto import KernelDef, OpDef
from opkernel.types import Array, DataType, PartialTensorShape

Draw = Any
"""The argument that `hypothesis.strategies.composite` gives its functions."""

_NOT_NUMBERS = frozenset({DataType.DT_RESOURCE, DataType.DT_VARIANT, DataType.DT_INVALID})
DRAWABLE_TYPES = tuple(t for t in DataType if not t.is_ref and t not in _NOT_NUMBERS)
"""The types that values can be drawn for, references aside."""

_ORDINARY = 224
"""How many of the 256 bytes stand for ordinary values; the others for special ones."""

_STRINGS = [b"", b"a", b"b", b"ab", b"A", b"0", b"1.5", b" a ", b"\xc3\xa9", b"\xff", b"{}", b"a,b"]


def draw_tensor(draw: Draw, dtype: DataType, shape: Sequence[int]) -> Array:
    """An array of any values: small numbers mostly, sometimes with special ones among them."""
    specials = draw(st.integers(0, 7)) == 7 if dtype != DataType.DT_BOOL else False
    return draw_tensor_of(draw, _palette(dtype, specials), shape)


def draw_tensor_of(draw: Draw, palette: Array, shape: Sequence[int]) -> Array:
    """An array of values of a palette of 256, whose first is the simplest."""
    size = int(np.prod(shape, dtype=np.int64))
    chosen = np.frombuffer(draw(st.binary(min_size=size, max_size=size)), np.uint8)
    return np.asarray(palette[chosen]).reshape(tuple(shape))


def draw_indices(draw: Draw, dtype: DataType, shape: Sequence[int], others: Sequence[Any]) -> Array:
    """An array of integers that may be meant as sizes, axes, indices or positions in other inputs.

    Args:
        draw: draws.
        dtype: the integer type.
        shape: of the array.
        others: the shapes of the op's other inputs.
    """
    size = int(np.prod(shape, dtype=np.int64))
    style = draw(st.integers(0, 11))
    if style == 11:
        return draw_tensor(draw, dtype, shape)
    if style >= 7:  # mostly small, and not negative
        values = draw_tensor_of(draw, np.arange(256) % (style - 5), shape)
    elif style == 6:
        values = np.sort(draw_tensor_of(draw, np.arange(256) % 3, shape), axis=None)
    elif style == 5:
        values = draw_tensor_of(draw, np.arange(256) % 7 - 3, shape)
    elif style == 4:
        values = np.array(draw(st.permutations(range(size)))) if size <= 8 else np.arange(size)
    elif style >= 2:
        values = _some_shape(draw, size, others)
    else:
        values = np.full(size, style)
    return np.asarray(values, dtype.numpy_dtype).reshape(tuple(shape))


def _some_shape(draw: Draw, size: int, others: Sequence[Any]) -> Array:
    """`size` integers: the shape of an input, its end, or sizes of inputs."""
    known = [np.array(shape, np.int64) for shape in others if shape is not None]
    sizes = np.unique(np.concatenate([np.array([1, 2]), *known]))
    of_rank = [shape for shape in known if len(shape) == size]
    total = [int(np.prod(shape)) for shape in known if len(shape)]
    if of_rank and draw(st.booleans()):
        chosen: Array = of_rank[draw(st.integers(0, len(of_rank) - 1))]
        return chosen
    if total and size and draw(st.booleans()):  # as many elements, in another shape
        values = np.ones(size, np.int64)
        values[draw(st.integers(0, size - 1))] = total[draw(st.integers(0, len(total) - 1))]
        return values
    return np.array(
        [sizes[draw(st.integers(0, len(sizes) - 1))] for _ in range(min(size, 16))]
        + [1 for _ in range(size - 16)]
    )


@functools.cache
def _palette(dtype: DataType, specials: bool) -> Array:
    """256 values of a type."""
    kind = dtype.numpy_dtype
    if dtype == DataType.DT_STRING:
        palette = np.empty(256, object)
        palette[:] = [_STRINGS[i % len(_STRINGS)] for i in range(256)]
        return palette
    if dtype == DataType.DT_BOOL:
        return np.asarray(np.arange(256) % 2 == 1)
    if dtype.is_complex:
        part = DataType.DT_FLOAT if dtype == DataType.DT_COMPLEX64 else DataType.DT_DOUBLE
        real = _palette(part, specials)
        palette = np.empty(256, kind)
        palette.real, palette.imag = real, np.roll(real, 77)
        return palette
    numbers = _float_values() if dtype.is_floating else np.array([0, 1, 2, 3, -1, -2, 5, 7, 4, -3])
    if not dtype.is_floating:
        low, high = _limits(dtype)
        numbers = np.clip(numbers, low, high)
    palette = np.resize(numbers, 256).astype(kind)
    if specials:
        palette[_ORDINARY:] = np.resize(_special_values(dtype), 256 - _ORDINARY)
    return palette


def _float_values() -> Array:
    simple = [0, 1, 2, 3, -1, -2, 0.5, -0.5, 1.5, 0.25, -0.75, 4, -3, 5]
    varied = np.random.default_rng(1).normal(0, 2, _ORDINARY - len(simple))
    return np.concatenate([simple, varied, simple, simple, simple])[:256]


def _special_values(dtype: DataType) -> Array:
    low, high = _limits(dtype)
    if not dtype.is_floating:
        return np.array([high, low, high - 1, low + 1], dtype.numpy_dtype)
    with np.errstate(all="ignore"):
        values = np.array([np.nan, np.inf, -np.inf, -0.0, high, low, 1e-30, 1e-6, 1e6])
        return values.astype(dtype.numpy_dtype)


def _limits(dtype: DataType) -> tuple[Any, Any]:
    if dtype.is_floating:
        return float(dtype.min), float(dtype.max)
    info = np.iinfo(dtype.numpy_dtype) if dtype.is_quantized else dtype
    return int(info.min), int(info.max)


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
