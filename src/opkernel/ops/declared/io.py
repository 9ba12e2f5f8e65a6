"""Shapes of ops that come and go by files, sound, images and strings.

Source: TensorFlow core/ops/io_ops.cc, string_ops.cc, image_ops.cc, summary_ops.cc, lite/experimental/microfrontend/ops.
"""

from opkernel.opdef import (
    InferenceContext,
    OpShapeInferenceFn,
)
from opkernel.opdef.common_shapes import no_outputs
from opkernel.opdef.common_shapes.rules import check_ranks, check_scalars, set_outputs, shape_rule


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


SHAPE_FNS: dict[str, OpShapeInferenceFn] = {
    "AudioMicrofrontend": _microfrontend_shape,
    "CreateSummaryDbWriter": no_outputs,
    "GenerateBoundingBoxProposals": _generate_bounding_box_proposals_shape,
    "LMDBReader": shape_rule("-> [2]"),
}
