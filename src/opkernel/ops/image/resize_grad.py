"""Gradients of resizing: each pixel of the image gets its share of the pixels that it contributed to.

Source: TensorFlow core/ops/image_ops.cc, core/kernels/image/resize_*_op.cc.
"""

import operator
from collections.abc import Callable, Iterable, Sequence
from functools import reduce
from typing import Any, NamedTuple

import numpy as np

from opkernel.device.work_clock import SLOW, in_time
from opkernel.errors import InvalidArgumentError
from opkernel.kernel import KernelRegistry, check_allocation
from opkernel.opdef import InferenceContext, OpHandle, register_op
from opkernel.ops.image.resize import (
    ALIGNMENT_ATTRS,
    check_alignment,
    check_size,
    cubic,
    linear,
    nearest,
    size_dims,
    some_images,
)
from opkernel.ops.input_checks import require, require_rank
from opkernel.ops.registration import FLOATS, REAL_NUMBERS, WIDE_FLOATS, register_kernel
from opkernel.types import Array, DataType, as_dtype

__all__ = ["check_gradient", "check_nearest_gradient", "original_image_shape"]


class _Share(NamedTuple):
    """The shares of the gradient's pixels [batch, height, width, channels], and their places."""

    values: Array
    rows: Array
    columns: Array


def original_image_shape(c: InferenceContext) -> None:
    """The shape of the original image; kernels take the channels from the gradient."""
    c.set_output(0, c.input(1))
    c.doubt_output(0)


def nearest_neighbor_grad_shape(c: InferenceContext) -> None:
    """Input 0 with the height and width that input 1 holds."""
    images = c.with_rank(c.input(0), 4)
    height, width = size_dims(c, 1)
    images = c.replace_dim(c.replace_dim(images, 1, height), 2, width)
    c.set_output(0, images)


def _declare(name: str, types: str, traits: str = "") -> OpHandle:
    return register_op(
        f"{name}(grads: float, original_image: T) -> output: T",
        attrs=[f"T: {{{types}}}", *ALIGNMENT_ATTRS],
        shape_fn=original_image_shape,
        traits=traits,
        doc=f"The gradient of {name.removesuffix('Grad')} by its images, of `original_image`'s size.",
    )


RESIZE_BILINEAR_GRAD = _declare(
    "ResizeBilinearGrad", "float, bfloat16, half, double", traits="clustering=slow"
)
RESIZE_BICUBIC_GRAD = _declare("ResizeBicubicGrad", "float, double")
RESIZE_NEAREST_NEIGHBOR_GRAD = register_op(
    "ResizeNearestNeighborGrad(grads: T, size: int32) -> output: T",
    attrs=["T: {uint8, int8, int32, half, float, double, bfloat16}", *ALIGNMENT_ATTRS],
    shape_fn=nearest_neighbor_grad_shape,
    doc="The gradient of ResizeNearestNeighbor by its images, which have the height and width `size`.",
)


def _collect(shares: Iterable[_Share], height: int, width: int, T: DataType) -> Array:
    """Images of this size. Each pixel is the sum of its shares.

    Half and bfloat16 round at each addition, so the order of additions counts: pixel by pixel of the
    gradient, one share of a pixel after the other.
    """
    if T not in (DataType.DT_HALF, DataType.DT_BFLOAT16):
        return _total(
            _sums(_sums(share.values, share.rows, height, 1), share.columns, width, 2)
            for share in in_time(shares, SLOW)
        )
    shares = [*shares]
    values = np.stack([share.values for share in shares], axis=3)
    rows = np.stack([share.rows for share in shares], axis=1)[:, np.newaxis]
    columns = np.stack([share.columns for share in shares], axis=1)[np.newaxis]
    images = np.zeros((values.shape[0], height, width, values.shape[-1]), values.dtype)
    index: Any = (slice(None), rows, columns)
    np.add.at(images, index, values)
    return images


def _total(terms: Iterable[Array]) -> Array:
    """The sum of new arrays, one after the other."""
    return reduce(operator.iadd, terms)


def _sums(values: Array, places: Array, size: int, axis: int) -> Array:
    """The sums of the slices that go to each of `size` places; `places` never decreases."""
    shape = (*values.shape[:axis], size, *values.shape[axis + 1 :])
    result = np.zeros(check_allocation(shape, as_dtype(values.dtype)), values.dtype)
    if values.size:
        starts = np.flatnonzero(np.diff(places, prepend=-1))
        sums = np.add.reduceat(values, starts, axis=axis, dtype=values.dtype)
        result[(slice(None),) * axis + (places[starts],)] = sums
    return result


def check_gradient(grads: Any, original_image: Any, T: DataType) -> None:
    """Refuse what is not four-dimensional or has images without pixels."""
    require_rank(grads, 4, "input_grad must be 4-dimensional{}")
    require_rank(original_image, 4, "original_image must be 4-dimensional{}")
    require(0 not in grads.shape[1:3], "resized dimensions must be positive")
    require(0 not in original_image.shape[1:3], "original dimensions must be positive")
    check_allocation((grads.shape[0], *original_image.shape[1:3], grads.shape[3]), T)


