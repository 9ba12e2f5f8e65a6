"""Layouts and windows of convolutions and poolings: output sizes as numbers and as dimension handles.

One rule for shape functions (which know sizes as handles, see `get_windowed_output_size_from_dims`) and kernels (which know
numbers, see `get_windowed_output_size`).

Source: TensorFlow core/framework/common_shape_fns.cc, kernel_shape_util.cc, core/util/padding.cc.
"""

from __future__ import annotations

import enum
from collections.abc import Sequence
from typing import NamedTuple

from opkernel.errors import InternalError, InvalidArgumentError
from opkernel.opdef.shapes.inference_context import InferenceContext
from opkernel.opdef.shapes.shape_handles import DimensionHandle, DimensionOrConstant, ShapeHandle
from opkernel.opdef.shapes.tensor_format import TensorFormat


class Padding(enum.Enum):
    """How an input is padded before a window slides over it."""

    VALID = "VALID"
    """Not at all: only windows that fit."""
    SAME = "SAME"
    """With zeros, evenly, so that stride 1 keeps the size."""
    EXPLICIT = "EXPLICIT"
    """As the `explicit_paddings` attr says."""

    @classmethod
    def from_string(cls, text: str) -> Padding:
        """The padding that a `padding` attr names.

        Raises:
            InvalidArgumentError: no padding has this name.
        """
        try:
            return cls(text)
        except ValueError:
            raise InvalidArgumentError(f"{text} is not an allowed padding type") from None


class WindowedOutput(NamedTuple):
    """How many windows there are, and the padding before and after the input."""

    size: int
    padding_before: int
    padding_after: int


def check_dilation_and_stride(dilation: int, stride: int) -> None:
    """Refuse a dilation or a stride below 1 with an InvalidArgumentError."""
    if stride <= 0:
        raise InvalidArgumentError(f"Stride must be > 0, but got {stride}")
    if dilation < 1:
        raise InvalidArgumentError(f"Dilation rate must be >= 1, but got {dilation}")


def get_windowed_output_size(
    input_size: int, filter_size: int, dilation: int, stride: int, padding: Padding
) -> tuple[int, int]:
    """How many windows there are, and the padding before the input.

    Raises:
        InvalidArgumentError: the stride or dilation is below 1, or the size would be negative.
        InternalError: the padding is EXPLICIT, which says more than this function is given.
    """
    if padding is Padding.EXPLICIT:
        raise InternalError(
            "get_windowed_output_size does not handle EXPLICIT padding; "
            "call get_windowed_output_size_verbose instead"
        )
    output = get_windowed_output_size_verbose(input_size, filter_size, dilation, stride, padding)
    return output.size, output.padding_before


def get_windowed_output_size_verbose(
    input_size: int,
    filter_size: int,
    dilation: int,
    stride: int,
    padding: Padding,
    padding_before: int = 0,
    padding_after: int = 0,
) -> WindowedOutput:
    """How many windows there are, and the padding on both sides.

    The paddings given count for EXPLICIT only.

    Raises:
        InvalidArgumentError: the stride or dilation is below 1, or the size would be negative.
    """
    check_dilation_and_stride(dilation, stride)
    effective = (filter_size - 1) * dilation + 1
    if padding is Padding.SAME:
        size = (input_size + stride - 1) // stride
        padding_needed = max(0, (size - 1) * stride + effective - input_size)
        padding_before = padding_needed // 2
        padding_after = padding_needed - padding_before
    else:
        if padding is Padding.VALID:
            padding_before = padding_after = 0
        room = input_size + padding_before + padding_after - effective + stride
        # Rounded towards zero: a window that misses by less than a stride is size 0.
        size = room // stride if room >= 0 else -(-room // stride)
    if size < 0:
        raise InvalidArgumentError(
            f"Computed output size would be negative: {size} [input_size: {input_size}, "
            f"effective_filter_size: {effective}, stride: {stride}]"
        )
    return WindowedOutput(size, padding_before, padding_after)


