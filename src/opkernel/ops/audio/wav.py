"""WAV files of 16 bits a sample: DecodeWav, EncodeWav.

Source: TensorFlow core/ops/audio_ops.cc, core/lib/wav/wav_io.cc.
"""

import struct
from typing import Any

import numpy as np

from opkernel.device.string_tensors import joining, string_tensor
from opkernel.device.work_clock import WorkClock
from opkernel.errors import InvalidArgumentError
from opkernel.kernel import check_allocation, in_pieces
from opkernel.opdef import DimensionHandle, InferenceContext, register_op
from opkernel.opdef.common_shapes.rules import check_scalars
from opkernel.opdef.common_shapes.shape_rule import shape_rule
from opkernel.ops.input_checks import require_equal, require_rank, require_scalar
from opkernel.ops.registration import register_kernel
from opkernel.types import DataType

_SCALE = 32768.0
_PCM = 1
_BITS, _BYTES = 16, 2
_FORMAT = struct.Struct("<HHIIHH")
_OF_CHUNK = 1 << 10
"""The work of finding a chunk."""
_MAX_CHUNK_BYTES = 2**31 - 1
_HEADER_BYTES = 36
"""What follows the size of the file in a header without other chunks."""


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


DECODE_WAV = register_op(
    "DecodeWav",
    inputs=["contents: string"],
    outputs=["audio: float", "sample_rate: int32"],
    attrs=["desired_channels: int = -1", "desired_samples: int = -1"],
    shape_fn=_decode_wav_shape,
    doc=(
        "The samples of a WAV file, between -1 and 1. More channels than the file has repeat its last one; "
        "samples beyond its end are 0."
    ),
)
ENCODE_WAV = register_op(
    "EncodeWav",
    inputs=["audio: float", "sample_rate: int32"],
    outputs=["contents: string"],
    shape_fn=shape_rule("[?, ?], [] -> []"),
    doc="A WAV file of samples [samples, channels], which are clipped to -1 and 1.",
)


class _File:
    """A WAV file, read from its beginning."""

    def __init__(self, data: bytes) -> None:
        self._data, self._at = data, 0

    def take(self, size: int) -> bytes:
        """The next bytes.

        Raises:
            InvalidArgumentError: the file ends before.
        """
        found = self._data[self._at : self._at + size]
        if len(found) < size:
            raise InvalidArgumentError("Data too short when trying to read string")
        self._at += size
        return found

    def expect(self, text: bytes) -> None:
        """Take a text that must stand there."""
        found = self.take(len(text))
        if found != text:
            raise InvalidArgumentError(
                f"Header mismatch: Expected {text.decode()} but found {found.decode('latin-1')}"
            )

    def size(self) -> int:
        """A size of a chunk."""
        return int.from_bytes(self.take(4), "little")

    def skip(self, size: int) -> None:
        """Go on after some bytes, or at the end."""
        self._at += size

    def at_end(self) -> bool:
        """Whether nothing follows."""
        return self._at >= len(self._data)


def _decoded(data: bytes) -> tuple[Any, int]:
    """The samples [samples, channels] as integers, and their rate."""
    file = _File(data)
    file.expect(b"RIFF")
    file.size()  # of the file, which many writers leave wrong
    file.expect(b"WAVE")
    file.expect(b"fmt ")
    channels, rate = _format(file)
    samples, clock = None, WorkClock("reading chunks of a WAV file")
    while not file.at_end():
        clock.spend(_OF_CHUNK)
        name, size = file.take(4), file.size()
        if size > _MAX_CHUNK_BYTES:
            raise InvalidArgumentError(f"WAV data chunk {name!r} is too large: {size} bytes")
        if name != b"data":
            file.skip(size)
            continue
        if samples is not None:
            raise InvalidArgumentError("More than one data chunk found in WAV")
        count = size // (_BYTES * channels)
        content = file.take(count * channels * _BYTES)
        samples = np.frombuffer(content, "<i2").reshape(count, channels)
    if samples is None:
        raise InvalidArgumentError("No data chunk found in WAV")
    return samples, rate


