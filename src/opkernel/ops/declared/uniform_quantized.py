"""Shapes of ops on uniformly quantised tensors.

Source: TensorFlow core/ops/uniform_quant_ops.cc,
core/util/quantization/uniform_quant_ops_params.cc.
"""

from collections.abc import Sequence
from typing import NamedTuple

from google.protobuf.message import DecodeError

from opkernel.errors import InvalidArgumentError
from opkernel.opdef import DimensionHandle, InferenceContext, OpShapeInferenceFn, ShapeHandle
from opkernel.opdef.common_shapes import broadcast_binary_op_shape, unchanged_shape
from opkernel.ops.declared.rules import check_ranks_at_most
from opkernel.proto import UniformQuantizedConvolutionDimensionNumbersAttr

__all__ = ["SHAPE_FNS"]


def _check_scales(
    c: InferenceContext, size: DimensionHandle, scales: ShapeHandle, zero_points: ShapeHandle
) -> None:
    """Scales and zero points are scalars, or vectors with one for each of `size` channels."""
    if scales.dims is None or zero_points.dims is None:
        return
    if len(scales.dims) != len(zero_points.dims):
        raise InvalidArgumentError("scales and zero_points must have same rank.")
    for dim in (*scales.dims, *zero_points.dims):
        c.merge(dim, size)


# Matrix products


def _dot_shape(c: InferenceContext) -> None:
    """Matrices, and scales and zero points of both and of the product."""
    left, right = c.with_rank(c.input(0), 2), c.with_rank(c.input(1), 2)
    check_ranks_at_most(c, 0, 2, 3)
    check_ranks_at_most(c, 1, 4, 5, 6, 7)
    _set_product(c, left, right, 4, 6)


def _dot_hybrid_shape(c: InferenceContext) -> None:
    """Matrices, of which the second is quantised, and its scales and zero points."""
    left, right = c.with_rank(c.input(0), 2), c.with_rank(c.input(1), 2)
    check_ranks_at_most(c, 1, 2, 3)
    _set_product(c, left, right, 2)


def _set_product(c: InferenceContext, left: ShapeHandle, right: ShapeHandle, *scales: int) -> None:
    """The product; each of the inputs `scales` and the one after it fit its columns."""
    c.merge(c.dim(left, 1), c.dim(right, 0))
    columns = c.dim(right, 1)
    for i in scales:
        _check_scales(c, columns, c.input(i), c.input(i + 1))
    c.set_output(0, c.matrix(c.dim(left, 0), columns))


# Convolutions


def _convolution_shape(c: InferenceContext) -> None:
    """Images and filters, and scales and zero points of both and of the output."""
    c.with_rank_at_least(c.input(0), 2)
    c.with_rank_at_least(c.input(1), 2)
    check_ranks_at_most(c, 0, 2, 3)
    check_ranks_at_most(c, 1, 4, 5, 6, 7)
    _set_convolution(c, 4, 6)


def _convolution_hybrid_shape(c: InferenceContext) -> None:
    """Images and filters, of which the latter are quantised, and their scales and zero points."""
    c.with_rank_at_least(c.input(0), 2)
    c.with_rank_at_least(c.input(1), 2)
    check_ranks_at_most(c, 1, 2, 3)
    _set_convolution(c, 2)


def _set_convolution(c: InferenceContext, *scales: int) -> None:
    """Windows are counted only where all of both shapes is known."""
    images, filters = c.input(0), c.input(1)
    if images.dims is None or filters.dims is None:
        known = filters if images.dims is None else images
        c.set_output(0, c.unknown_shape_of_rank(c.rank(known)))
        return
    if len(images.dims) != len(filters.dims):
        raise InvalidArgumentError("lhs and rhs must have same rank.")
    if not c.fully_defined(images) or not c.fully_defined(filters):
        c.set_output(0, c.unknown_shape_of_rank(len(images.dims)))
        return
    sizes = [[dim.value for dim in shape.dims] for shape in (images, filters) if shape.dims]
    convolution = _Convolution.of(c, len(images.dims))
    convolution.check_groups(*sizes)
    channels = c.dim(filters, convolution.filters.channels_out)
    for i in scales:
        _check_scales(c, channels, c.input(i), c.input(i + 1))
    first, *others = [c.input(i) for i in scales]
    for other in others:
        if other.dims and first.dims:
            c.merge(first.dims[0], other.dims[0])
    c.set_output(0, c.make_shape(convolution.output_sizes(*sizes)))


