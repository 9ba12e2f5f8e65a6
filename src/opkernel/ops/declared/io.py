"""Shapes of ops that come and go by files, sound, images and strings.

Source: TensorFlow core/ops/io_ops.cc, string_ops.cc, image_ops.cc, summary_ops.cc.
"""

from opkernel.opdef import (
    InferenceContext,
    OpShapeInferenceFn,
)
from opkernel.opdef.common_shapes import no_outputs
from opkernel.opdef.common_shapes.rules import check_ranks, check_scalars, set_outputs, shape_rule


def _generate_bounding_box_proposals_shape(c: InferenceContext) -> None:
    """Scores [batch, height, width, anchors], ... -> boxes and their probabilities."""
    check_ranks(c, 4, 0, 1)
    c.with_value(c.dim(c.with_rank(c.input(2), 2), 1), 5)
    check_ranks(c, 3, 3)
    check_scalars(c, 4, 5, 6)
    batch, count = c.dim(c.input(0), 0), c.get_attr("post_nms_topn")
    set_outputs(c, [c.make_shape([batch, count, 4]), c.matrix(batch, count)])


SHAPE_FNS: dict[str, OpShapeInferenceFn] = {
    "CreateSummaryDbWriter": no_outputs,
    "GenerateBoundingBoxProposals": _generate_bounding_box_proposals_shape,
    "LMDBReader": shape_rule("-> [2]"),
}
