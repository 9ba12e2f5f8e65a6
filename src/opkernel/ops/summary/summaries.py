"""Ops that give a serialized Summary: ScalarSummary, ImageSummary and others; and MergeSummary, which joins some.

Source: TensorFlow core/ops/logging_ops.cc, core/kernels/summary_op.cc, summary_image_op.cc, summary_audio_op.cc,
summary_tensor_op.cc.
"""

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from opkernel.device.work_clock import in_time, string_work
from opkernel.errors import InvalidArgumentError
from opkernel.kernel import OpKernel, OpKernelContext, check_allocation
from opkernel.opdef import register_op_def, scalar_shape
from opkernel.ops.declared import tensorflow_op_defs
from opkernel.ops.input_checks import int32_attr, require, require_scalar
from opkernel.ops.parsing.tensors import serialized
from opkernel.ops.registration import ALL, REAL_NUMBERS, register_kernel
from opkernel.ops.summary.histograms import histogram_proto
from opkernel.ops.summary.media import audio_values, check_bad_color, image_values
from opkernel.ops.summary.wire import (
    HISTO,
    METADATA,
    NODE_NAME,
    TENSOR,
    field,
    simple_value,
    summary_tensor,
    value,
)
from opkernel.proto import DecodeError, Summary, SummaryMetadata
from opkernel.types import DataType, TensorShape

__all__ = ["HistogramSummary", "TensorSummary"]

_DOCS = {
    "ScalarSummary": "A summary with a number for each tag.",
    "HistogramSummary": "A summary with a histogram of values.",
    "ImageSummary": "A summary with a PNG file of each image [batch, height, width, channels].",
    "AudioSummary": "A summary with a WAV file of each sound [batch, frames, channels].",
    "AudioSummaryV2": "A summary with a WAV file of each sound [batch, frames, channels].",
    "TensorSummary": "A summary with a tensor, and the name of the node.",
    "TensorSummaryV2": "A summary with a tensor and its SummaryMetadata.",
    "MergeSummary": "A summary with the values of all inputs, whose tags must differ.",
}
for _name, _doc in _DOCS.items():
    register_op_def(tensorflow_op_defs()[_name], shape_fn=scalar_shape, doc=_doc)


@register_kernel("ScalarSummary", types={"T": REAL_NUMBERS})
def scalar_summary(tags: Any, values: Any) -> Any:
    if tags.shape != values.shape:
        hint = f" (tag '{tags.item().decode(errors='replace')}')" if tags.size == 1 else ""
        raise InvalidArgumentError(
            f"tags and values not the same shape: {TensorShape(tags.shape)} != "
            f"{TensorShape(values.shape)}{hint}"
        )
    with np.errstate(over="ignore"):
        numbers = values.astype(np.float32).flat
    pairs = zip(tags.flat, numbers, strict=True)
    return summary_tensor(value(tag, simple_value(float(number))) for tag, number in pairs)


@register_kernel("HistogramSummary", types={"T": REAL_NUMBERS})
class HistogramSummary(OpKernel):
    """Gives a histogram; its errors name the node."""

    def compute(self, ctx: OpKernelContext) -> None:
        tag, values = ctx.inputs
        require_scalar(tag, "tags must be scalar")
        histogram = field(HISTO, histogram_proto(values, self.name))
        ctx.set_output(0, summary_tensor([value(tag.item(), histogram)]))


@register_kernel("ImageSummary", factory=True)
def image_summary(*, max_images: int, bad_color: Any) -> Callable[[Any, Any], Any]:
    int32_attr("max_images", max_images)
    require(bad_color.dtype == np.uint8, f"bad_color must be uint8, got {bad_color.dtype}")
    check_bad_color(bad_color)

    def summarize(tag: Any, tensor: Any) -> Any:
        require_scalar(tag, "Tags must be a scalar")
        return summary_tensor(image_values(tag.item(), tensor, bad_color, max_images))

    return summarize


@register_kernel("AudioSummary")
def audio_summary(tag: Any, tensor: Any, *, sample_rate: float, max_outputs: int) -> Any:
    require_scalar(tag, "Tag must be a scalar")
    return summary_tensor(audio_values(tag.item(), tensor, sample_rate, max_outputs))


@register_kernel("AudioSummaryV2")
def audio_summary_v2(tag: Any, tensor: Any, sample_rate: Any, *, max_outputs: int) -> Any:
    int32_attr("max_outputs", max_outputs)
    require_scalar(tag, "Tag must be a scalar")
    require_one(sample_rate, "sample_rate")
    return summary_tensor(audio_values(tag.item(), tensor, sample_rate.item(), max_outputs))


@register_kernel("TensorSummary", types={"T": ALL})
class TensorSummary(OpKernel):
    """Gives the tensor, with the name of the node for a tag."""

    def compute(self, ctx: OpKernelContext) -> None:
        name = field(NODE_NAME, self.name.encode())
        tensor = field(TENSOR, serialized(np.asarray(ctx.input(0)), self.input_types[0]))
        ctx.set_output(0, summary_tensor([value(b"", name, tensor)]))


@register_kernel("TensorSummaryV2", types={"T": ALL})
def tensor_summary_v2(
    tag: Any, tensor: Any, serialized_summary_metadata: Any, *, T: DataType
) -> Any:
    require_scalar(tag, "tag must be scalar")
    require_scalar(serialized_summary_metadata, "serialized_summary_metadata must be scalar")
    content = field(TENSOR, serialized(tensor, T))
    metadata = field(METADATA, valid_metadata(serialized_summary_metadata.item()))
    return summary_tensor([value(tag.item(), content, metadata)])


def require_one(tensor: Any, name: str) -> None:
    """Raise InvalidArgumentError unless a tensor has one element, whatever its rank."""
    if tensor.size != 1:
        shape = TensorShape(tensor.shape)
        raise InvalidArgumentError(f"{name} must have one element, got shape {shape}")


def valid_metadata(text: bytes) -> bytes:
    """A serialized SummaryMetadata; an empty one where the text does not parse."""
    try:
        return SummaryMetadata.FromString(text).SerializeToString()
    except DecodeError:
        return b""


@register_kernel("MergeSummary")
def merge_summary(inputs: list[Any]) -> Any:
    return summary_tensor(_values_of_all(inputs))


def _values_of_all(inputs: list[Any]) -> Iterator[list[bytes]]:
    """The serialized values of summaries.

    Raises:
        InvalidArgumentError: two have the same tag, or a text is no Summary.
    """
    tags: set[str] = set()
    for text in in_time((one for tensor in inputs for one in tensor.flat), string_work):
        check_allocation((len(text),), DataType.DT_UINT8)
        for one in parsed_summary(text, "Could not parse one of the summary inputs").value:
            if one.tag in tags:
                raise InvalidArgumentError(f"Duplicate tag {one.tag} found in summary inputs")
            if one.tag:
                tags.add(one.tag)
            yield [one.SerializeToString()]


def parsed_summary(text: bytes, message: str) -> Summary:
    """The Summary of a text.

    Raises:
        InvalidArgumentError: the text does not parse.
    """
    try:
        return Summary.FromString(text)
    except DecodeError:
        raise InvalidArgumentError(message) from None
