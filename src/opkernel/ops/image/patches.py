"""Parts cut out of images: ExtractImagePatches, ExtractVolumePatches, ExtractGlimpse and RandomCrop.

Patches are rows of channels. Glimpses may reach beyond the image.

Source: TensorFlow core/ops/array_ops.cc, image_ops.cc, core/kernels/extract_image_patches_op.cc,
extract_volume_patches_op.cc, core/kernels/image/attention_ops.cc, random_crop_op.cc.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import reduce
from typing import Any

import numpy as np

import opkernel.gradients as g
from opkernel.errors import (
    FailedPreconditionError,
    InvalidArgumentError,
    OutOfRangeError,
    UnimplementedError,
)
from opkernel.kernel import (
    OpKernel,
    OpKernelConstruction,
    OpKernelContext,
    check_allocation,
    from_attrs,
)
from opkernel.opdef import InferenceContext, OpShapeInferenceFn, register_op
from opkernel.opdef.common_shapes.windows import Padding, get_windowed_output_size_verbose
from opkernel.ops.array.fill import zeros
from opkernel.ops.image.resize import sized_image_shape
from opkernel.ops.input_checks import int32_attr, require, require_equal, require_rank
from opkernel.ops.nn.windows import Geometry, geometry_along, overlaps
from opkernel.ops.random.philox import GuardedPhilox
from opkernel.ops.random.uniform_and_normal import SEEDS
from opkernel.ops.registration import NUMBERS, REAL_NUMBERS, register_kernel
from opkernel.types import DataType, TensorShape

_OF_IMAGES, _OF_VOLUMES = ("ksizes", "strides", "rates"), ("ksizes", "strides")
_TYPES = (
    "bfloat16, half, float, double, int8, int16, int32, int64, uint8, uint16, uint32, uint64, "
    "complex64, complex128, bool"
)


def _patches_shape(op: str, rank: int, shown: dict[str, str]) -> OpShapeInferenceFn:
    """For each window of a tensor its elements, and their channels, along the last dimension.

    `shown` has the attrs, and their names in messages. Where planes, rows or columns of volumes are unknown,
    TensorFlow states a rank of 4, which no output has.
    """

    def shape_fn(c: InferenceContext) -> None:
        tensor = c.with_rank(c.input(0), rank)
        for attr, name in shown.items():
            message = f"{op} requires the {name} attribute to contain {{}} values, but got: {{}}"
            require_equal(rank, len(c.get_attr(attr)), message)
        ksizes, strides, *rates = (c.get_attr(attr)[1:-1] for attr in shown)
        gaps = rates[0] if rates else [1] * len(ksizes)
        batch, *space, channels = (c.dim(tensor, i) for i in range(rank))
        depth = c.multiply(channels, math.prod(ksizes))
        if not all(map(c.value_known, space)):
            c.set_output(0, c.make_shape([batch, None, None, depth]))
            if rank > 4:
                c.doubt_output(0)
            return
        padding = Padding.from_string(c.get_attr("padding"))
        windows = [
            get_windowed_output_size_verbose(dim.value, ksize, gap, stride, padding).size
            for dim, ksize, gap, stride in zip(space, ksizes, gaps, strides, strict=True)
        ]
        c.set_output(0, c.make_shape([batch, *windows, depth]))

    return shape_fn


EXTRACT_IMAGE_PATCHES = register_op(
    "ExtractImagePatches(images: T) -> patches: T",
    attrs=[
        "ksizes: list(int) >= 4",
        "strides: list(int) >= 4",
        "rates: list(int) >= 4",
        f"T: {{{_TYPES}}}",
        "padding: {'SAME', 'VALID'}",
    ],
    shape_fn=_patches_shape("ExtractImagePatches", 4, {name: name for name in _OF_IMAGES}),
    doc="The windows of size `ksizes` of the images, `strides` apart, each as a row of channels.",
)
EXTRACT_VOLUME_PATCHES = register_op(
    "ExtractVolumePatches(input: T) -> patches: T",
    attrs=[
        "ksizes: list(int) >= 5",
        "strides: list(int) >= 5",
        "T: realnumbertype",
        "padding: {'SAME', 'VALID'}",
    ],
    shape_fn=_patches_shape("ExtractVolumePatches", 5, {"ksizes": "ksizes", "strides": "stride"}),
    doc="The windows of size `ksizes` of volumes, `strides` apart, each as a row of channels.",
)


@register_kernel(EXTRACT_IMAGE_PATCHES, types={"T": NUMBERS}, factory=True)
def extract_image_patches(
    *, ksizes: list[int], strides: list[int], rates: list[int], padding: str, T: DataType
) -> Callable[[Any], Any]:
    window, steps, dilations = (
        _spatial(name, values, 4)
        for name, values in zip(_OF_IMAGES, (ksizes, strides, rates), strict=True)
    )
    kind = Padding.from_string(padding)

    def extract(images: Any) -> Any:
        require_rank(images, 4, "input must be 4-dimensional{}")
        along = [
            get_windowed_output_size_verbose(*args, kind)
            for args in zip(images.shape[1:3], window, dilations, steps, strict=True)
        ]
        return _patches(images, geometry_along(along, window, steps, dilations), T)

    return extract


@register_kernel(EXTRACT_VOLUME_PATCHES, types={"T": REAL_NUMBERS}, factory=True)
def extract_volume_patches(
    *, ksizes: list[int], strides: list[int], padding: str, T: DataType
) -> Callable[[Any], Any]:
    window, steps = (
        _spatial(name, values, 5)
        for name, values in zip(_OF_VOLUMES, (ksizes, strides), strict=True)
    )
    kind = Padding.from_string(padding)

    def extract(volumes: Any) -> Any:
        require_rank(volumes, 5, "input must be 5-dimensional{}")
        spatial = volumes.shape[1:4]
        output = tuple(
            get_windowed_output_size_verbose(size, ksize, 1, stride, kind).size
            for size, ksize, stride in zip(spatial, window, steps, strict=True)
        )
        before: tuple[int, ...] = (0, 0, 0)
        if kind is Padding.SAME:
            before = tuple(map(_padding, spatial, window, steps, output))
            volumes = volumes[(slice(None), *(slice(max(0, -skipped), None) for skipped in before))]
        paddings = tuple((max(0, missing), window[axis]) for axis, missing in enumerate(before))
        return _patches(volumes, Geometry(window, steps, (1, 1, 1), paddings, output), T)

    return extract


def _spatial(name: str, values: Sequence[int], rank: int) -> tuple[int, ...]:
    """The entries of an attr for the spatial dimensions; those for batch and channels are 1."""
    for value in values:
        int32_attr(name, value)
    if values[0] != 1 or values[rank - 1] != 1:
        raise UnimplementedError(f"Only support {name} across space.")
    if min(values[1 : rank - 1]) < 1:
        raise OutOfRangeError(f"{name} is out of range.")
    return tuple(values[1 : rank - 1])


def _patches(tensor: Any, geometry: Geometry, T: DataType) -> Any:
    """The elements of each window, and their channels, along the last dimension."""
    batch, depth, output = tensor.shape[0], tensor.shape[-1], geometry.output
    patches: Any = zeros(check_allocation((batch, *output, *geometry.window, depth), T), T)
    for offset, windows, elements in overlaps(geometry, tensor.shape[1:-1]):
        patches[windows][(..., *offset, slice(None))] = tensor[elements]
    return patches.reshape(batch, *output, math.prod(geometry.window) * depth)


def _padding(size: int, ksize: int, stride: int, output: int) -> int:
    """The elements that are missing before; where strides leave elements out, Eigen begins within them."""
    return int(((output - 1) * stride + ksize - size) / 2)


def _register_gradient(extract: str, attrs: Sequence[str], rank: int) -> None:
    @g.register_gradient(extract)
    def gradient(op: g.Operation, grad: g.Tensor) -> g.Gradients:
        """The patches of a tensor that holds the number of each place say where the copies come from."""
        (tensor,) = op.inputs
        batch, *space, depth = g.nodes.Unpack(g.nodes.Shape(tensor), num=rank)
        count = reduce(g.nodes.Mul, space)
        numbers = g.nodes.Range(1, g.nodes.AddV2(count, 1), 1)
        numbered = g.nodes.Reshape(numbers, g.nodes.Pack([1, *space, 1]))
        patches = getattr(g.nodes, extract)(numbered, **g.attrs_of(op, *attrs, "padding"))
        sources = g.nodes.Sub(g.nodes.Reshape(patches, [-1]), 1)
        copies = g.nodes.Reshape(grad, g.nodes.Pack([batch, -1, depth]))
        columns = g.nodes.Pack([-1, g.nodes.Mul(batch, depth)])
        flat = g.nodes.Reshape(g.nodes.Transpose(copies, [1, 0, 2]), columns)
        total = g.nodes.UnsortedSegmentSum(flat, sources, count)
        batch_inside = g.nodes.Reshape(total, g.nodes.Pack([count, batch, depth]))
        return g.nodes.Reshape(g.nodes.Transpose(batch_inside, [1, 0, 2]), g.shape_of(tensor))


_register_gradient("ExtractImagePatches", _OF_IMAGES, 4)
_register_gradient("ExtractVolumePatches", _OF_VOLUMES, 5)


_NOISES = ("uniform", "gaussian", "zero")
_F = np.float32
_FAR = 2**62
_PAIRS = "second dimension should be of size 2 (y,x)"


def _extract_glimpse_shape(c: InferenceContext) -> None:
    """Images, a size and offsets [batch, 2] -> images of that size."""
    images, offsets = c.with_rank(c.input(0), 4), c.with_rank(c.input(2), 2)
    batch = c.merge(c.dim(images, 0), c.dim(offsets, 0))
    c.with_value(c.dim(offsets, 1), 2)
    if c.get_attr("uniform_noise") and c.get_attr("noise") not in ("", "uniform"):
        raise InvalidArgumentError("The uniform_noise should not be True when noise is not uniform")
    sized_image_shape(c, batch, 1, c.dim(images, 3))


EXTRACT_GLIMPSE, EXTRACT_GLIMPSE_V2 = (
    register_op(
        f"ExtractGlimpse{version}(input: float, size: int32, offsets: float) -> glimpse: float",
        attrs=[
            "centered: bool = true",
            "normalized: bool = true",
            "uniform_noise: bool = true",
            "noise: string = 'uniform'",
        ],
        shape_fn=_extract_glimpse_shape,
        doc=doc,
    )
    for version, doc in (
        (
            "",
            "The window of `size` of each image, `offsets` from its middle; noise stands beyond the image.",
        ),
        (
            "V2",
            "ExtractGlimpse whose offsets, unless centered and normalized, are those of the first pixel.",
        ),
    )
)


def _noise(uniform_noise: bool, noise: str) -> str:
    message = "The uniform_noise and noise could not be specified at the same time"
    require(not uniform_noise or noise in ("", "uniform"), message)
    found = noise or ("uniform" if uniform_noise else "gaussian")
    require(found in _NOISES, f"The noise could only be uniform, gaussian, or zero, got {noise}")
    return found


def _extracting(first_version: bool) -> Callable[..., Callable[[Any, Any, Any], Any]]:
    """Makes the kernels of a version."""

    @from_attrs(kind=_noise)
    def make(*, centered: bool, normalized: bool, kind: str) -> Callable[[Any, Any, Any], Any]:
        is_from_middle = first_version or (centered and normalized)

        def extract(images: Any, size: Any, offsets: Any) -> Any:
            _check(images, size, offsets)
            height, width = size.tolist()
            shape = (len(images), height, width, images.shape[3])
            output = np.zeros(check_allocation(shape, DataType.DT_FLOAT), np.float32)
            if not output.size:
                return output
            tops, lefts = (
                _begins(
                    offsets[:, i], images.shape[1 + i], part, centered, normalized, is_from_middle
                )
                for i, part in enumerate((height, width))
            )
            for image, glimpse, top, left in zip(images, output, tops, lefts, strict=True):
                _take(image, glimpse, top, left, kind)
            return output

        return extract

    return make


register_kernel(EXTRACT_GLIMPSE, factory=True)(_extracting(first_version=True))
register_kernel(EXTRACT_GLIMPSE_V2, factory=True)(_extracting(first_version=False))


def _check(images: Any, size: Any, offsets: Any) -> None:
    require_rank(images, 4, "input must be 4-dimensional{}")
    require_equal(size.shape, (2,), "input must be a vector of size 2 (height, width){}")
    require_rank(offsets, 2, "input must be a matrix{}")
    for axis, size, what in ((0, len(images), "first dimension should be batch"), (1, 2, _PAIRS)):
        if offsets.shape[axis] != size:
            raise InvalidArgumentError(f"{what}{TensorShape(offsets.shape)}")


def _begins(
    offsets: Any, size: int, part: int, centered: bool, normalized: bool, is_from_middle: bool
) -> list[int]:
    """Where the windows begin along one dimension."""
    at = offsets * _F(size) if normalized else offsets
    if is_from_middle:
        if centered:
            at = at / _F(2) + _F(size) / _F(2)
        at = at - _F(part) / _F(2)
    elif centered:
        at = at + _F(size) / _F(2)
    return [int(value) if abs(value) < _FAR else -_FAR for value in at]


def _take(image: Any, glimpse: Any, top: int, left: int, noise: str) -> None:
    """Copy what the image has of the window; noise fills the rest."""
    height, width = glimpse.shape[:2]
    first_row, first_column = max(0, -top), max(0, -left)
    part = image[max(0, top) : max(0, top + height), max(0, left) : max(0, left + width)]
    if part.shape != glimpse.shape and noise != "zero":
        glimpse[...] = _NOISE_OF[noise](image, glimpse.shape)
    if part.size:
        rows = slice(first_row, first_row + part.shape[0])
        glimpse[rows, first_column : first_column + part.shape[1]] = part


def _uniform(image: Any, shape: tuple[int, ...]) -> Any:
    return np.random.default_rng().uniform(0, 1, shape)


def _gaussian(image: Any, shape: tuple[int, ...]) -> Any:
    """Noise with the mean and the deviation of the image."""
    mean, deviation = (float(image.mean()), float(image.std())) if image.size else (0.0, 0.0)
    return np.random.default_rng().normal(mean, deviation, shape)


_NOISE_OF = {"uniform": _uniform, "gaussian": _gaussian}


def random_crop_shape(c: InferenceContext) -> None:
    """[height, width, channels] -> with the height and width that input 1 holds."""
    image = c.with_rank(c.input(0), 3)
    c.merge(c.input(1), c.vector(2))
    size = c.input_tensor(1)
    dims = [None, None] if size is None else size.tolist()
    c.set_output(0, c.make_shape([*dims, c.dim(image, -1)]))


register_op(
    "RandomCrop(image: T, size: int64) -> output: T",
    attrs=["T: {uint8, int8, int16, int32, int64, float, double}", *SEEDS],
    shape_fn=random_crop_shape,
    is_stateful=True,
    deprecated=(8, "Random crop is now pure Python"),
    doc="A part of an image of the given size, at a random place.",
)


@register_kernel("RandomCrop", types={"T": REAL_NUMBERS})
class RandomCrop(OpKernel):
    """Draws the place by the kernel's own stream."""

    def __init__(self, construction: OpKernelConstruction) -> None:
        super().__init__(construction)
        self._generator = GuardedPhilox(construction)

    def compute(self, ctx: OpKernelContext) -> None:
        """Cut the part out."""
        image, size = ctx.input(0), ctx.input(1)
        require_rank(image, 3, "input must be 3-dimensional{}")
        require_equal(size.shape, (2,), "size must have two elements{}")
        rows, columns = (int(one) for one in size)
        if rows < 0 or columns < 0:
            raise InvalidArgumentError(f"Dimensions must be >= 0, got {rows} and {columns}")
        height, width = image.shape[:2]
        for name, whole, part in (("width", width, columns), ("height", height, rows)):
            if whole < part:
                raise FailedPreconditionError(
                    f"{name} must be >= target_{name}: {name} = {whole}, target_{name} = {part}"
                )
        words = iter(self._generator.reserve_words(2).blocks(1)[0].tolist())
        left = next(words) % (width - columns + 1) if width > columns else 0
        top = next(words) % (height - rows + 1) if height > rows else 0
        ctx.set_output(0, image[top : top + rows, left : left + columns].copy())
