"""Shapes of ops of sound, images, strings, files, tables, summaries and resources.

Source: TensorFlow lite/experimental/microfrontend/ops, core/ops/debug_ops.cc, array_ops.cc,
core/ops/image_ops.cc, clustering_ops.cc, core/ops/io_ops.cc, checkpoint_ops.cc, filesystem_ops.cc,
core/ops/string_ops.cc, parsing_ops.cc, word2vec_ops.cc, core/ops/logging_ops.cc, summary_ops.cc,
core/ops/sdca_ops.cc, core/ops/lookup_ops.cc, core/ops/word2vec_ops.cc, core/ops/resource_variable_ops.cc,
experimental_dataset_ops.cc, dataset_ops.cc.
"""

from opkernel.opdef import InferenceContext, OpShapeInferenceFn, unchanged_shape
from opkernel.opdef.common_shapes import no_outputs, scalar_shape, unknown_shape
from opkernel.opdef.common_shapes.rules import (
    check_ranks,
    check_scalars,
    checked_no_outputs,
    set_outputs,
)
from opkernel.opdef.common_shapes.shape_rule import shape_rule


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


def _generate_bounding_box_proposals_shape(c: InferenceContext) -> None:
    """Scores [batch, height, width, anchors], ... -> boxes and their probabilities."""
    check_ranks(c, 4, 0, 1)
    c.with_value(c.dim(c.with_rank(c.input(2), 2), 1), 5)
    check_ranks(c, 3, 3)
    check_scalars(c, 4, 5, 6)
    batch, count = c.dim(c.input(0), 0), c.get_attr("post_nms_topn")
    set_outputs(c, [c.make_shape([batch, count, 4]), c.matrix(batch, count)])


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


def _optimizer(c: InferenceContext) -> None:
    weights = [*c.input("sparse_weights"), *c.input("dense_weights")]
    set_outputs(c, [c.matrix(None, 4), *weights])


SHAPE_FNS: dict[str, OpShapeInferenceFn] = {
    "AudioMicrofrontend": _microfrontend_shape,
    "DebugGradientRefIdentity": unchanged_shape,
    "DebugNanCount": scalar_shape,
    "DebugNumericSummary": unknown_shape,
    "DebugNumericSummaryV2": unknown_shape,
    "GenerateBoundingBoxProposals": _generate_bounding_box_proposals_shape,
    "KMC2ChainInitialization": scalar_shape,
    "KmeansPlusPlusInitialization": unknown_shape,
    "NearestNeighbors": unknown_shape,
    "GenerateVocabRemapping": shape_rule("[], [] -> [{num_new_vocab}], []"),
    "LMDBReader": shape_rule("-> [2]"),
    "LoadAndRemapMatrix": shape_rule("_, [] -> [{num_rows}, {num_cols}]"),
    "RecordInput": unknown_shape,
    "Skipgram": unknown_shape,
    "_TensorToHashBucketFast": unchanged_shape,
    **dict.fromkeys(_MAKE, scalar_shape),
    **dict.fromkeys(_WRITE, no_outputs),
    "SdcaFprint": shape_rule("[n] -> [n, 2]"),
    "SdcaOptimizer": _optimizer,
    "SdcaOptimizerV2": _optimizer,
    "SdcaShrinkL1": unknown_shape,
    "InitializeTableFromDataset": checked_no_outputs("00"),
    "NegTrain": no_outputs,
    "AnonymousMemoryCache": shape_rule("-> [], []"),
    "DeleteMemoryCache": no_outputs,
    "DummyIterationCounter": scalar_shape,
    "DummyMemoryCache": scalar_shape,
    "ExperimentalThreadPoolHandle": scalar_shape,
    "IsResourceHandleRefCounting": scalar_shape,
    "ResourceCreateOp": no_outputs,
    "ResourceInitializedOp": scalar_shape,
    "ResourceUsingOp": no_outputs,
    "StubResourceHandleOp": scalar_shape,
    "ThreadPoolHandle": scalar_shape,
}
