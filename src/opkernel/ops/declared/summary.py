"""Shapes of ops that make and write summaries.

Source: TensorFlow core/ops/logging_ops.cc, summary_ops.cc.
"""

from opkernel.opdef import OpShapeInferenceFn, no_outputs, scalar_shape

_MAKE = (
    "AudioSummary",
    "AudioSummaryV2",
    "HistogramSummary",
    "ImageSummary",
    "MergeSummary",
    "ScalarSummary",
    "SummaryWriter",
    "TensorSummary",
    "TensorSummaryV2",
)
_WRITE = (
    "CloseSummaryWriter",
    "CreateSummaryDbWriter",
    "CreateSummaryFileWriter",
    "FlushSummaryWriter",
    "ImportEvent",
    "WriteAudioSummary",
    "WriteGraphSummary",
    "WriteHistogramSummary",
    "WriteImageSummary",
    "WriteRawProtoSummary",
    "WriteScalarSummary",
    "WriteSummary",
)

SHAPE_FNS: dict[str, OpShapeInferenceFn] = {
    **dict.fromkeys(_MAKE, scalar_shape),
    **dict.fromkeys(_WRITE, no_outputs),
}
