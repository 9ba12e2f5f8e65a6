"""Tensors from values, shapes and numbers.

Source: TensorFlow python/ops/array_ops.py, math_ops.py, linalg_ops.py, python/framework/tensor_conversion.py.
"""

from __future__ import annotations

import builtins
from typing import Any

import numpy as np

from opkernel import graph, raw_ops
from opkernel.endpoints.tensors import (
    DTypeLike,
    ShapeLike,
    TensorLike,
    all_axes,
    cast_to,
    composed,
    convert,
    dtype_of,
    like,
    shape_of,
    shape_vector,
)
from opkernel.errors import InvalidArgumentError
from opkernel.ops.registration import COMPLEX_OF, REAL_OF
from opkernel.types import DataType, as_dtype


@composed
def convert_to_tensor(
    value: TensorLike,
    dtype: DTypeLike | None = None,
    dtype_hint: DTypeLike | None = None,
    name: str | None = None,
) -> Any:
    """A value as an array; in a graph, as a tensor.

    Args:
        value: a number, text, a list of such or of tensors, an array, a tensor or a variable.
        dtype: the type wanted; a tensor or array of another type is refused.
        dtype_hint: the type wanted if the value can have it.
        name: a name for the scope of nodes in a graph.

    Raises:
        InvalidArgumentError: the value makes no tensor of `dtype`.
    """
    if dtype is None and dtype_hint is not None:
        try:
            return convert(value, dtype_hint)
        except InvalidArgumentError:
            pass
    return convert(value, dtype)


@composed
def cast(x: TensorLike, dtype: DTypeLike, name: str | None = None) -> Any:
    """A tensor with its elements as another type. Floats become integers by dropping the fraction."""
    return cast_to(x, dtype)


@composed
def saturate_cast(value: TensorLike, dtype: DTypeLike, name: str | None = None) -> Any:
    """`cast`, where numbers that the type cannot hold become its lowest or highest number."""
    x, wanted = convert(value), as_dtype(dtype)
    if dtype_of(x).is_complex:
        x = raw_ops.Real(input=x, Tout=REAL_OF[dtype_of(x)])
    if wanted.is_complex or wanted.is_bool or dtype_of(x).is_bool:
        return cast_to(x, wanted)
    low, high = _limits_within(dtype_of(x), wanted)
    if low is not None:
        x = raw_ops.Maximum(x=x, y=low)
    if high is not None:
        x = raw_ops.Minimum(x=x, y=high)
    return cast_to(x, wanted)


def _limits_within(source: DataType, wanted: DataType) -> tuple[Any, Any]:
    """The limits of `wanted` as numbers of `source`; None where `source` has no number beyond."""
    kept = source.numpy_dtype
    limits: list[Any] = []
    for limit, own, is_low in (
        (wanted.min, source.min, True),
        (wanted.max, source.max, False),
    ):
        if (own >= limit) if is_low else (own <= limit):
            limits.append(None)
            continue
        number = np.array(limit, kept)
        if source.is_floating and wanted.is_integer and (int(number) > limit) is not is_low:
            number = number if int(number) == limit else np.nextafter(number, np.array(0, kept))
        limits.append(number)
    return limits[0], limits[1]


@composed
def complex(real: TensorLike, imag: TensorLike, name: str | None = None) -> Any:
    """Complex numbers from real and imaginary parts, both float32 or both float64.

    Raises:
        TypeError: the parts have other types.
    """
    x = convert(real)
    y = convert(imag)
    wanted = COMPLEX_OF.get(dtype_of(x))
    if wanted is None or dtype_of(x) != dtype_of(y):
        raise TypeError(
            f"complex takes two tensors of float32 or two of float64, and got "
            f"{dtype_of(x).tf_name} and {dtype_of(y).tf_name}"
        )
    return raw_ops.Complex(real=x, imag=y, Tout=wanted)


def _filled(shape: Any, dtype: DTypeLike, number: int) -> Any:
    wanted = as_dtype(dtype)
    if wanted == DataType.DT_STRING:
        value: Any = np.array(b"" if number == 0 else str(number).encode(), object)
    else:
        value = np.array(number, wanted.numpy_dtype)
    return raw_ops.Fill(dims=shape_vector(shape), value=value)


def _check_layout(layout: Any) -> None:
    if layout is not None:
        raise InvalidArgumentError("layout is for DTensors, which opkernel does not have: omit it")


@composed
def zeros(
    shape: ShapeLike,
    dtype: DTypeLike = DataType.DT_FLOAT,
    name: str | None = None,
    layout: None = None,
) -> Any:
    """A tensor of zeros: False for bool, empty strings for string."""
    _check_layout(layout)
    return _filled(shape, dtype, 0)


@composed
def ones(
    shape: ShapeLike,
    dtype: DTypeLike = DataType.DT_FLOAT,
    name: str | None = None,
    layout: None = None,
) -> Any:
    """A tensor of ones: True for bool."""
    _check_layout(layout)
    return _filled(shape, dtype, 1)