def check_nearest_gradient(grads: Any, size: Any, T: DataType) -> tuple[int, int]:
    """The height and width of the original images; refuses what ResizeNearestNeighborGrad does."""
    require_rank(grads, 4, "input must be 4-dimensional{}")
    new_size = check_size(size)
    if min(new_size) <= 0:
        raise InvalidArgumentError(f"shape_t's elements must be positive, got {new_size}")
    check_allocation((grads.shape[0], *new_size, grads.shape[3]), T)
    return new_size


AddShares = Callable[[Any, Any, Any, Any], Any]
"""A function as `add_bilinear_shares`."""


def add_bilinear_shares(grads: Array, neighbours: Array, fractions: Array, out: Array) -> None:
    """Add the shares of the gradient's pixels to the four pixels that each was made of.

    Shares are computed in float and rounded to the type of the image before they add up.

    Args:
        grads: [images, height, width, channels], float32.
        neighbours: [2, height + width], the lower and the upper row of each row of `grads`, then the columns.
        fractions: [height + width], float32: how far each is from the lower one.
        out: [images, old height, old width, channels]; it begins with 0.
    """
    height = grads.shape[1]
    weights = np.stack([1 - fractions, fractions])
    if out.dtype == np.float32:
        result = grads
        for axis, own in ((1, slice(0, height)), (2, slice(height, None))):
            first = np.ascontiguousarray(np.moveaxis(result, axis, 0))  # for long inner loops
            total = _total(
                _sums(first * weight, places, out.shape[axis], 0)
                for places, weight in zip(
                    neighbours[:, own], weights[:, own, *[np.newaxis] * 3], strict=True
                )
            )
            result = np.moveaxis(total, 0, axis)
        out[...] = result
        return
    shares = (
        _Share((grads * row_weights * column_weights).astype(out.dtype), rows, columns)
        for rows, row_weights in zip(
            neighbours[:, :height], weights[:, :height, np.newaxis, np.newaxis], strict=True
        )
        for columns, column_weights in zip(
            neighbours[:, height:], weights[:, height:, np.newaxis], strict=True
        )
    )
    out[...] = _collect(shares, out.shape[1], out.shape[2], as_dtype(out.dtype))


def register_resize_bilinear_grad(
    add: AddShares, types: Sequence[DataType] = FLOATS, registry: KernelRegistry | None = None
) -> None:
    """Register the kernel of ResizeBilinearGrad with a function that adds shares."""

    def resize_bilinear_grad(
        *, align_corners: bool, half_pixel_centers: bool, T: DataType
    ) -> Callable[[Any, Any], Any]:
        check_alignment(align_corners, half_pixel_centers)

        def kernel(grads: Any, original_image: Any) -> Any:
            check_gradient(grads, original_image, T)
            size = original_image.shape[1:3]
            rows, columns = (
                linear(old, new, align_corners, half_pixel_centers)
                for old, new in zip(size, grads.shape[1:3], strict=True)
            )
            neighbours = np.concatenate([rows[:2], columns[:2]], axis=1)
            fractions = np.concatenate([rows.fraction, columns.fraction])
            out = np.zeros((len(grads), *size, grads.shape[3]), T.numpy_dtype)
            for some in some_images(grads, out):
                add(grads[some], neighbours, fractions, out[some])
            return out

        return kernel

    register_kernel(RESIZE_BILINEAR_GRAD, types={"T": types}, factory=True, registry=registry)(
        resize_bilinear_grad
    )


register_resize_bilinear_grad(add_bilinear_shares)


@register_kernel(RESIZE_BICUBIC_GRAD, types={"T": WIDE_FLOATS}, factory=True)
def resize_bicubic_grad(
    *, align_corners: bool, half_pixel_centers: bool, T: DataType
) -> Callable[[Any, Any], Any]:
    check_alignment(align_corners, half_pixel_centers)

    def kernel(grads: Any, original_image: Any) -> Any:
        check_gradient(grads, original_image, T)
        result = grads.astype(T.numpy_dtype)
        for axis, size in ((1, original_image.shape[1]), (2, original_image.shape[2])):
            at = cubic(size, grads.shape[axis], align_corners, half_pixel_centers)
            weights = at.weights.reshape(4, -1, *(1,) * (3 - axis))
            result = _total(
                _sums(result * weight, indices, size, axis)
                for indices, weight in in_time(zip(at.indices, weights, strict=True), SLOW)
            )
        return result

    return kernel


@register_kernel(RESIZE_NEAREST_NEIGHBOR_GRAD, types={"T": REAL_NUMBERS}, host_memory=["size"])
def resize_nearest_neighbor_grad(
    grads: Any, size: Any, *, align_corners: bool, half_pixel_centers: bool, T: DataType
) -> Any:
    """Integers wrap around."""
    new_size = check_nearest_gradient(grads, size, T)
    rows, columns = (
        nearest(new_size[i], grads.shape[i + 1], align_corners, half_pixel_centers)
        for i in range(2)
    )
    return _collect([_Share(grads, rows, columns)], *new_size, T)
