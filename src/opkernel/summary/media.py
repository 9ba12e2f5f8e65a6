"""Summaries of images and sounds, in the form that TensorBoard's plugins read.

Source: TensorBoard plugins/image/summary_v2.py, plugins/audio/summary_v2.py, plugins/audio/plugin_data.proto.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from opkernel import raw_ops
from opkernel.endpoints.image import convert_image_dtype
from opkernel.endpoints.tensors import cast_to, convert, static_rank, static_shape
from opkernel.errors import InvalidArgumentError
from opkernel.messages import short_repr
from opkernel.summary.values import write_for_plugin
from opkernel.types import DataType

_ENCODED_AS_WAV = b"\x10\x0b"
"""An AudioPluginData whose `encoding` is WAV."""


def image(
    name: str,
    data: Any,
    step: Any = None,
    max_outputs: int = 3,
    description: str | None = None,
) -> bool:
    """Write images as PNG files; as `opkernel.summary.write`.

    Args:
        name: The tag.
        data: Images [batch, height, width, channels] of 1 to 4 channels: floats from 0 to 1, or integers up to the
            maximum of their type.
        step: The step.
        max_outputs: How many images are written at most.
        description: A description, in Markdown.
    """
    _check_count(max_outputs)

    def tensor() -> Any:
        images = convert(data)
        if static_rank(images) not in (4, None):
            raise InvalidArgumentError(f"Images have rank 4, and {short_repr(data)} has not")
        pixels = convert_image_dtype(images, DataType.DT_UINT8, saturate=True)
        files = raw_ops.EncodePng(image=pixels[:max_outputs])
        sizes = raw_ops.AsString(input=raw_ops.Shape(input=pixels))
        width_and_height = raw_ops.GatherV2(params=sizes, indices=np.array([2, 1]), axis=0)
        return raw_ops.ConcatV2(values=[width_and_height, files], axis=0)

    return write_for_plugin("images", name, step, tensor, description=description)


def audio(
    name: str,
    data: Any,
    sample_rate: Any,
    step: Any = None,
    max_outputs: int = 3,
    encoding: str | None = None,
    *,
    description: str | None = None,
) -> bool:
    """Write sounds as WAV files; as `opkernel.summary.write`.

    Args:
        name: The tag.
        data: Sounds [batch, frames, channels], from -1 to 1. In a function that is traced, the batch has a known size.
        sample_rate: How many frames a second has.
        step: The step.
        max_outputs: How many sounds are written at most.
        encoding: "wav", or None.
        description: A description, in Markdown.
    """
    _check_count(max_outputs)
    if encoding not in (None, "wav"):
        raise InvalidArgumentError(f"Unknown encoding: {short_repr(encoding)}")

    def tensor() -> Any:
        sounds = convert(data)
        shape = static_shape(sounds)
        if shape is None or len(shape) != 3 or shape[0] is None:
            raise InvalidArgumentError(
                "Sounds have rank 3, and a batch of a known size: their shape is "
                f"{'unknown' if shape is None else shape}"
            )
        rate = cast_to(convert(sample_rate), DataType.DT_INT32)
        count = min(shape[0], max_outputs)
        if not count:
            return np.empty((0, 2), object)
        first = cast_to(sounds[:count], DataType.DT_FLOAT)
        parts = raw_ops.Unpack(value=first, num=count)
        files = [raw_ops.EncodeWav(audio=part, sample_rate=rate) for part in parts]
        labels = np.full(count, b"", object)
        return raw_ops.Pack(values=[raw_ops.Pack(values=files), labels], axis=1)

    return write_for_plugin(
        "audio", name, step, tensor, content=_ENCODED_AS_WAV, description=description
    )


def _check_count(max_outputs: Any) -> None:
    if not isinstance(max_outputs, int | np.integer) or max_outputs < 0:
        raise InvalidArgumentError(f"max_outputs is an integer >= 0, not {short_repr(max_outputs)}")