@composed
def zeros_like(
    input: TensorLike, dtype: DTypeLike | None = None, name: str | None = None, layout: None = None
) -> Any:
    """Zeros in the shape of a tensor, of its type unless `dtype` gives another."""
    _check_layout(layout)
    x = convert(input)
    if dtype is None or as_dtype(dtype) == dtype_of(x):
        return raw_ops.ZerosLike(x=x)
    return _filled(shape_of(x), dtype, 0)


@composed
def ones_like(
    input: TensorLike, dtype: DTypeLike | None = None, name: str | None = None, layout: None = None
) -> Any:
    """Ones in the shape of a tensor, of its type unless `dtype` gives another."""
    _check_layout(layout)
    x = convert(input)
    return _filled(shape_of(x), dtype_of(x) if dtype is None else dtype, 1)


@composed
def fill(dims: ShapeLike, value: TensorLike, name: str | None = None, layout: None = None) -> Any:
    """A tensor of the shape `dims` that has a scalar everywhere."""
    _check_layout(layout)
    return raw_ops.Fill(dims=shape_vector(dims), value=value)


@composed
def one_hot(
    indices: TensorLike,
    depth: TensorLike,
    on_value: TensorLike | None = None,
    off_value: TensorLike | None = None,
    axis: int | None = None,
    dtype: DTypeLike | None = None,
    name: str | None = None,
) -> Any:
    """A new axis of size `depth` that has `on_value` at each index, and `off_value` elsewhere.

    Args:
        indices: uint8, int8, int32 or int64; others than 0 to `depth` - 1 give `off_value` only.
        depth: the size of the axis, a scalar.
        on_value: a scalar; 1 if None.
        off_value: a scalar; 0 if None.
        axis: where the axis stands; last if None.
        dtype: the type; that of the values if None, and float32 where there are no values.
        name: a name for the scope of nodes in a graph.

    Raises:
        TypeError: the values have different types, or others than `dtype`.
    """
    values = [value for value in (on_value, off_value) if value is not None]
    if dtype is not None:
        wanted = as_dtype(dtype)
        given = [like(value, wanted) for value in values]
    else:
        given = [convert(value) for value in values]
        wanted = dtype_of(given[0]) if given else DataType.DT_FLOAT
    if any(dtype_of(value) != wanted for value in given):
        found = ", ".join(dtype_of(value).tf_name for value in given)
        raise TypeError(f"one_hot takes values of one type, {wanted.tf_name}, and got {found}")
    on = given[0] if on_value is not None else np.array(1, wanted.numpy_dtype)
    off = given[-1] if off_value is not None else np.array(0, wanted.numpy_dtype)
    return raw_ops.OneHot(
        indices=indices, depth=depth, on_value=on, off_value=off, axis=-1 if axis is None else axis
    )


_RANKED = (DataType.DT_INT32, DataType.DT_INT64, DataType.DT_FLOAT, DataType.DT_DOUBLE)


@composed
def range(
    start: TensorLike,
    limit: TensorLike | None = None,
    delta: TensorLike = 1,
    dtype: DTypeLike | None = None,
    name: str | None = "range",
) -> Any:
    """The numbers from `start` up to, and without, `limit`, `delta` apart.

    With one argument they count from 0 to it. The type is `dtype`, or the widest of the arguments' in
    the order int32, int64, float32, float64.
    """
    begin, end = (0, start) if limit is None else (start, limit)
    wanted = None if dtype is None else as_dtype(dtype)
    if wanted is None:
        parts = [convert(part) for part in (begin, end, delta)]
        found = [dtype_of(part) for part in parts]
        if all(dtype in _RANKED for dtype in found):
            wanted = max(found, key=_RANKED.index)
    else:
        parts = [like(part, wanted) for part in (begin, end, delta)]
    if wanted is not None:
        parts = [cast_to(part, wanted) for part in parts]
    return raw_ops.Range(start=parts[0], limit=parts[1], delta=parts[2])