def _format(file: _File) -> tuple[int, int]:
    """The number of channels and the rate, of the chunk that says what the samples are."""
    size = file.size()
    if size not in (_FORMAT.size, _FORMAT.size + 2):
        raise InvalidArgumentError(
            f"Bad format chunk size for WAV: Expected 16 or 18, but got {size}"
        )
    kind, channels, rate, per_second, per_sample, bits = _FORMAT.unpack(file.take(_FORMAT.size))
    require_equal(kind, _PCM, "Bad audio format for WAV: Expected 1 (PCM), but got {}")
    if channels < 1:
        raise InvalidArgumentError("Bad number of channels for WAV: Expected at least 1, but got 0")
    require_equal(bits, _BITS, "Can only read 16-bit WAV files, but received {}")
    require_equal(
        _BYTES * channels, per_sample, "Bad bytes per sample in WAV header: Expected {} but got {}"
    )
    if per_second != per_sample * rate:
        raise InvalidArgumentError(
            f"Bad bytes per second in WAV header: Expected {per_sample * rate} but got {per_second} "
            f"(sample_rate={rate}, bytes_per_sample={per_sample})"
        )
    file.take(size - _FORMAT.size)
    return channels, rate


@register_kernel(DECODE_WAV)
def decode_wav(contents: Any, *, desired_channels: int, desired_samples: int) -> tuple[Any, Any]:
    require_scalar(contents, "contents must be scalar, got shape {}")
    found, rate = _decoded(contents.item())
    count, channels = found.shape
    samples = count if desired_samples < 0 else desired_samples
    wanted = channels if desired_channels < 0 else desired_channels
    audio = np.zeros(check_allocation([samples, wanted], DataType.DT_FLOAT), np.float32)
    kept = found[:samples] / np.float32(_SCALE)
    audio[: len(kept), :channels] = kept[:, :wanted]
    audio[: len(kept), channels:] = kept[:, -1:]
    return audio, np.array(rate, np.uint32).astype(np.int32)


@register_kernel(ENCODE_WAV)
def encode_wav(audio: Any, sample_rate: Any) -> Any:
    require_rank(audio, 2, "audio must be 2-dimensional{}")
    require_scalar(sample_rate, "Input sample_rate should be a scalar tensor, got {} instead.")
    rate, (count, channels) = sample_rate.item(), audio.shape
    if rate <= 0:
        raise InvalidArgumentError(f"sample_rate must be in (0, 2^32), got: {rate}")
    if not 0 < channels < 1 << 16:
        raise InvalidArgumentError(f"num_channels must be in (0, 2^16), got: {channels}")
    size = count * channels * _BYTES
    if size + _HEADER_BYTES >= 1 << 32:
        raise InvalidArgumentError(f"A WAV file cannot hold {size} bytes of samples")
    per_sample = _BYTES * channels
    header = _FORMAT.pack(_PCM, channels, rate, rate * per_sample & 0xFFFFFFFF, per_sample, _BITS)
    parts = [b"RIFF", _size(size + _HEADER_BYTES), b"WAVEfmt ", _size(_FORMAT.size), header]
    samples = in_pieces(_as_integers, audio).reshape(-1).view(np.uint8).data
    return string_tensor((), [joining(b"")([*parts, b"data", _size(size), samples])])


def _size(size: int) -> bytes:
    return size.to_bytes(4, "little")


def _as_integers(audio: Any) -> Any:
    """Rounded half away from zero; NaN is 0."""
    scaled = np.nan_to_num(audio * np.float32(_SCALE), nan=0, posinf=_SCALE, neginf=-_SCALE)
    clipped = np.clip(scaled, -_SCALE, _SCALE - 1)
    return np.trunc(clipped + np.copysign(np.float32(0.5), clipped)).astype("<i2")
