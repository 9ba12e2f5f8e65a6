"""Sums of products of int32, as TensorFlow's loops over int32 give them: those that overflow wrap around.

The sums of a uniformly quantised convolution, on arrays `[batch, *space, channels]`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from opkernel.errors import InvalidArgumentError
from opkernel.kernel import check_allocation
from opkernel.ops.nn.conv.reference import REFERENCE
from opkernel.ops.nn.windows import Geometry
from opkernel.ops.quantized.conversion import Array, to_int32
from opkernel.ops.quantized.uniform_convolution_attrs import Convolution, dilated
from opkernel.types import DataType

_EXACT_IN_DOUBLE, _EXACT_IN_FLOAT = 2**53, 2**24


def _largest(x: Array) -> int:
    return max(-int(x.min(initial=0)), int(x.max(initial=0)))


def wrapped_sums(
    product: Callable[[Array, Array], Array], left: Array, right: Array, terms: int
) -> Array:
    """A product of int32 arrays whose elements are sums of `terms` products each.

    Double holds most such sums exactly, and its products are much faster than those of integers.
    """
    if _largest(left) * _largest(right) * terms < _EXACT_IN_DOUBLE:
        sums = product(left.astype(np.float64), right.astype(np.float64))
        return sums.astype(np.int64).astype(np.int32)
    return product(left, right)


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
                raise InvalidArgumentError(
                    f"Each dimension must have one dimension number, got {list(order)}"
                )
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
        groups = self.convolution.batch_groups
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
        by_batch = outputs // self.convolution.batch_groups
        by_channels = outputs // self.convolution.feature_groups
        batch = len(images) // self.convolution.batch_groups
        block = math.gcd(by_batch, by_channels)
        results = []
        for start in range(0, outputs, block):
            row, channel = start // by_batch * batch, start // by_channels * channels
            part = images[row : row + batch, ..., channel : channel + channels]
            results.append(REFERENCE.convolve(part, filters[..., start : start + block], geometry))
        return results[0] if len(results) == 1 else np.concatenate(results, axis=-1)
