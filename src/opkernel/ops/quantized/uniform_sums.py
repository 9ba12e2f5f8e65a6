"""The attrs of UniformQuantizedConvolution*, what they say of tensors, and its sums.

Sums of products of int32 are as TensorFlow's loops over int32 give them: those that overflow wrap around.

Source: TensorFlow core/util/quantization/uniform_quant_ops_params.{h, cc}.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from google.protobuf.message import DecodeError

from opkernel.errors import InvalidArgumentError
from opkernel.kernel import check_allocation, one_blas_thread
from opkernel.ops.input_checks import int32_attr, require, require_equal
from opkernel.ops.nn.conv.reference import REFERENCE
from opkernel.ops.nn.windows import Geometry
from opkernel.ops.quantized.quantize import to_int32
from opkernel.proto import UniformQuantizedConvolutionDimensionNumbersAttr
from opkernel.types import Array, DataType


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
        message = "padding Attr must be one of [EXPLICIT | SAME | VALID], but given"
        require(self.padding in ("EXPLICIT", "SAME", "VALID"), f"{message}: {self.padding}")
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
            attrs=self,
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
        attrs: the others: padding, and in how many parts channels and batch are, each of which meets a part of
            the filters.
    """

    images: Layout
    filters: Layout
    output: Layout
    strides: list[int]
    image_dilation: list[int]
    filter_dilation: list[int]
    attrs: ConvolutionAttrs

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
        groups, batch_groups = self.attrs.feature_group_count, self.attrs.batch_group_count
        require(groups > 0, f"feature_group_count must be a positive integer, given: {groups}")
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
        name, batch = "batch_group_count", images[self.images.batch]
        require(batch_groups > 0, f"{name} Attr must be a positive integer. Given: {batch_groups}")
        _check_divides(name, batch_groups, "lhs batch dimension size", batch)
        _check_divides(name, batch_groups, "rhs output dimension size", channels_out)
        self._check_explicit_padding(len(images))

    def _check_explicit_padding(self, rank: int) -> None:
        given = self.attrs.explicit_padding
        if self.attrs.padding != "EXPLICIT":
            return
        if len(given) != 2 * (rank - 2):
            raise InvalidArgumentError(
                "Size of explicit_padding Attr must be 2 * (rank - 2). Given rank "
                f"{rank} and explicit_padding of size {len(given)}"
            )
        require(min(given) >= 0, f"All explicit_padding elems must be >= 0, Given {_joined(given)}")

    def output_shape(self, images: Sequence[int], filters: Sequence[int]) -> tuple[int, ...]:
        """The shape of the output, in its layout."""
        output = [0] * len(images)
        output[self.output.batch] = images[self.images.batch] // self.attrs.batch_group_count
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
        if self.attrs.padding == "VALID":
            return 0, 0
        if self.attrs.padding == "EXPLICIT":
            before, after = self.attrs.explicit_padding[2 * i : 2 * i + 2]
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
    require_equal(len(values), count, f"Size of {name} Attr must be dims - 2.")
    require(min(values) >= 1, f"All elements of {name} must be >= 1. Given {_joined(values)}")
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
    message = f"Spatial dimensions size must be rank - 2. Given rank {rank}"
    message += " and spatial dimensions size {}"
    require_equal(len(layout.space), rank - 2, message)
    _check_numbers(layout.space, rank)


def _check_numbers(numbers: Sequence[int], rank: int) -> None:
    for number in numbers:
        given = f"Given rank {rank} and dimension number value {number}"
        message = f"Each dimension number must be in region [0, rank). {given}"
        require(0 <= number < rank, message)


def _check_divides(divisor_name: str, divisor: int, name: str, size: int) -> None:
    message = f"{divisor_name} must divide {name}, but {divisor} does not divide {size}"
    require(divisor and size % divisor == 0, message)


def dilated(size: int, dilation: int) -> int:
    return 0 if size == 0 else (size - 1) * dilation + 1


def _quotient_up(dividend: int, divisor: int) -> int:
    """Division that rounds up; a negative quotient is rounded towards zero, as in C++."""
    raised = dividend + divisor - 1
    return raised // divisor if raised >= 0 else -(-raised // divisor)


def _joined(values: Sequence[int]) -> str:
    return ", ".join(map(str, values))


_EXACT_IN_DOUBLE, _EXACT_IN_FLOAT = 2**53, 2**24
_LOW = 2**16 - 1


def _largest(x: Array) -> int:
    return max(-int(x.min(initial=0)), int(x.max(initial=0)))


def wrapped_sums(
    product: Callable[[Array, Array], Array], left: Array, right: Array, terms: int
) -> Array:
    """A product of int32 arrays whose elements are sums of `terms` products each.

    Float or double hold most such sums exactly, and their products are much faster than those of integers. Numbers that
    are too large for that are taken in two parts.
    """
    sizes = _largest(left), _largest(right)
    for dtype, exact in ((np.float32, _EXACT_IN_FLOAT), (np.float64, _EXACT_IN_DOUBLE)):
        if sizes[0] * sizes[1] * terms < exact:
            with one_blas_thread():  # which wait for each other longer than most such products take
                sums = product(left.astype(dtype), right.astype(dtype))
            return sums.astype(np.int64).astype(np.int32)
    if max(sizes) <= _LOW:
        return product(left, right)
    if sizes[0] > sizes[1]:
        of_high = wrapped_sums(product, left >> 16, right, terms)
        return (of_high << 16) + wrapped_sums(product, left & _LOW, right, terms)
    of_high = wrapped_sums(product, left, right >> 16, terms)
    return (of_high << 16) + wrapped_sums(product, left, right & _LOW, terms)


