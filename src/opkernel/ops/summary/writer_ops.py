"""Ops that write event files for TensorBoard: SummaryWriter, CreateSummaryFileWriter, WriteSummary, ImportEvent, and more.

Source: TensorFlow core/ops/summary_ops.cc, core/kernels/summary_kernels.cc.
"""

from collections.abc import Iterable
from typing import Any, ClassVar

import numpy as np

from opkernel.device.string_tensors import joining
from opkernel.device.work_clock import in_time, string_work
from opkernel.errors import DataLossError, UnimplementedError
from opkernel.io.events_file import EventsFile
from opkernel.kernel import (
    OpKernel,
    OpKernelConstruction,
    OpKernelContext,
    delete_resource,
    handle_from_input,
    lookup_or_create_resource,
    make_resource_handle,
    tensor_of_handle,
)
from opkernel.opdef import no_outputs, register_op_def, scalar_shape
from opkernel.ops.declared import tensorflow_op_defs
from opkernel.ops.input_checks import int32_attr, require
from opkernel.ops.parsing.tensors import serialized
from opkernel.ops.registration import register_kernel
from opkernel.ops.resource_op_kernel import container_of, resource_of_handle
from opkernel.ops.summary.file_writer import GRAPH_DEF, SUMMARY, SummaryFileWriter, event_of_now
from opkernel.ops.summary.histograms import histogram_proto
from opkernel.ops.summary.media import audio_values, check_bad_color, image_values
from opkernel.ops.summary.summaries import require_one, valid_metadata
from opkernel.ops.summary.wire import (
    HISTO,
    METADATA,
    TENSOR,
    field,
    simple_value,
    summary,
    value,
)
from opkernel.proto import DecodeError, Event, GraphDef, Summary
from opkernel.types import DataType

_BFLOAT16 = DataType.DT_BFLOAT16.numpy_dtype

_DOCS = {
    "SummaryWriter": "The handle of a writer of event files, which CreateSummaryFileWriter lets begin.",
    "CreateSummaryFileWriter": "Lets a writer begin an event file in a directory.",
    "WriteSummary": "Writes a tensor.",
    "WriteScalarSummary": "Writes a number.",
    "WriteHistogramSummary": "Writes a histogram of values.",
    "WriteImageSummary": "Writes a PNG file of each image [batch, height, width, channels].",
    "WriteAudioSummary": "Writes a WAV file of each sound [batch, frames, channels].",
    "WriteRawProtoSummary": "Writes serialized summaries, as one event.",
    "WriteGraphSummary": "Writes a serialized graph.",
    "ImportEvent": "Writes a serialized event.",
    "FlushSummaryWriter": "Writes the waiting events into the file.",
    "CloseSummaryWriter": "Writes the waiting events, and ends the file.",
}
for _name, _doc in _DOCS.items():
    register_op_def(
        tensorflow_op_defs()[_name],
        shape_fn=scalar_shape if _name == "SummaryWriter" else no_outputs,
        traits="writes_files" if _name == "CreateSummaryFileWriter" else "",
        doc=_doc,
    )


def _scalar(ctx: OpKernelContext, name: str) -> Any:
    """The Python value of an input, whatever its rank.

    Raises:
        InvalidArgumentError: it has not one element.
    """
    given = ctx.input(name)
    require_one(given, name)
    return given.item()


@register_kernel("SummaryWriter")
class SummaryWriterOp(OpKernel):
    """Gives the handle; the writer need not exist."""

    def compute(self, ctx: OpKernelContext) -> None:
        info = container_of(self, ctx)
        handle = make_resource_handle(info.container, info.name, ctx.device, SummaryFileWriter)
        ctx.set_output(0, tensor_of_handle(handle))


@register_kernel("CreateSummaryFileWriter")
class CreateSummaryFileWriterOp(OpKernel):
    """Begins a file, unless the writer has one."""

    def compute(self, ctx: OpKernelContext) -> None:
        """Begin the file.

        Raises:
            PermissionDeniedError: it may not be written.
            OpError: it cannot be made.
        """
        names = ("logdir", "max_queue", "flush_millis", "filename_suffix")
        logdir, max_queue, flush_millis, suffix = (_scalar(ctx, name) for name in names)

        def create() -> SummaryFileWriter:
            file = EventsFile(logdir, suffix, ctx.permissions)
            return SummaryFileWriter(file, max_queue, flush_millis)

        handle = handle_from_input(ctx.input(0))
        with lookup_or_create_resource(ctx, handle, SummaryFileWriter, create):
            pass


class _WriterOp(OpKernel):
    """A kernel that has a writer do something."""

    def compute(self, ctx: OpKernelContext) -> None:
        with resource_of_handle(ctx, SummaryFileWriter) as writer:
            self.use(writer, ctx)

    def use(self, writer: SummaryFileWriter, ctx: OpKernelContext) -> None:
        """Have the writer do it."""
        raise NotImplementedError(f"{type(self).__name__} does not override use")


@register_kernel("FlushSummaryWriter")
class FlushSummaryWriterOp(_WriterOp):
    """Writes the waiting events."""

    def use(self, writer: SummaryFileWriter, ctx: OpKernelContext) -> None:
        writer.flush()


