"""Windows of weights.

Source: TensorFlow python/ops/signal/window_ops.py.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from opkernel import raw_ops
from opkernel.endpoints.tensors import (
    DTypeLike,
    TensorLike,
    cast_to,
    composed,
    convert,
    known_number,
)
from opkernel.types import DataType, as_dtype


def _typed(dtype: DTypeLike) -> DataType:
    wanted = as_dtype(dtype)
    if not wanted.is_floating:
        raise ValueError(f"A window has floating-point numbers, and not {wanted.tf_name}")
    return wanted


def _raised_cosine(length: Any, periodic: Any, dtype: DTypeLike, a: float) -> Any:
    wanted, size = _typed(dtype), known_number(length, "window_length")
    if size == 1:
        return convert(np.ones(1, wanted.numpy_dtype))
    n = size - 1 + (bool(periodic) and size % 2 == 0)
    angles = np.arange(size) * (2 * math.pi / n)
    return convert((a - (1 - a) * np.cos(angles)).astype(wanted.numpy_dtype))


@composed
def hann_window(
    window_length: TensorLike,
    periodic: bool = True,
    dtype: DTypeLike = DataType.DT_FLOAT,
    name: str | None = None,
) -> Any:
    """The Hann window.

    Args:
        window_length: how many weights.
        periodic: leave out the last of one more weight, for spectra; otherwise the window is symmetric.
        dtype: a floating type.
        name: a name for the scope of nodes in a graph.

    Raises:
        ValueError: the type is not floating.
    """
    return _raised_cosine(window_length, periodic, dtype, 0.5)


@composed
def hamming_window(
    window_length: TensorLike,
    periodic: bool = True,
    dtype: DTypeLike = DataType.DT_FLOAT,
    name: str | None = None,
) -> Any:
    """The Hamming window; the arguments are those of hann_window."""
    return _raised_cosine(window_length, periodic, dtype, 0.54)


@composed
def kaiser_window(
    window_length: TensorLike,
    beta: TensorLike = 12.0,
    dtype: DTypeLike = DataType.DT_FLOAT,
    name: str | None = None,
) -> Any:
    """The Kaiser window; the larger `beta`, the narrower."""
    wanted, size = _typed(dtype), known_number(window_length, "window_length")
    if size == 1:
        return convert(np.ones(1, wanted.numpy_dtype))
    half = (size - 1) / 2
    places = (np.arange(size) - half) / half
    roots = np.sqrt(np.maximum(1 - places**2, 0)).astype(wanted.numpy_dtype)
    width = cast_to(beta, wanted)
    inside = raw_ops.Mul(x=width, y=roots)
    decay = raw_ops.Exp(x=raw_ops.Sub(x=inside, y=width))
    ratio = raw_ops.RealDiv(x=raw_ops.BesselI0e(x=inside), y=raw_ops.BesselI0e(x=width))
    return raw_ops.Mul(x=decay, y=ratio)


@composed
def kaiser_bessel_derived_window(
    window_length: TensorLike,
    beta: TensorLike = 12.0,
    dtype: DTypeLike = DataType.DT_FLOAT,
    name: str | None = None,
) -> Any:
    """The window of a modified discrete cosine transform that comes from a Kaiser window."""
    half = known_number(window_length, "window_length") // 2
    sums = raw_ops.Cumsum(x=kaiser_window(half + 1, beta, dtype), axis=0)
    rising = raw_ops.Sqrt(x=raw_ops.RealDiv(x=sums[:-1], y=sums[-1]))
    falling = raw_ops.ReverseV2(tensor=rising, axis=np.array([0], np.int32))
    return raw_ops.ConcatV2(values=[rising, falling], axis=0)


@composed
def vorbis_window(
    window_length: TensorLike, dtype: DTypeLike = DataType.DT_FLOAT, name: str | None = None
) -> Any:
    """The window of Vorbis files."""
    wanted, size = _typed(dtype), known_number(window_length, "window_length")
    slopes = np.sin(math.pi / size * (np.arange(size) + 0.5)) ** 2
    return convert(np.sin(math.pi / 2 * slopes).astype(wanted.numpy_dtype))
