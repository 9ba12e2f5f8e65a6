"""The attrs of UniformQuantizedConvolution*, and what they say of tensors.

Source: TensorFlow core/util/quantization/uniform_quant_ops_params.{h,cc}.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from google.protobuf.message import DecodeError

from opkernel.errors import InvalidArgumentError
from opkernel.ops.int32_attr import int32_attr
from opkernel.proto import UniformQuantizedConvolutionDimensionNumbersAttr


class Layout(NamedTuple):
    """Where the dimensions of a tensor stand; images have a batch, filters channels put out."""

    channels: int
    space: Sequence[int]
    batch: int = 0
    channels_out: int = 0


@dataclass(frozen=True)
class ConvolutionAttrs:
    """The attrs of a convolution, of which some say nothing without the rank of its tensors.

    Raises:
        InvalidArgumentError: no tensors would fit them, or a number is no int32.
    """

    window_strides: list[int]
    padding: str
    explicit_padding: list[int]
    lhs_dilation: list[int]
    rhs_dilation: list[int]
    batch_group_count: int
    feature_group_count: int
    dimension_numbers: str

    def __post_init__(self) -> None:
        for name, value in vars(self).items():
            for number in value if isinstance(value, list) else [value]:
                if isinstance(number, int):
                    int32_attr(name, number)
        if self.padding not in ("EXPLICIT", "SAME", "VALID"):
            raise InvalidArgumentError(
                f"padding Attr must be one of [EXPLICIT | SAME | VALID], but given: {self.padding}"
            )
        if self.padding != "EXPLICIT" and self.explicit_padding:
            raise InvalidArgumentError(
                "If padding Attr is not 'EXPLICIT', explicit_padding Attr must be empty. Given "
                f"padding {self.padding} and explicit_padding of size {len(self.explicit_padding)}"
            )
        _dimension_numbers(self.dimension_numbers)

    def for_rank(self, rank: int) -> Convolution:
        """The convolution of tensors of this rank; refused if it does not fit."""
        if rank <= 2:
            raise InvalidArgumentError(f"lhs and rhs shape dims must be at least 3. Given: {rank}")
        images, filters, output = _layouts(_dimension_numbers(self.dimension_numbers), rank)
        return Convolution(
            images,
            filters,
            output,
            strides=_positive_for_each("window_strides", self.window_strides, rank - 2),
            image_dilation=_positive_for_each("lhs_dilation", self.lhs_dilation, rank - 2),
            filter_dilation=_positive_for_each("rhs_dilation", self.rhs_dilation, rank - 2),
            padding=self.padding,
            explicit_padding=self.explicit_padding,
            feature_groups=self.feature_group_count,
            batch_groups=self.batch_group_count,
        )


class Convolution(NamedTuple):
    """A convolution of tensors of one rank.

    Attributes:
        images: the dimensions of lhs.
        filters: those of rhs.
        output: those of the output.
        strides: the distance of neighbouring windows.
        image_dilation: the distance of neighbouring elements of an image when windows are laid over it.
        filter_dilation: the distance of neighbouring elements of a window.
        padding: EXPLICIT, SAME or VALID.
        explicit_padding: what is added before and after each spatial dimension, if EXPLICIT.
        feature_groups: how many parts channels are in; a part of the filters meets a part of the channels.
        batch_groups: how many parts the batch is in; a part of the filters meets a part of the batch.
    """

    images: Layout
    filters: Layout
    output: Layout
    strides: list[int]
    image_dilation: list[int]
    filter_dilation: list[int]
    padding: str
    explicit_padding: list[int]
    feature_groups: int
    batch_groups: int

    @property
    def images_order(self) -> tuple[int, ...]:
        """The dimensions of images as `[batch, *space, channels]`."""
        return self.images.batch, *self.images.space, self.images.channels

    @property
    def filters_order(self) -> tuple[int, ...]:
        """The dimensions of filters as `[*space, channels, channels put out]`."""
        return *self.filters.space, self.filters.channels, self.filters.channels_out

    @property
    def output_order(self) -> tuple[int, ...]:
        """The dimensions of the output as `[batch, *space, channels]`."""
        return self.output.batch, *self.output.space, self.output.channels

    def check_groups(self, images: Sequence[int], filters: Sequence[int]) -> None:
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

    def output_shape(self, images: Sequence[int], filters: Sequence[int]) -> tuple[int, ...]:
        """The shape of the output, in its layout."""
        output = [0] * len(images)
        output[self.output.batch] = images[self.images.batch] // self.batch_groups
        output[self.output.channels] = filters[self.filters.channels_out]
        for i, axis in enumerate(self.output.space):
            output[axis] = self._windows(i, *self._dilated(i, images, filters))
        return tuple(output)

    def padding_of(self, images: Sequence[int], filters: Sequence[int]) -> list[tuple[int, int]]:
        """What is added before and after each spatial dimension of dilated images."""
        return [
            self._padding(i, *self._dilated(i, images, filters)) for i in range(len(self.strides))
        ]

    def _dilated(self, i: int, images: Sequence[int], filters: Sequence[int]) -> tuple[int, int]:
        """The sizes of images and windows along spatial dimension `i`."""
        return (
            dilated(images[self.images.space[i]], self.image_dilation[i]),
            dilated(filters[self.filters.space[i]], self.filter_dilation[i]),
        )

    def _padding(self, i: int, size: int, window: int) -> tuple[int, int]:
        if self.padding == "VALID":
            return 0, 0
        if self.padding == "EXPLICIT":
            before, after = self.explicit_padding[2 * i : 2 * i + 2]
            return before, after
        stride = self.strides[i]
        total = max((_quotient_up(size, stride) - 1) * stride + window - size, 0)
        return total // 2, total - total // 2

    def _windows(self, i: int, size: int, window: int) -> int:
        """How many windows there are along spatial dimension `i`."""
        padded = size + sum(self._padding(i, size, window))
        count = _quotient_up(padded - window + 1, self.strides[i])
        if count < 0:
            raise InvalidArgumentError(f"Expected a non-negative size, got {count}")
        return count


def _dimension_numbers(text: str) -> UniformQuantizedConvolutionDimensionNumbersAttr:
    try:
        return UniformQuantizedConvolutionDimensionNumbersAttr.FromString(
            text.encode("utf-8", "surrogateescape")
        )
    except DecodeError:
        raise InvalidArgumentError("Error parsing convolution dimension numbers.") from None


def _positive_for_each(name: str, given: list[int], count: int) -> list[int]:
    """A number for each spatial dimension; ones where none is given."""
    values = given or [1] * count
    if len(values) != count:
        raise InvalidArgumentError(f"Size of {name} Attr must be dims - 2.")
    if min(values) < 1:
        raise InvalidArgumentError(f"All elements of {name} must be >= 1. Given {_joined(values)}")
    return values


def _layouts(
    numbers: UniformQuantizedConvolutionDimensionNumbersAttr, rank: int
) -> tuple[Layout, Layout, Layout]:
    """The layouts of images, filters and output; batch (or channels put out) first by default."""
    if not numbers.input_spatial_dimensions:
        space = range(2, rank)
        return Layout(1, space), Layout(1, space), Layout(1, space)
    images = Layout(
        numbers.input_feature_dimension,
        numbers.input_spatial_dimensions,
        batch=numbers.input_batch_dimension,
    )
    filters = Layout(
        numbers.kernel_input_feature_dimension,
        numbers.kernel_spatial_dimensions,
        channels_out=numbers.kernel_output_feature_dimension,
    )
    output = Layout(
        numbers.output_feature_dimension,
        numbers.output_spatial_dimensions,
        batch=numbers.output_batch_dimension,
    )
    for layout in (images, filters, output):
        _check_layout(layout, rank)
    return images, filters, output


def _check_layout(layout: Layout, rank: int) -> None:
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


def dilated(size: int, dilation: int) -> int:
    return 0 if size == 0 else (size - 1) * dilation + 1


def _quotient_up(dividend: int, divisor: int) -> int:
    """Division that rounds up; a negative quotient is rounded towards zero, as in C++."""
    raised = dividend + divisor - 1
    return raised // divisor if raised >= 0 else -(-raised // divisor)


def _joined(values: Sequence[int]) -> str:
    return ", ".join(map(str, values))