@register_kernel("CloseSummaryWriter")
class CloseSummaryWriterOp(OpKernel):
    """Takes the writer out of its container, which ends the file."""

    def compute(self, ctx: OpKernelContext) -> None:
        delete_resource(ctx, handle_from_input(ctx.input(0)), SummaryFileWriter)


@register_kernel("ImportEvent")
class ImportEventOp(_WriterOp):
    """Writes an event as it is."""

    def use(self, writer: SummaryFileWriter, ctx: OpKernelContext) -> None:
        event: bytes = _scalar(ctx, "event")
        _check_parses(Event, event, "Bad tf.Event binary proto tensor string")
        writer.write_event(event)


@register_kernel("WriteGraphSummary")
class WriteGraphSummaryOp(_WriterOp):
    """Writes a graph."""

    def use(self, writer: SummaryFileWriter, ctx: OpKernelContext) -> None:
        graph: bytes = _scalar(ctx, "tensor")
        _check_parses(GraphDef, graph, "Bad tf.GraphDef binary proto tensor string")
        writer.write(_scalar(ctx, "step"), GRAPH_DEF, graph)


@register_kernel("WriteRawProtoSummary")
class WriteRawProtoSummaryOp(_WriterOp):
    """Writes the values of all summaries as one event."""

    def use(self, writer: SummaryFileWriter, ctx: OpKernelContext) -> None:
        step, texts = _scalar(ctx, "step"), ctx.input("tensor").reshape(-1).tolist()
        for index, text in enumerate(in_time(texts, string_work)):
            message = f"Bad tf.compat.v1.Summary binary proto tensor string at index {index}"
            _check_parses(Summary, text, message)
        if texts:
            writer.write(step, SUMMARY, joining(b"")(texts))
        else:
            writer.write_event(event_of_now(step))


def _check_parses(kind: Any, text: bytes, message: str) -> None:
    try:
        kind.FromString(text)
    except DecodeError:
        raise DataLossError(message) from None


class _WritesValues(_WriterOp):
    """A kernel that writes the values of a tensor in a summary."""

    def use(self, writer: SummaryFileWriter, ctx: OpKernelContext) -> None:
        step, tag = _scalar(ctx, "step"), _scalar(ctx, "tag")
        writer.write(step, SUMMARY, summary(self.values(ctx, tag)))

    def values(self, ctx: OpKernelContext, tag: bytes) -> Iterable[list[bytes]]:
        """The serialized values."""
        raise NotImplementedError(f"{type(self).__name__} does not override values")


@register_kernel("WriteSummary")
class WriteSummaryOp(_WritesValues):
    """Writes a tensor and its SummaryMetadata."""

    def values(self, ctx: OpKernelContext, tag: bytes) -> Iterable[list[bytes]]:
        metadata: bytes = _scalar(ctx, "summary_metadata")
        tensor = serialized(np.asarray(ctx.input("tensor")), self.input_types[2])
        described = [field(METADATA, valid_metadata(metadata))] if metadata else []
        return [value(tag, field(TENSOR, tensor), *described)]


@register_kernel("WriteScalarSummary")
class WriteScalarSummaryOp(_WritesValues):
    """Writes a number as float32."""

    def values(self, ctx: OpKernelContext, tag: bytes) -> Iterable[list[bytes]]:
        given = np.asarray(ctx.input("value"))
        require(given.size, "value must have an element")
        if given.dtype == _BFLOAT16:
            raise UnimplementedError("SummaryFileWriter bfloat16 not supported.")
        with np.errstate(over="ignore"):
            return [value(tag, simple_value(float(given.reshape(-1)[:1].astype(np.float32)[0])))]


@register_kernel("WriteHistogramSummary")
class WriteHistogramSummaryOp(_WritesValues):
    """Writes a histogram."""

    def values(self, ctx: OpKernelContext, tag: bytes) -> Iterable[list[bytes]]:
        given = np.asarray(ctx.input("values"))
        if given.dtype == _BFLOAT16 and given.size:
            raise UnimplementedError("SummaryFileWriter bfloat16 not supported.")
        name = tag.decode("utf-8", "backslashreplace")
        return [value(tag, field(HISTO, histogram_proto(given, name)))]


class _WritesSeveral(_WritesValues):
    """A kernel that writes at most as many values as an attr says.

    Attributes:
        attr: The attr.
    """

    attr: ClassVar[str]

    def __init__(self, construction: OpKernelConstruction) -> None:
        super().__init__(construction)
        self.most = int32_attr(self.attr, construction.get_attr(self.attr))


@register_kernel("WriteImageSummary")
class WriteImageSummaryOp(_WritesSeveral):
    """Writes images."""

    attr = "max_images"

    def values(self, ctx: OpKernelContext, tag: bytes) -> Iterable[list[bytes]]:
        bad_color = ctx.input("bad_color")
        check_bad_color(bad_color)
        return image_values(tag, ctx.input("tensor"), bad_color, self.most)


@register_kernel("WriteAudioSummary")
class WriteAudioSummaryOp(_WritesSeveral):
    """Writes sounds."""

    attr = "max_outputs"

    def values(self, ctx: OpKernelContext, tag: bytes) -> Iterable[list[bytes]]:
        return audio_values(tag, ctx.input("tensor"), _scalar(ctx, "sample_rate"), self.most)
