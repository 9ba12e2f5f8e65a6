"""AudioSpectrogram: the strengths of frequencies in windows of a sound.

Source: TensorFlow core/kernels/spectrogram.cc, spectrogram_op.cc.
"""

from typing import Any

import numpy as np

from opkernel.errors import InvalidArgumentError
from opkernel.kernel import check_allocation
from opkernel.opdef import InferenceContext, register_op
from opkernel.ops.registration import register_kernel
from opkernel.types import DataType, TensorShape

_WINDOWS_AT_ONCE = 1 << 16
"""So many samples are transformed together, in windows."""


def _spectrogram_shape(c: InferenceContext) -> None:
    """[samples, channels] -> [channels, windows, frequencies]."""
    sound = c.with_rank(c.input(0), 2)
    window, stride = c.get_attr("window_size"), c.get_attr("stride")
    if window <= 1:
        raise InvalidArgumentError(f"window size must be > 1, got {window}")
    if stride <= 0:
        raise InvalidArgumentError(f"stride must be strictly positive, got {stride}")
    length, channels = c.dim(sound, 0), c.dim(sound, 1)
    windows = _number_of_windows(length.value, window, stride) if c.value_known(length) else None
    c.set_output(0, c.make_shape([channels, windows, _transform_length(window) // 2 + 1]))


def _transform_length(window: int) -> int:
    return 1 << (window - 1).bit_length()


def _number_of_windows(length: int, window: int, stride: int) -> int:
    return max(0, (length - window) // stride + 1)


AUDIO_SPECTROGRAM = register_op(
    "AudioSpectrogram",
    inputs=["input: float"],
    outputs=["spectrogram: float"],
    attrs=["window_size: int", "stride: int", "magnitude_squared: bool = false"],
    shape_fn=_spectrogram_shape,
    doc="The magnitudes of frequencies in Hann windows of a sound [samples, channels], or their squares.",
)


@register_kernel(AUDIO_SPECTROGRAM, device="CPU")
def audio_spectrogram(
    tensor: Any, *, window_size: int, stride: int, magnitude_squared: bool
) -> Any:
    if tensor.ndim != 2:
        raise InvalidArgumentError(f"input must be 2-dimensional{TensorShape(tensor.shape)}")
    if window_size < 2 or stride < 1:
        raise InvalidArgumentError(
            f"Spectrogram initialization failed for window size {window_size} and stride {stride}"
        )
    length, channels = tensor.shape
    count, size = _number_of_windows(length, window_size, stride), _transform_length(window_size)
    shape = check_allocation([channels, count, size // 2 + 1], DataType.DT_FLOAT)
    result = np.empty(shape, np.float32)
    if not result.size:
        return result
    hann = 0.5 - 0.5 * np.cos(2 * np.pi / window_size * np.arange(window_size))
    windows = np.lib.stride_tricks.sliding_window_view(tensor, window_size, axis=0)[::stride]
    step = max(1, _WINDOWS_AT_ONCE // size)
    for start in range(0, count, step):
        some = windows[start : start + step].swapaxes(0, 1) * hann
        transformed = np.fft.rfft(some, size)
        squares = (transformed.real**2 + transformed.imag**2).astype(np.float32)
        result[:, start : start + step] = squares if magnitude_squared else np.sqrt(squares)
    return result