def check_valid_padding(
    padding: Padding, explicit_paddings: Sequence[int], num_dims: int, data_format: TensorFormat
) -> None:
    """Check an `explicit_paddings` attr: two for each dimension, none around batch and channels.

    Raises:
        InvalidArgumentError: it is none, or the padding is not EXPLICIT and it is not empty.
    """
    if padding is not Padding.EXPLICIT:
        if explicit_paddings:
            raise InvalidArgumentError(
                "explicit_paddings attribute must be empty if the padding attribute is not EXPLICIT"
            )
        return
    if len(explicit_paddings) != 2 * num_dims:
        raise InvalidArgumentError(
            f"explicit_paddings attribute must contain {2 * num_dims} values, "
            f"but got: {len(explicit_paddings)}"
        )
    if any(value < 0 for value in explicit_paddings):
        raise InvalidArgumentError("All elements of explicit_paddings must be nonnegative")
    for index in (data_format.batch_index(num_dims), data_format.feature_index(num_dims)):
        if any(explicit_paddings[2 * index : 2 * index + 2]):
            raise InvalidArgumentError(
                "Nonzero explicit padding in the batch or depth dimensions is not supported"
            )


def get_explicit_padding_for_dim(
    explicit_paddings: Sequence[int], data_format: TensorFormat, letter: str
) -> tuple[int, int]:
    """The padding before and after the dimension N, C, D, H or W."""
    index = data_format.index(letter, 2 if len(explicit_paddings) < 10 else 3)
    return explicit_paddings[2 * index], explicit_paddings[2 * index + 1]


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


class Windows(NamedTuple):
    """Windows that slide over some dimensions of images.

    Attributes:
        data_format: The layout of the images.
        letters: The dimensions: D, H, W, C.
        sizes: How many elements a window has in each of them.
        dilations, strides: The steps within and between windows, in all dimensions of the images.
        padding: How the images are padded.
        paddings: The explicit padding (before, after) of each dimension that `letters` name.
    """

    data_format: TensorFormat
    letters: str
    sizes: Sequence[DimensionOrConstant]
    dilations: Sequence[int]
    strides: Sequence[int]
    padding: Padding
    paddings: Sequence[tuple[int, int]]

    def numbers(
        self, c: InferenceContext, dims: Sequence[DimensionHandle]
    ) -> tuple[DimensionHandle, ...]:
        """How many windows there are along each dimension."""
        numbers = []
        for i, letter in enumerate(self.letters):
            dilation = self.data_format.pick(self.dilations, letter)
            stride = self.data_format.pick(self.strides, letter)
            how = (dilation, stride, self.padding, self.paddings[i])
            numbers.append(get_windowed_output_size_from_dims_v2(c, dims[i], self.sizes[i], *how))
        return tuple(numbers)


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
    batch, space, channels = dims
    if data_format is not TensorFormat.NCHW_VECT_C:
        return make_shape_from_format(c, data_format, batch, space, channels)
    if vector_size is None:
        raise InternalError("NCHW_VECT_C needs the size of its vectors")
    outer = c.divide(channels, vector_size, evenly_divisible=True)
    return make_shape_from_format(c, data_format, batch, space, outer, vector_size)


def make_shape_from_format(
    c: InferenceContext,
    data_format: TensorFormat,
    batch: DimensionOrConstant,
    space: Sequence[DimensionOrConstant],
    channels: DimensionOrConstant,
    vector_size: DimensionOrConstant = 4,
) -> ShapeHandle:
    """A shape in a layout, of its dimensions as they stand in it."""
    rank = data_format.num_dims(len(space))
    out = [vector_size] * rank
    out[data_format.batch_index(rank)] = batch
    for i, dim in enumerate(space):
        out[data_format.spatial_index(i)] = dim
    out[data_format.feature_index(rank)] = channels
    return c.make_shape(out)