@composed
def linspace(
    start: TensorLike,
    stop: TensorLike,
    num: TensorLike,
    name: str | None = None,
    axis: int = 0,
) -> Any:
    """`num` numbers at equal distances from `start` to `stop`, both included.

    Args:
        start: a number, or a tensor of them. Integers become float64.
        stop: the last numbers, of the same type and shape.
        num: how many, a scalar.
        name: a name for the scope of nodes in a graph.
        axis: the new axis along which the numbers run.
    """
    first = convert(start)
    last = like(stop, dtype_of(first))
    if dtype_of(first).is_integer:
        first, last = cast_to(first, DataType.DT_DOUBLE), cast_to(last, DataType.DT_DOUBLE)
    shape = raw_ops.BroadcastArgs(s0=shape_of(first), s1=shape_of(last))
    first = raw_ops.ExpandDims(input=raw_ops.BroadcastTo(input=first, shape=shape), axis=axis)
    last = raw_ops.ExpandDims(input=raw_ops.BroadcastTo(input=last, shape=shape), axis=axis)
    count = cast_to(num, DataType.DT_INT32)
    steps = raw_ops.Maximum(x=raw_ops.Sub(x=count, y=np.int32(1)), y=np.int32(1))
    delta = raw_ops.RealDiv(x=raw_ops.Sub(x=last, y=first), y=cast_to(steps, dtype_of(first)))
    where = cast_to(
        raw_ops.Range(start=np.int32(1), limit=raw_ops.Maximum(x=steps, y=np.int32(1)), delta=1),
        dtype_of(first),
    )
    where = _along(where, raw_ops.AddV2(x=raw_ops.Size(input=shape), y=np.int32(1)), axis)
    between = raw_ops.AddV2(x=first, y=raw_ops.Mul(x=delta, y=where))
    joined = raw_ops.ConcatV2(values=[first, between, last], axis=axis)
    return _first_along(joined, count, axis)


def _along(vector: Any, rank: Any, axis: int) -> Any:
    """A vector as a tensor of `rank` that runs along `axis`."""
    place = raw_ops.FloorMod(x=np.int32(axis), y=rank)
    is_axis = raw_ops.Equal(x=raw_ops.Range(start=0, limit=rank, delta=1), y=place)
    shape = raw_ops.SelectV2(condition=is_axis, t=np.int32(-1), e=np.int32(1))
    return raw_ops.Reshape(tensor=vector, shape=shape)


def _first_along(x: Any, count: Any, axis: int) -> Any:
    """The first `count` entries along an axis."""
    indices = raw_ops.Range(start=np.int32(0), limit=count, delta=np.int32(1))
    return raw_ops.GatherV2(params=x, indices=indices, axis=axis)


@composed
def sequence_mask(
    lengths: TensorLike,
    maxlen: TensorLike | None = None,
    dtype: DTypeLike = DataType.DT_BOOL,
    name: str | None = None,
) -> Any:
    """A new last axis of size `maxlen` that is true up to each length, and false from there on.

    `maxlen` is a scalar; the greatest length if None.
    """
    lengths = convert(lengths)
    if maxlen is None:
        maxlen = raw_ops.Max(input=lengths, axis=all_axes(lengths))
        maxlen = raw_ops.Maximum(x=np.array(0, dtype_of(lengths).numpy_dtype), y=maxlen)
    maxlen = convert(maxlen)
    one = np.array(1, dtype_of(maxlen).numpy_dtype)
    numbers = raw_ops.Range(start=one - one, limit=maxlen, delta=one)
    ends = cast_to(raw_ops.ExpandDims(input=lengths, axis=-1), dtype_of(maxlen))
    mask = raw_ops.Less(x=numbers, y=ends)
    return cast_to(mask, dtype)


@composed
def meshgrid(*args: TensorLike, **kwargs: Any) -> list[Any]:
    """Grids of coordinates: for each of N vectors a tensor of rank N in which it runs along its axis.

    Args:
        args: the vectors; scalars count as vectors of one element.
        kwargs: `indexing`, "xy" (the first two axes change places) or "ij"; `name`.

    Raises:
        TypeError: there is another keyword.
        ValueError: `indexing` is something else, or an argument has more than one axis.
    """
    indexing = kwargs.pop("indexing", "xy")
    kwargs.pop("name", None)
    if kwargs:
        raise TypeError(f"meshgrid takes indexing and name, and got {', '.join(sorted(kwargs))}")
    if indexing not in ("xy", "ij"):
        raise ValueError(f'indexing is "xy" or "ij", and not {indexing!r}')
    vectors = [raw_ops.Reshape(tensor=convert(x), shape=np.array([-1], np.int32)) for x in args]
    places = [*builtins.range(len(vectors))]
    if indexing == "xy" and len(places) > 1:
        places[:2] = 1, 0
    sizes: list[Any] = [None] * len(vectors)
    for vector, place in zip(vectors, places, strict=True):
        sizes[place] = raw_ops.Size(input=vector)
    return [_grid(vector, place, sizes) for vector, place in zip(vectors, places, strict=True)]


def _grid(vector: Any, place: int, sizes: list[Any]) -> Any:
    shape = [1] * len(sizes)
    shape[place] = -1
    return raw_ops.BroadcastTo(
        input=raw_ops.Reshape(tensor=vector, shape=np.array(shape, np.int32)),
        shape=raw_ops.Pack(values=sizes),
    )


def constant(
    value: TensorLike, dtype: DTypeLike | None = None, shape: Any = None, name: str = "Const"
) -> Any:
    """A tensor that holds a value; outside of all graphs, an array. See `opkernel.constant`."""
    return graph.constant(value, dtype, shape, name)
