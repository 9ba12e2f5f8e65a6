"""Draws tensors: values by type, simple ones first, so that failures shrink to zeros and ones."""

import functools
from collections.abc import Sequence
from typing import Any

import numpy as np
from hypothesis import strategies as st

from opkernel.types import DataType

Draw = Any
"""The argument that `hypothesis.strategies.composite` gives its functions."""

_NOT_NUMBERS = frozenset({DataType.DT_RESOURCE, DataType.DT_VARIANT, DataType.DT_INVALID})
DRAWABLE_TYPES = tuple(t for t in DataType if not t.is_ref and t not in _NOT_NUMBERS)
"""The types that values can be drawn for, references aside."""

_ORDINARY = 224
"""How many of the 256 bytes stand for ordinary values; the others for special ones."""

_STRINGS = [b"", b"a", b"b", b"ab", b"A", b"0", b"1.5", b" a ", b"\xc3\xa9", b"\xff", b"{}", b"a,b"]


def draw_tensor(draw: Draw, dtype: DataType, shape: Sequence[int]) -> np.ndarray[Any, Any]:
    """An array of any values: small numbers mostly, sometimes with special ones among them."""
    specials = draw(st.integers(0, 7)) == 7 if dtype != DataType.DT_BOOL else False
    return draw_tensor_of(draw, _palette(dtype, specials), shape)


def draw_tensor_of(
    draw: Draw, palette: np.ndarray[Any, Any], shape: Sequence[int]
) -> np.ndarray[Any, Any]:
    """An array of values of a palette of 256, whose first is the simplest."""
    size = int(np.prod(shape, dtype=np.int64))
    chosen = np.frombuffer(draw(st.binary(min_size=size, max_size=size)), np.uint8)
    return np.asarray(palette[chosen]).reshape(tuple(shape))


def draw_indices(
    draw: Draw, dtype: DataType, shape: Sequence[int], others: Sequence[Any]
) -> np.ndarray[Any, Any]:
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


def _some_shape(draw: Draw, size: int, others: Sequence[Any]) -> np.ndarray[Any, Any]:
    """`size` integers: the shape of an input, its end, or sizes of inputs."""
    known = [np.array(shape, np.int64) for shape in others if shape is not None]
    sizes = np.unique(np.concatenate([np.array([1, 2]), *known]))
    of_rank = [shape for shape in known if len(shape) == size]
    total = [int(np.prod(shape)) for shape in known if len(shape)]
    if of_rank and draw(st.booleans()):
        chosen: np.ndarray[Any, Any] = of_rank[draw(st.integers(0, len(of_rank) - 1))]
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
def _palette(dtype: DataType, specials: bool) -> np.ndarray[Any, Any]:
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


def _float_values() -> np.ndarray[Any, Any]:
    simple = [0, 1, 2, 3, -1, -2, 0.5, -0.5, 1.5, 0.25, -0.75, 4, -3, 5]
    varied = np.random.default_rng(1).normal(0, 2, _ORDINARY - len(simple))
    return np.concatenate([simple, varied, simple, simple, simple])[:256]


def _special_values(dtype: DataType) -> np.ndarray[Any, Any]:
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
