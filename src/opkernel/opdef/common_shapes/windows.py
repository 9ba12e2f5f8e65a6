"""Layouts and windows of convolutions and poolings, as handles.

Source: TensorFlow core/framework/common_shape_fns.cc.
"""

from collections.abc import Sequence
from typing import NamedTuple

from opkernel.errors import InternalError, InvalidArgumentError
from opkernel.opdef.shapes.inference_context import InferenceContext
from opkernel.opdef.shapes.shape_handles import DimensionHandle, DimensionOrConstant, ShapeHandle
from opkernel.opdef.shapes.tensor_format import TensorFormat
from opkernel.opdef.shapes.windowed_output import (
    Padding,
    check_dilation_and_stride,
    check_valid_padding,
    get_explicit_padding_for_dim,
)

_VECTOR_SIZES = (4, 32)


class ImageDims(NamedTuple):
    """The dimensions of a tensor of images in any layout."""

    batch: DimensionHandle
    space: tuple[DimensionHandle, ...]
    channels: DimensionHandle


def get_windowed_output_size_from_dims(
    c: InferenceContext,
    input_size: DimensionHandle,
    filter_size: DimensionOrConstant,
    stride: int,
    padding: Padding,
) -> DimensionHandle:
    """How many windows there are along a dimension, without dilation.

    Raises:
        InvalidArgumentError: the stride is not positive, or the window does not fit.
        InternalError: the padding is EXPLICIT, which says more than this function is given.
    """
    if padding is Padding.EXPLICIT:
        raise InternalError(
            "get_windowed_output_size_from_dims does not handle EXPLICIT padding; "
            "call get_windowed_output_size_from_dims_v2 instead"
        )
    return get_windowed_output_size_from_dims_v2(c, input_size, filter_size, 1, stride, padding)


def get_windowed_output_size_from_dims_v2(
    c: InferenceContext,
    input_size: DimensionHandle,
    filter_size: DimensionOrConstant,
    dilation: int,
    stride: int,
    padding: Padding,
    paddings: tuple[int, int] = (0, 0),
) -> DimensionHandle:
    """How many windows there are along a dimension; `paddings` (before, after) for EXPLICIT.

    Raises:
        InvalidArgumentError: stride or dilation is not positive, or the window does not fit.
    """
    check_dilation_and_stride(dilation, stride)
    if padding is Padding.SAME:
        return c.divide(c.add(input_size, stride - 1), stride, False)
    if padding is Padding.EXPLICIT:
        input_size = c.add(input_size, sum(paddings))
    if dilation > 1:
        gaps = c.multiply(c.subtract(c.make_dim(filter_size), 1), dilation)
        filter_size = c.add(gaps, 1)
    room = c.add(c.subtract(input_size, filter_size), stride)
    return c.divide(room, stride, False)


def data_format_attr(c: InferenceContext) -> TensorFormat:
    """The attr `data_format`, NHWC where the op has none."""
    return TensorFormat.from_string(c.find_attr("data_format", "NHWC"))


def padding_attrs(
    c: InferenceContext,
    data_format: TensorFormat,
    letters: str,
    supports_explicit: bool,
    num_dims: int = 4,
) -> tuple[Padding, list[tuple[int, int]]]:
    """The attr `padding`, and the explicit padding of each dimension in `letters`.

    Raises:
        InvalidArgumentError: `explicit_paddings` does not fit, or EXPLICIT is not supported.
    """
    padding = Padding.from_string(c.get_attr("padding"))
    none = [(0, 0)] * len(letters)
    if not supports_explicit:
        if padding is Padding.EXPLICIT:
            raise InvalidArgumentError(f"{c.node_def.op} does not support explicit padding")
        return padding, none
    explicit = c.find_attr("explicit_paddings", [])
    check_valid_padding(padding, explicit, num_dims, data_format)
    if padding is not Padding.EXPLICIT:
        return padding, none
    return padding, [get_explicit_padding_for_dim(explicit, data_format, x) for x in letters]


def check_format_constraints_on_shape(
    c: InferenceContext, data_format: TensorFormat, shape: ShapeHandle
) -> None:
    """Check that the vectors of a NCHW_VECT_C tensor hold 4 or 32 channels."""
    if data_format is not TensorFormat.NCHW_VECT_C:
        return
    size = c.value(c.dim(shape, data_format.inner_index(c.rank(shape))))
    if size not in _VECTOR_SIZES:
        raise InvalidArgumentError(f"VECT_C dimension must be 4 or 32, but is {size}")


def dimensions_from_shape(
    c: InferenceContext, shape: ShapeHandle, data_format: TensorFormat, num_spatial_dims: int = 2
) -> ImageDims:
    """Take a shape apart; the channels of NCHW_VECT_C are outer times inner ones."""
    rank = data_format.num_dims(num_spatial_dims)
    batch = c.dim(shape, data_format.batch_index(rank))
    space = [c.dim(shape, data_format.spatial_index(i)) for i in range(num_spatial_dims)]
    channels = c.dim(shape, data_format.feature_index(rank))
    if data_format is TensorFormat.NCHW_VECT_C:
        channels = c.multiply(channels, c.dim(shape, data_format.inner_index(rank)))
    return ImageDims(batch, tuple(space), channels)


def shape_from_dimensions(
    c: InferenceContext,
    dims: ImageDims,
    data_format: TensorFormat,
    vector_size: DimensionHandle | None = None,
) -> ShapeHandle:
    """Put a shape together; `vector_size` is how many channels a vector of NCHW_VECT_C holds."""
    rank = data_format.num_dims(len(dims.space))
    out = [dims.batch] * rank
    for i, dim in enumerate(dims.space):
        out[data_format.spatial_index(i)] = dim
    channels = dims.channels
    if data_format is TensorFormat.NCHW_VECT_C:
        if vector_size is None:
            raise InternalError("NCHW_VECT_C needs the size of its vectors")
        channels = c.divide(channels, vector_size, evenly_divisible=True)
        out[data_format.inner_index(rank)] = vector_size
    out[data_format.feature_index(rank)] = channels
    return c.make_shape(out)


def make_shape_from_format(
    c: InferenceContext,
    data_format: TensorFormat,
    batch: DimensionOrConstant,
    space: Sequence[DimensionOrConstant],
    channels: DimensionOrConstant,
) -> ShapeHandle:
    """A shape in a layout, of its dimensions as they stand in it; vectors hold 4."""
    rank = data_format.num_dims(len(space))
    out: list[DimensionOrConstant] = [4] * rank
    out[data_format.batch_index(rank)] = batch
    for i, dim in enumerate(space):
        out[data_format.spatial_index(i)] = dim
    out[data_format.feature_index(rank)] = channels
    return c.make_shape(out)