class _Layout(NamedTuple):
    """Where the dimensions of a tensor stand; images have a batch, filters channels put out."""

    channels: int
    space: Sequence[int]
    batch: int = 0
    channels_out: int = 0


class _Convolution(NamedTuple):
    """The attrs of a convolution."""

    images: _Layout
    filters: _Layout
    output: _Layout
    strides: list[int]
    image_dilation: list[int]
    filter_dilation: list[int]
    padding: str
    explicit_padding: list[int]
    feature_groups: int
    batch_groups: int

    @classmethod
    def of(cls, c: InferenceContext, rank: int) -> "_Convolution":
        """Read the attrs of a convolution of tensors of this rank; refused if they do not fit."""
        padding, explicit = c.get_attr("padding"), c.get_attr("explicit_padding")
        if padding not in ("EXPLICIT", "SAME", "VALID"):
            raise InvalidArgumentError(
                f"padding Attr must be one of [EXPLICIT | SAME | VALID], but given: {padding}"
            )
        if padding != "EXPLICIT" and explicit:
            raise InvalidArgumentError(
                "If padding Attr is not 'EXPLICIT', explicit_padding Attr must be empty. Given "
                f"padding {padding} and explicit_padding of size {len(explicit)}"
            )
        numbers = _dimension_numbers(c)
        if rank <= 2:
            raise InvalidArgumentError(f"lhs and rhs shape dims must be at least 3. Given: {rank}")
        strides, image_dilation, filter_dilation = (
            _positive_for_each(c, name, rank - 2)
            for name in ("window_strides", "lhs_dilation", "rhs_dilation")
        )
        images, filters, output = _layouts(numbers, rank)
        return cls(
            images,
            filters,
            output,
            strides,
            image_dilation,
            filter_dilation,
            padding,
            explicit,
            feature_groups=c.get_attr("feature_group_count"),
            batch_groups=c.get_attr("batch_group_count"),
        )

    def check_groups(self, images: list[int], filters: list[int]) -> None:
        """The groups divide channels and batch, and a filter has the channels of one group."""
        groups = self.feature_groups
        if groups <= 0:
            raise InvalidArgumentError(
                f"feature_group_count must be a positive integer, given: {groups}"
            )
        channels, filter_channels = images[self.images.channels], filters[self.filters.channels]
        _check_divides("feature_group_count", groups, "lhs feature dimension size", channels)
        _check_divides(
            "rhs input feature dimension", filter_channels, "lhs feature dimension size", channels
        )
        if channels // groups != filter_channels:
            raise InvalidArgumentError(
                "lhs feature dimension size divided by feature_group_count must equal the rhs "
                f"input feature dimension size, but {channels} / {groups} != {filter_channels}"
            )
        channels_out = filters[self.filters.channels_out]
        _check_divides("feature_group_count", groups, "rhs output dimension size", channels_out)
        if self.batch_groups <= 0:
            raise InvalidArgumentError(
                f"batch_group_count Attr must be a positive integer. Given: {self.batch_groups}"
            )
        name, batch = "batch_group_count", images[self.images.batch]
        _check_divides(name, self.batch_groups, "lhs batch dimension size", batch)
        _check_divides(name, self.batch_groups, "rhs output dimension size", channels_out)
        self._check_explicit_padding(len(images))

    def _check_explicit_padding(self, rank: int) -> None:
        if self.padding != "EXPLICIT":
            return
        if len(self.explicit_padding) != 2 * (rank - 2):
            raise InvalidArgumentError(
                "Size of explicit_padding Attr must be 2 * (rank - 2). Given rank "
                f"{rank} and explicit_padding of size {len(self.explicit_padding)}"
            )
        if min(self.explicit_padding) < 0:
            raise InvalidArgumentError(
                f"All explicit_padding elems must be >= 0, Given {_joined(self.explicit_padding)}"
            )

    def output_sizes(self, images: list[int], filters: list[int]) -> list[int]:
        """The dimensions of the output, in its layout."""
        output = [0] * len(images)
        output[self.output.batch] = images[self.images.batch] // self.batch_groups
        output[self.output.channels] = filters[self.filters.channels_out]
        for i, axis in enumerate(self.output.space):
            size = _dilated(images[self.images.space[i]], self.image_dilation[i])
            window = _dilated(filters[self.filters.space[i]], self.filter_dilation[i])
            output[axis] = self._windows(i, size, window)
        return output

    def _windows(self, i: int, size: int, window: int) -> int:
        """How many windows there are along spatial dimension `i`."""
        stride = self.strides[i]
        if self.padding == "SAME":
            size += max((_quotient_up(size, stride) - 1) * stride + window - size, 0)
        elif self.padding == "EXPLICIT":
            size += sum(self.explicit_padding[2 * i : 2 * i + 2])
        count = _quotient_up(size - window + 1, stride)
        if count < 0:
            raise InvalidArgumentError(f"Expected a non-negative size, got {count}")
        return count


