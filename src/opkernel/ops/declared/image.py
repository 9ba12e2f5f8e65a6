"""Shapes of images: files, boxes, parts of images, and clusters of points.

Source: TensorFlow core/ops/image_ops.cc, array_ops.cc, clustering_ops.cc.
"""

from opkernel.errors import InvalidArgumentError
from opkernel.opdef import InferenceContext, OpShapeInferenceFn
from opkernel.opdef.common_shapes import (
    scalar_shape,
    unchanged_shape,
    unchanged_shape_with_rank_at_least,
    unknown_shape,
)
from opkernel.opdef.shapes.windowed_output import Padding, get_windowed_output_size_verbose
from opkernel.ops.declared.rules import check_ranks, check_scalars, set_outputs
from opkernel.ops.image.resize import sized_image_shape

__all__ = ["SHAPE_FNS"]

# Boxes


def _draw_bounding_boxes_shape(c: InferenceContext) -> None:
    """Images of 1, 3 or 4 channels, and boxes [batch, boxes, 4] -> input 0."""
    depth = c.dim(c.with_rank(c.input(0), 4), 3).value
    if depth not in (-1, 1, 3, 4):
        raise InvalidArgumentError(
            f"Channel depth should be either 1 (GRY), 3 (RGB), or 4 (RGBA), but is {depth}"
        )
    c.with_value(c.dim(c.with_rank(c.input(1), 3), 2), 4)
    unchanged_shape(c)


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


def _extract_glimpse_shape(c: InferenceContext) -> None:
    """Images, a size and offsets [batch, 2] -> images of that size."""
    images, offsets = c.with_rank(c.input(0), 4), c.with_rank(c.input(2), 2)
    batch = c.merge(c.dim(images, 0), c.dim(offsets, 0))
    c.with_value(c.dim(offsets, 1), 2)
    if c.get_attr("uniform_noise") and c.get_attr("noise") not in ("", "uniform"):
        raise InvalidArgumentError("The uniform_noise should not be True when noise is not uniform")
    sized_image_shape(c, batch, 1, c.dim(images, 3))


def _projective_transform_shape(c: InferenceContext) -> None:
    """Images -> images of the height and width that input 2 holds."""
    images = c.with_rank(c.input(0), 4)
    sized_image_shape(c, c.dim(images, 0), 2, c.dim(images, 3))


def _extract_volume_patches_shape(c: InferenceContext) -> None:
    """For each window of a volume its elements along the last dimension.

    As in TensorFlow, the output has rank 4 where planes, rows or columns are unknown.
    """
    volume = c.with_rank(c.input(0), 5)
    for attr, name in (("ksizes", "ksizes"), ("strides", "stride")):
        length = len(c.get_attr(attr))
        if length != 5:
            raise InvalidArgumentError(
                f"ExtractVolumePatches requires the {name} attribute to contain 5 values, "
                f"but got: {length}"
            )
    ksizes, strides = c.get_attr("ksizes")[1:4], c.get_attr("strides")[1:4]
    batch, *space, channels = (c.dim(volume, i) for i in range(5))
    depth = c.multiply(channels, ksizes[0] * ksizes[1] * ksizes[2])
    if not all(map(c.value_known, space)):
        c.set_output(0, c.make_shape([batch, None, None, depth]))
        return
    padding = Padding.from_string(c.get_attr("padding"))
    windows = [
        get_windowed_output_size_verbose(dim.value, ksize, 1, stride, padding).size
        for dim, ksize, stride in zip(space, ksizes, strides, strict=True)
    ]
    c.set_output(0, c.make_shape([batch, *windows, depth]))


SHAPE_FNS: dict[str, OpShapeInferenceFn] = {
    **dict.fromkeys(("ExtractGlimpse", "ExtractGlimpseV2"), _extract_glimpse_shape),
    **dict.fromkeys(
        ("ImageProjectiveTransformV2", "ImageProjectiveTransformV3"), _projective_transform_shape
    ),
    **dict.fromkeys(
        (
            "SampleDistortedBoundingBox",
            "SampleDistortedBoundingBoxV2",
            "StatelessSampleDistortedBoundingBox",
        ),
        _sample_distorted_bounding_box_shape,
    ),
    "DrawBoundingBoxes": _draw_bounding_boxes_shape,
    "DrawBoundingBoxesV2": unchanged_shape_with_rank_at_least(3),
    "ExtractVolumePatches": _extract_volume_patches_shape,
    "GenerateBoundingBoxProposals": _generate_bounding_box_proposals_shape,
    "KMC2ChainInitialization": scalar_shape,
    "KmeansPlusPlusInitialization": unknown_shape,
    "NearestNeighbors": unknown_shape,
    "RandomCrop": _random_crop_shape,
}