def sums_in_float(left: Array, right: Array) -> Array:
    """The product of two int32 matrices, where each partial sum is rounded to a float."""
    sizes = (np.abs(x.astype(np.float64)) for x in (left, right))
    if np.matmul(*sizes).max(initial=0) < _EXACT_IN_FLOAT:
        return wrapped_sums(np.matmul, left, right, len(right))
    sums = np.zeros((len(left), right.shape[1]), np.int32)
    for column, row in zip(left.T, right, strict=True):
        products = np.multiply.outer(column, row).astype(np.float32)
        sums = to_int32(sums.astype(np.float32) + products)
    return sums


class PlacedConvolution(NamedTuple):
    """A convolution of tensors of two shapes.

    Attributes:
        convolution: what its attrs say.
        padding: what is added before and after each spatial dimension.
        output_shape: the shape of the output, in its layout.
    """

    convolution: Convolution
    padding: list[tuple[int, int]]
    output_shape: tuple[int, ...]

    @classmethod
    def of(
        cls, convolution: Convolution, images: Sequence[int], filters: Sequence[int]
    ) -> PlacedConvolution:
        """The convolution of these shapes; refused if they do not fit, or if the output is too large."""
        convolution.check_groups(images, filters)
        for order in (
            convolution.images_order,
            convolution.filters_order,
            convolution.output_order,
        ):
            if len(set(order)) != len(order):
                message = "Each dimension must have one dimension number, got"
                raise InvalidArgumentError(f"{message} {list(order)}")
        shape = convolution.output_shape(images, filters)
        check_allocation(shape, DataType.DT_DOUBLE)
        return cls(convolution, convolution.padding_of(images, filters), shape)

    def images(self, lhs: Array) -> Array:
        """Images as `[batch, *space, channels]`."""
        return lhs.transpose(self.convolution.images_order)

    def filters(self, rhs: Array) -> Array:
        """Filters as `[*window, channels, channels put out]`."""
        return rhs.transpose(self.convolution.filters_order)

    def output(self, result: Array) -> Array:
        """The output `[batch, *space, channels]` in its layout."""
        order = np.argsort(self.convolution.output_order)
        return np.ascontiguousarray(result.transpose(order))

    def by_output(self, of_images: Array) -> Array:
        """One value for each image as `[batch, 1..., channels]` of the output that has its sums."""
        groups = self.convolution.attrs.batch_group_count
        channels = self.output_shape[self.convolution.output.channels]
        parts = of_images.reshape(groups, len(of_images) // groups).T
        values = np.repeat(parts, channels // groups, axis=1)
        return values.reshape(len(values), *[1] * len(self.padding), channels)

    def sums(self, images: Array, filters: Array, border: Any) -> Array:
        """The products of windows and filters, added up in int32; `border` surrounds the images."""
        layout = self.convolution.output
        counts = [self.output_shape[axis] for axis in layout.space]
        shape = (self.output_shape[layout.batch], *counts, filters.shape[-1])
        if not (math.prod(shape) and filters.size):
            return np.zeros(shape, np.int32)
        geometry = Geometry(
            window=filters.shape[:-2],
            strides=tuple(self.convolution.strides),
            dilations=tuple(self.convolution.filter_dilation),
            padding=((0, 0),) * len(counts),
            output=tuple(counts),
        )
        product = partial(self._grouped, geometry)
        terms = math.prod(filters.shape[:-1])
        return wrapped_sums(product, self._padded(images, border), filters, terms)

    def _padded(self, images: Array, border: Any) -> Array:
        """Images with `border` around them and between the elements that dilation moves apart."""
        sizes, inner = [], []
        for size, dilation, (before, after) in zip(
            images.shape[1:-1], self.convolution.image_dilation, self.padding, strict=True
        ):
            length = dilated(size, dilation)
            sizes.append(before + length + after)
            inner.append(slice(before, before + length, dilation))
        shape = (len(images), *sizes, images.shape[-1])
        check_allocation(shape, DataType.DT_DOUBLE)
        padded = np.full(shape, border, np.int32)
        padded[(slice(None), *inner)] = images
        return padded

    def _grouped(self, geometry: Geometry, images: Array, filters: Array) -> Array:
        """The convolution of each block of filters with the part of images and channels that it meets."""
        channels, outputs = filters.shape[-2:]
        by_batch = outputs // self.convolution.attrs.batch_group_count
        by_channels = outputs // self.convolution.attrs.feature_group_count
        batch = len(images) // self.convolution.attrs.batch_group_count
        block = math.gcd(by_batch, by_channels)
        results = []
        for start in range(0, outputs, block):
            row, channel = start // by_batch * batch, start // by_channels * channels
            part = images[row : row + batch, ..., channel : channel + channels]
            results.append(REFERENCE.convolve(part, filters[..., start : start + block], geometry))
        return results[0] if len(results) == 1 else np.concatenate(results, axis=-1)
