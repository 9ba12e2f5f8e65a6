"""Shapes of images: files, boxes, parts of images, and clusters of points.

Source: TensorFlow core/ops/image_ops.cc, array_ops.cc, clustering_ops.cc.
"""

from opkernel.opdef import InferenceContext, OpShapeInferenceFn
from opkernel.opdef.common_shapes import (
    scalar_shape,
    unknown_shape,
)
from opkernel.ops.declared.rules import check_ranks, check_scalars, set_outputs

__all__ = ["SHAPE_FNS"]

# Boxes


def _sample_distorted_bounding_box_shape(c: InferenceContext) -> None:
    """The size of an image [3], boxes [batch, n, 4] -> begin and size of a part, and its box."""
    size, boxes = c.with_rank(c.input(0), 1), c.with_rank(c.input(1), 3)
    if c.num_inputs() > 2:
        check_scalars(c, 2)
    if c.num_inputs() > 3:
        check_ranks(c, 1, 3)
    c.with_value(c.dim(size, 0), 3)
    c.with_value(c.dim(boxes, 2), 4)
    if c.num_inputs() > 3:
        c.with_value(c.dim(c.input(3), 0), 2)
    set_outputs(c, [c.vector(3), c.vector(3), c.make_shape([1, 1, 4])])


def _generate_bounding_box_proposals_shape(c: InferenceContext) -> None:
    """Scores [batch, height, width, anchors], ... -> boxes and their probabilities."""
    check_ranks(c, 4, 0, 1)
    c.with_value(c.dim(c.with_rank(c.input(2), 2), 1), 5)
    check_ranks(c, 3, 3)
    check_scalars(c, 4, 5, 6)
    batch, count = c.dim(c.input(0), 0), c.get_attr("post_nms_topn")
    set_outputs(c, [c.make_shape([batch, count, 4]), c.matrix(batch, count)])


# Parts of images


def _random_crop_shape(c: InferenceContext) -> None:
    """[height, width, channels] -> with the height and width that input 1 holds."""
    image = c.with_rank(c.input(0), 3)
    c.merge(c.input(1), c.vector(2))
    size = c.input_tensor(1)
    dims = [None, None] if size is None else size.tolist()
    c.set_output(0, c.make_shape([*dims, c.dim(image, -1)]))


SHAPE_FNS: dict[str, OpShapeInferenceFn] = {
    **dict.fromkeys(
        (
            "SampleDistortedBoundingBox",
            "SampleDistortedBoundingBoxV2",
            "StatelessSampleDistortedBoundingBox",
        ),
        _sample_distorted_bounding_box_shape,
    ),
    "GenerateBoundingBoxProposals": _generate_bounding_box_proposals_shape,
    "KMC2ChainInitialization": scalar_shape,
    "KmeansPlusPlusInitialization": unknown_shape,
    "NearestNeighbors": unknown_shape,
    "RandomCrop": _random_crop_shape,
}
