"""Shapes of sound: WAV files, spectrograms and features.

Source: TensorFlow core/ops/audio_ops.cc, lite/experimental/microfrontend/ops.
"""

from opkernel.errors import InvalidArgumentError
from opkernel.opdef import DimensionHandle, InferenceContext, OpShapeInferenceFn
from opkernel.ops.declared.rules import check_scalars, fixed_shapes

__all__ = ["SHAPE_FNS"]


def _decode_wav_shape(c: InferenceContext) -> None:
    """A file -> samples [samples, channels] and their rate; the attrs may say how many."""
    check_scalars(c, 0)
    channels, samples = (_desired(c, name) for name in ("channels", "samples"))
    c.set_output(0, c.matrix(samples, channels))
    c.set_output(1, c.scalar())


def _desired(c: InferenceContext, name: str) -> DimensionHandle:
    size = c.get_attr(f"desired_{name}")
    if size < -1:
        raise InvalidArgumentError(f"{name} must be non-negative, got {size}")
    return c.make_dim(size)


def _spectrogram_shape(c: InferenceContext) -> None:
    """[samples, channels] -> [channels, windows, frequencies]."""
    sound = c.with_rank(c.input(0), 2)
    window, stride = c.get_attr("window_size"), c.get_attr("stride")
    if window <= 1:
        raise InvalidArgumentError(f"window size must be > 1, got {window}")
    if stride <= 0:
        raise InvalidArgumentError(f"stride must be strictly positive, got {stride}")
    length, channels = c.dim(sound, 0), c.dim(sound, 1)
    windows = None
    if c.value_known(length):
        windows = max(0, (length.value - window) // stride + 1)
    transform_length = 1 << (window - 1).bit_length()
    c.set_output(0, c.make_shape([channels, windows, transform_length // 2 + 1]))


def _mfcc_shape(c: InferenceContext) -> None:
    """A spectrogram [channels, windows, frequencies] -> [channels, windows, coefficients]."""
    spectrogram = c.with_rank(c.input(0), 3)
    check_scalars(c, 1)
    count = c.get_attr("dct_coefficient_count")
    c.set_output(0, c.make_shape([c.dim(spectrogram, 0), c.dim(spectrogram, 1), count]))


def _microfrontend_shape(c: InferenceContext) -> None:
    """[samples] -> features [frames, channels], each with those of the frames around it.

    As in TensorFlow, a sound of unknown length counts as one that is shorter than a window.
    """
    samples = c.dim(c.with_rank(c.input(0), 1), 0)
    per_millisecond = _quotient(c.get_attr("sample_rate"), 1000)
    window = c.get_attr("window_size") * per_millisecond
    step = c.get_attr("window_step") * per_millisecond
    frames = c.make_dim(0)
    if samples.value >= window:
        frames = c.divide(c.subtract(samples, window), step, evenly_divisible=False)
        frames = c.add(c.divide(frames, c.get_attr("frame_stride"), evenly_divisible=False), 1)
    stacked = 1 + c.get_attr("left_context") + c.get_attr("right_context")
    features = c.multiply(c.make_dim(c.get_attr("num_channels")), stacked)
    c.set_output(0, c.matrix(frames, features))


def _quotient(dividend: int, divisor: int) -> int:
    """Division that rounds towards zero."""
    return dividend // divisor if dividend >= 0 else -(-dividend // divisor)


SHAPE_FNS: dict[str, OpShapeInferenceFn] = {
    "AudioMicrofrontend": _microfrontend_shape,
    "AudioSpectrogram": _spectrogram_shape,
    "DecodeWav": _decode_wav_shape,
    "EncodeWav": fixed_shapes((), input_ranks=(2, 0)),
    "Mfcc": _mfcc_shape,
}
