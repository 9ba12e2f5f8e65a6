"""Images and sounds in summaries: PNG and WAV files, each with a tag.

Source: TensorFlow core/summary/summary_converter.cc, core/kernels/summary_image_op.cc, summary_audio_op.cc.
"""

from collections.abc import Iterator
from typing import Any

import numpy as np

from opkernel.device.work_clock import SLOW, in_time
from opkernel.errors import InvalidArgumentError
from opkernel.kernel import check_allocation
from opkernel.ops.audio import encode_wav
from opkernel.ops.image.codecs import MAX_VALUES
from opkernel.ops.image.codecs.encode_ops import encode_png
from opkernel.ops.input_checks import require, require_vector
from opkernel.ops.summary.wire import AUDIO, IMAGE, field, value
from opkernel.proto import Summary
from opkernel.types import DataType, TensorShape

_DEPTHS = (1, 3, 4)
_NEARLY_ZERO = np.float32(1e-6)


def image_values(tag: bytes, images: Any, bad_color: Any, max_images: int) -> Iterator[list[bytes]]:
    """The values of images [batch, height, width, depth], at most `max_images`.

    Images of floats are scaled: to 0 ... 255, or to 1 ... 255 around 128 where some number is negative. A pixel that is
    not finite has the color `bad_color`.

    Raises:
        InvalidArgumentError: the images have another shape or no pixels, or `bad_color` has too few numbers.
    """
    require(
        images.ndim == 4 and images.shape[3] in _DEPTHS,
        f"Tensor must be 4-D with last dim 1, 3, or 4, not {TensorShape(images.shape)}",
    )
    batch, height, width, depth = images.shape
    is_small = height * width < MAX_VALUES
    require(is_small, f"Tensor too large for summary {TensorShape(images.shape)}")
    has_pixels = height * width > 0
    require(has_pixels, f"input tensor must have non-zero dims. Found: {TensorShape(images.shape)}")
    is_scaled = images.dtype != np.uint8
    if is_scaled:
        check_bad_color(bad_color)
        require(
            len(bad_color) >= depth,
            f"expected depth <= bad_color.size, got depth = {depth}, "
            f"bad_color.size = {len(bad_color)}",
        )
    encode = encode_png(compression=-1, T=DataType.DT_UINT8)
    for index in in_time(range(min(max_images, batch)), SLOW):
        image = _scaled(images[index], bad_color[:depth]) if is_scaled else images[index]
        message = Summary.Image(
            height=height,
            width=width,
            colorspace=depth,
            encoded_image_string=encode(image).item(),
        )
        name = tag + (b"/image/%d" % index if max_images > 1 else b"/image")
        yield value(name, field(IMAGE, message.SerializeToString()))


def check_bad_color(bad_color: Any) -> None:
    """Raise InvalidArgumentError unless a color is a vector."""
    require_vector(bad_color, "bad_color must be a vector, got shape {}")


def _scaled(image: Any, bad_color: Any) -> Any:
    """The image as bytes; computed in its own type, with the factor in float32."""
    check_allocation(image.shape, DataType.DT_DOUBLE)
    is_finite = np.isfinite(image).all(axis=-1)
    with np.errstate(all="ignore"):
        finite = image[is_finite].astype(np.float32)
        is_signed = bool((finite < 0).any())
        most = np.abs(finite).max(initial=np.float32(0))
        top = np.float32(127 if is_signed else 255)
        factor = image.dtype.type(top / most if most >= _NEARLY_ZERO else 0)
        shifted = image * factor + image.dtype.type(128 if is_signed else 0)
        whole = np.where(np.isfinite(shifted), shifted, 0).astype(np.int32).astype(np.uint8)
    whole[~is_finite] = bad_color
    return whole


def audio_values(
    tag: bytes, sounds: Any, sample_rate: float, max_outputs: int
) -> Iterator[list[bytes]]:
    """The values of sounds [batch, frames, channels] or [batch, frames], at most `max_outputs`.

    Raises:
        InvalidArgumentError: the sounds have another shape, or no WAV file holds them.
    """
    require(sounds.ndim in (2, 3), f"Tensor must be 3-D or 2-D, got: {TensorShape(sounds.shape)}")
    require(sample_rate > 0, "sample_rate must be > 0")
    sounds = sounds if sounds.ndim == 3 else sounds[..., np.newaxis]
    batch, frames, channels = sounds.shape
    rate = max(int(np.rint(sample_rate)), 1) if np.isfinite(sample_rate) else 1 << 63
    if min(max_outputs, batch) and rate >= 1 << 32:
        raise InvalidArgumentError(f"sample_rate must be in (0, 2^32), got: {rate}")
    for index in in_time(range(min(max_outputs, batch)), SLOW):
        message = Summary.Audio(
            sample_rate=sample_rate,
            num_channels=channels,
            length_frames=frames,
            encoded_audio_string=encode_wav(sounds[index], np.uint32(rate)).item(),
            content_type="audio/wav",
        )
        name = tag + (b"/audio/%d" % index if max_outputs > 1 else b"/audio")
        yield value(name, field(AUDIO, message.SerializeToString()))
