"""Fourier and cosine transforms.

Source: TensorFlow python/ops/signal/fft_ops.py, dct_ops.py.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from opkernel import raw_ops
from opkernel.endpoints.tensors import (
    TensorLike,
    cast_to,
    composed,
    convert,
    dtype_of,
    known_rank,
    number_like,
    shape_of,
)
from opkernel.ops.registration import COMPLEX_OF, REAL_OF
from opkernel.types import DataType


def _padded(x: Any, n: int, lengths: Any, *, is_half: bool) -> Any:
    """A tensor with zeros at the end of its last `n` axes, up to the length of a transform."""
    wanted = lengths
    if is_half:
        wanted = raw_ops.ConcatV2(
            values=[lengths[:-1], lengths[-1:] // np.int32(2) + np.int32(1)], axis=0
        )
    more = raw_ops.Maximum(x=raw_ops.Sub(x=wanted, y=shape_of(x)[-n:]), y=np.int32(0))
    if isinstance(more, np.ndarray) and not more.any():
        return x
    rank = known_rank(x, "A transform")
    ends = raw_ops.ConcatV2(values=[np.zeros(rank - n, np.int32), more], axis=0)
    return raw_ops.Pad(
        input=x, paddings=raw_ops.Pack(values=[np.zeros(rank, np.int32), ends], axis=1)
    )


def _of_real(op: Callable[..., Any], n: int, value: Any, fft_length: Any) -> Any:
    x = convert(value)
    if dtype_of(x) not in COMPLEX_OF:
        raise ValueError(
            f"A real transform takes float32 or float64, and not {dtype_of(x).tf_name}"
        )
    if fft_length is None:
        lengths = cast_to(shape_of(x)[-n:], DataType.DT_INT32)
    else:
        lengths = cast_to(fft_length, DataType.DT_INT32)
        x = _padded(x, n, lengths, is_half=False)
    return op(input=x, fft_length=lengths, Tcomplex=COMPLEX_OF[dtype_of(x)])


def _to_real(op: Callable[..., Any], n: int, value: Any, fft_length: Any) -> Any:
    x = convert(value)
    if dtype_of(x) not in REAL_OF:
        raise ValueError(f"The transform takes complex numbers, and not {dtype_of(x).tf_name}")
    if fft_length is None:
        sizes = cast_to(shape_of(x)[-n:], DataType.DT_INT32)
        last = raw_ops.Maximum(x=(sizes[-1:] - np.int32(1)) * np.int32(2), y=np.int32(0))
        lengths = raw_ops.ConcatV2(values=[sizes[:-1], last], axis=0)
    else:
        lengths = cast_to(fft_length, DataType.DT_INT32)
        x = _padded(x, n, lengths, is_half=True)
    return op(input=x, fft_length=lengths, Treal=REAL_OF[dtype_of(x)])


@composed
def rfft(input_tensor: TensorLike, fft_length: Any = None, name: str | None = None) -> Any:
    """The Fourier transform of real numbers along the last axis: the first half, and one more.

    `fft_length` is a vector of one length, to which the axis is cut, or padded with zeros.
    """
    return _of_real(raw_ops.RFFT, 1, input_tensor, fft_length)


@composed
def rfft2d(input_tensor: TensorLike, fft_length: Any = None, name: str | None = None) -> Any:
    """The Fourier transform of real numbers over the last two axes; see rfft."""
    return _of_real(raw_ops.RFFT2D, 2, input_tensor, fft_length)


@composed
def rfft3d(input_tensor: TensorLike, fft_length: Any = None, name: str | None = None) -> Any:
    """The Fourier transform of real numbers over the last three axes; see rfft."""
    return _of_real(raw_ops.RFFT3D, 3, input_tensor, fft_length)


@composed
def irfft(input_tensor: TensorLike, fft_length: Any = None, name: str | None = None) -> Any:
    """The inverse of rfft; the result has an even length unless `fft_length` says otherwise."""
    return _to_real(raw_ops.IRFFT, 1, input_tensor, fft_length)


@composed
def irfft2d(input_tensor: TensorLike, fft_length: Any = None, name: str | None = None) -> Any:
    """The inverse of rfft2d; see irfft."""
    return _to_real(raw_ops.IRFFT2D, 2, input_tensor, fft_length)


@composed
def irfft3d(input_tensor: TensorLike, fft_length: Any = None, name: str | None = None) -> Any:
    """The inverse of rfft3d; see irfft."""
    return _to_real(raw_ops.IRFFT3D, 3, input_tensor, fft_length)


def _shifted(x: Any, axes: Any, sign: int) -> Any:
    values = convert(x)
    rank = known_rank(values, "A shift")
    places = [*range(rank)] if axes is None else np.ravel(np.asarray(axes)).tolist()
    shape = shape_of(values)
    shifts = [shape[axis] // np.int32(2) * np.int32(sign) for axis in places]
    return raw_ops.Roll(
        input=values, shift=raw_ops.Pack(values=shifts), axis=np.array(places, np.int32)
    )


@composed
def fftshift(x: TensorLike, axes: Any = None, name: str | None = None) -> Any:
    """The frequency 0 moved from the beginning to the middle of axes, all if None."""
    return _shifted(x, axes, 1)


@composed
def ifftshift(x: TensorLike, axes: Any = None, name: str | None = None) -> Any:
    """The inverse of fftshift."""
    return _shifted(x, axes, -1)


def _check_dct(kind: int, axis: int, n: int | None, norm: str | None) -> None:
    if kind not in (1, 2, 3, 4):
        raise ValueError(f"The types of a DCT are 1, 2, 3 and 4, and not {kind}")
    if axis != -1:
        raise NotImplementedError(f"A DCT runs along the last axis, and not {axis}")
    if n is not None and n < 1:
        raise ValueError(f"n is positive, and not {n}")
    if norm not in (None, "ortho"):
        raise ValueError(f'norm is None or "ortho", and not {norm!r}')
    if norm == "ortho" and kind == 1:
        raise ValueError("The DCT of type 1 has no orthonormal form")


def _turns(size: int, factor: float, like: Any) -> Any:
    """`2 * exp(i * factor * k / size)` for each k."""
    angles = np.arange(size) * (factor / size)
    return (2 * np.exp(1j * angles)).astype(COMPLEX_OF[dtype_of(like)].numpy_dtype)


def _weights(size: int, first: float, others: float, like: Any) -> Any:
    return np.array([first, *[others] * (size - 1)], dtype_of(like).numpy_dtype)


@composed
def dct(
    input: TensorLike,
    type: int = 2,
    n: int | None = None,
    axis: int = -1,
    norm: str | None = None,
    name: str | None = None,
) -> Any:
    """The discrete cosine transform along the last axis.

    Args:
        input: float32 or float64 numbers, whose last axis has a known size.
        type: 1, 2, 3 or 4.
        n: the length, to which the axis is cut, or padded with zeros.
        axis: -1.
        norm: None, or "ortho" for a transform that keeps lengths of vectors.
        name: a name for the scope of nodes in a graph.

    Raises:
        ValueError: an argument is not one of these.
    """
    _check_dct(type, axis, n, norm)
    x = convert(input)
    size = int(shape_of(x)[-1])
    if n is not None and n < size:
        x = x[..., :n]
    elif n is not None and n > size:
        pairs = [[0, 0]] * (known_rank(x, "dct") - 1)
        x = raw_ops.Pad(input=x, paddings=np.array([*pairs, [0, n - size]], np.int32))
    size = size if n is None else n
    if type == 1:
        if size < 2:
            raise ValueError("The DCT of type 1 takes two numbers or more")
        both = raw_ops.ConcatV2(values=[x, x[..., -2:0:-1]], axis=-1)
        return _real(rfft(both))
    if type == 3:
        return _third(x, size, norm)
    if type == 4:
        found = dct(x, 2, 2 * size)[..., 1::2]
        return found * number_like(x, math.sqrt(0.5 / size)) if norm else found
    spectrum = rfft(x, [2 * size])[..., :size]
    found = _real(spectrum * _turns(size, -math.pi / 2, x))
    if norm is None:
        return found
    return found * _weights(size, 0.5 / math.sqrt(size), math.sqrt(0.5 / size), x)


def _real(x: Any) -> Any:
    return raw_ops.Real(input=x, Tout=REAL_OF[dtype_of(x)])


def _third(x: Any, size: int, norm: str | None) -> Any:
    """The DCT of type 3: the inverse of that of type 2."""
    if norm is None:
        scaled = x * number_like(x, size)
    else:
        scaled = x * _weights(size, math.sqrt(size), math.sqrt(size / 2), x)
    wide = raw_ops.Cast(x=scaled, DstT=COMPLEX_OF[dtype_of(x)])
    return irfft(wide * _turns(size, math.pi / 2, x), [2 * size])[..., :size]


@composed
def idct(
    input: TensorLike,
    type: int = 2,
    n: int | None = None,
    axis: int = -1,
    norm: str | None = None,
    name: str | None = None,
) -> Any:
    """The inverse of dct, but for a factor of twice the length where `norm` is None.

    Raises:
        ValueError: an argument is not one of those of dct.
    """
    _check_dct(type, axis, n, norm)
    return dct(input, {1: 1, 2: 3, 3: 2, 4: 4}[type], n, axis, norm)