def _dimension_numbers(c: InferenceContext) -> UniformQuantizedConvolutionDimensionNumbersAttr:
    text = c.node_def.attr["dimension_numbers"].s
    try:
        return UniformQuantizedConvolutionDimensionNumbersAttr.FromString(text)
    except DecodeError:
        raise InvalidArgumentError("Error parsing convolution dimension numbers.") from None


def _positive_for_each(c: InferenceContext, name: str, count: int) -> list[int]:
    """A list attr with a positive number for each spatial dimension; empty for ones."""
    values: list[int] = c.get_attr(name) or [1] * count
    if len(values) != count:
        raise InvalidArgumentError(f"Size of {name} Attr must be dims - 2.")
    if min(values) < 1:
        raise InvalidArgumentError(f"All elements of {name} must be >= 1. Given {_joined(values)}")
    return values


def _layouts(
    numbers: UniformQuantizedConvolutionDimensionNumbersAttr, rank: int
) -> tuple[_Layout, _Layout, _Layout]:
    """The layouts of images, filters and output; batch (or channels put out) first by default."""
    if not numbers.input_spatial_dimensions:
        space = range(2, rank)
        return _Layout(1, space), _Layout(1, space), _Layout(1, space)
    images = _Layout(
        numbers.input_feature_dimension,
        numbers.input_spatial_dimensions,
        batch=numbers.input_batch_dimension,
    )
    filters = _Layout(
        numbers.kernel_input_feature_dimension,
        numbers.kernel_spatial_dimensions,
        channels_out=numbers.kernel_output_feature_dimension,
    )
    output = _Layout(
        numbers.output_feature_dimension,
        numbers.output_spatial_dimensions,
        batch=numbers.output_batch_dimension,
    )
    for layout in (images, filters, output):
        _check_layout(layout, rank)
    return images, filters, output


def _check_layout(layout: _Layout, rank: int) -> None:
    _check_numbers((layout.batch, layout.channels, layout.channels_out), rank)
    if len(layout.space) != rank - 2:
        raise InvalidArgumentError(
            f"Spatial dimensions size must be rank - 2. Given rank {rank} and spatial dimensions "
            f"size {len(layout.space)}"
        )
    _check_numbers(layout.space, rank)


def _check_numbers(numbers: Sequence[int], rank: int) -> None:
    for number in numbers:
        if not 0 <= number < rank:
            raise InvalidArgumentError(
                f"Each dimension number must be in region [0, rank). Given rank {rank} and "
                f"dimension number value {number}"
            )


def _check_divides(divisor_name: str, divisor: int, name: str, size: int) -> None:
    if divisor == 0 or size % divisor:
        raise InvalidArgumentError(
            f"{divisor_name} must divide {name}, but {divisor} does not divide {size}"
        )


def _dilated(size: int, dilation: int) -> int:
    return 0 if size == 0 else (size - 1) * dilation + 1


def _quotient_up(dividend: int, divisor: int) -> int:
    """Division that rounds up; a negative quotient is rounded towards zero, as in C++."""
    raised = dividend + divisor - 1
    return raised // divisor if raised >= 0 else -(-raised // divisor)


def _joined(values: Sequence[int]) -> str:
    return ", ".join(map(str, values))


SHAPE_FNS: dict[str, OpShapeInferenceFn] = {
    "UniformQuantizedClipByValue": unchanged_shape,
    "UniformQuantizedAdd": broadcast_binary_op_shape,
    "UniformQuantizedConvolution": _convolution_shape,
    "UniformQuantizedConvolutionHybrid": _convolution_hybrid_shape,
    "UniformQuantizedDot": _dot_shape,
    "UniformQuantizedDotHybrid": _dot_hybrid_shape,
}
