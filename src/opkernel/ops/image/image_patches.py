"""Patches of images and of volumes as rows of channels: ExtractImagePatches, ExtractVolumePatches.

Source: TensorFlow core/ops/array_ops.cc, core/kernels/extract_image_patches_op.cc,
core/kernels/extract_volume_patches_op.cc.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import opkernel.gradients as g
from opkernel.errors import InvalidArgumentError, OutOfRangeError, UnimplementedError
from opkernel.kernel import check_allocation
from opkernel.opdef import UNKNOWN_DIM, InferenceContext, register_op
from opkernel.opdef.shapes.windowed_output import Padding, get_windowed_output_size_verbose
from opkernel.ops.array.fill import zeros
from opkernel.ops.input_checks import require_rank
from opkernel.ops.int32_attr import int32_attr
from opkernel.ops.kernel_types import NUMBERS, REAL_NUMBERS
from opkernel.ops.nn.windows import Geometry, overlaps
from opkernel.ops.registration import register_kernel
from opkernel.types import DataType

_ATTRS = ("ksizes", "strides", "rates")
_TYPES = (
    "bfloat16, half, float, double, int8, int16, int32, int64, uint8, uint16, uint32, uint64, "
    "complex64, complex128, bool"
)


def extract_image_patches_shape(c: InferenceContext) -> None:
    """For each window its elements, and their channels, along the last dimension."""
    images = c.with_rank(c.input(0), 4)
    for name in _ATTRS:
        length = len(c.get_attr(name))
        if length != 4:
            raise InvalidArgumentError(
                f"ExtractImagePatches requires the {name} attribute to contain 4 values, "
                f"but got: {length}"
            )
    ksizes, strides, rates = (c.get_attr(name)[1:3] for name in _ATTRS)
    depth = c.multiply(c.dim(images, 3), ksizes[0] * ksizes[1])
    sizes = [c.value(c.dim(images, axis)) for axis in (1, 2)]
    output = [UNKNOWN_DIM, UNKNOWN_DIM]
    if UNKNOWN_DIM not in sizes:
        padding = Padding.from_string(c.get_attr("padding"))
        output = [
            get_windowed_output_size_verbose(*along, padding).size
            for along in zip(sizes, ksizes, rates, strides, strict=True)
        ]
    c.set_output(0, c.make_shape([c.dim(images, 0), *output, depth]))


EXTRACT_IMAGE_PATCHES = register_op(
    "ExtractImagePatches",
    inputs=["images: T"],
    outputs=["patches: T"],
    attrs=[
        "ksizes: list(int) >= 4",
        "strides: list(int) >= 4",
        "rates: list(int) >= 4",
        f"T: {{{_TYPES}}}",
        "padding: {'SAME', 'VALID'}",
    ],
    shape_fn=extract_image_patches_shape,
    doc="The windows of size `ksizes` of the images, `strides` apart, each as a row of channels.",
)


@register_kernel(EXTRACT_IMAGE_PATCHES, types={"T": NUMBERS}, factory=True)
def extract_image_patches(
    *, ksizes: list[int], strides: list[int], rates: list[int], padding: str, T: DataType
) -> Callable[[Any], Any]:
    window, steps, dilations = (
        _spatial(name, values)
        for name, values in zip(_ATTRS, (ksizes, strides, rates), strict=True)
    )
    kind = Padding.from_string(padding)

    def extract(images: Any) -> Any:
        require_rank(images, 4, "input must be 4-dimensional{}")
        spatial = images.shape[1:3]
        along = [
            get_windowed_output_size_verbose(*args, kind)
            for args in zip(spatial, window, dilations, steps, strict=True)
        ]
        paddings = tuple((found.padding_before, found.padding_after) for found in along)
        output = tuple(found.size for found in along)
        geometry = Geometry(window, steps, dilations, paddings, output)
        batch, depth = images.shape[0], images.shape[3]
        shape = check_allocation((batch, *output, *window, depth), T)
        patches: Any = zeros(shape, T)
        for offset, windows, elements in overlaps(geometry, spatial):
            patches[windows][(..., *offset, slice(None))] = images[elements]
        return patches.reshape(batch, *output, window[0] * window[1] * depth)

    return extract


def _spatial(name: str, values: list[int]) -> tuple[int, int]:
    """The entries of an attr for rows and columns; those for batch and channels are 1."""
    for value in values:
        int32_attr(name, value)
    if values[0] != 1 or values[3] != 1:
        raise UnimplementedError(f"Only support {name} across space.")
    if values[1] < 1 or values[2] < 1:
        raise OutOfRangeError(f"{name} is out of range.")
    return values[1], values[2]


@g.register_gradient("ExtractImagePatches")
def extract_image_patches_gradient(op: g.Operation, grad: g.Tensor) -> g.Gradients:
    """The patches of an image that holds the number of each pixel say where the copies come from."""
    (image,) = op.inputs
    batch, rows, columns, depth = g.nodes.Unpack(g.nodes.Shape(image), num=4)
    pixels = g.nodes.Mul(rows, columns)
    numbers = g.nodes.Range(1, g.nodes.AddV2(pixels, 1), 1)
    numbered = g.nodes.Reshape(numbers, g.nodes.Pack([1, rows, columns, 1]))
    attrs = g.attrs_of(op, "ksizes", "strides", "rates", "padding")
    sources = g.nodes.Sub(g.nodes.Reshape(g.nodes.ExtractImagePatches(numbered, **attrs), [-1]), 1)
    copies = g.nodes.Reshape(grad, g.nodes.Pack([batch, -1, depth]))
    flat = g.nodes.Reshape(g.nodes.Transpose(copies, [1, 0, 2]), _matrix(g.nodes.Mul(batch, depth)))
    total = g.nodes.UnsortedSegmentSum(flat, sources, pixels)
    image_last = g.nodes.Reshape(total, g.nodes.Pack([pixels, batch, depth]))
    return g.nodes.Reshape(g.nodes.Transpose(image_last, [1, 0, 2]), g.shape_of(image))


def _matrix(columns: g.Tensor) -> Any:
    return g.nodes.Pack([-1, columns])


def _extract_volume_patches_shape(c: InferenceContext) -> None:
    """For each window of a volume its elements along the last dimension.

    Where planes, rows or columns are unknown, TensorFlow states a rank of 4, which no output has.
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
        c.doubt_output(0)
        return
    padding = Padding.from_string(c.get_attr("padding"))
    windows = [
        get_windowed_output_size_verbose(dim.value, ksize, 1, stride, padding).size
        for dim, ksize, stride in zip(space, ksizes, strides, strict=True)
    ]
    c.set_output(0, c.make_shape([batch, *windows, depth]))


EXTRACT_VOLUME_PATCHES = register_op(
    "ExtractVolumePatches",
    inputs=["input: T"],
    outputs=["patches: T"],
    attrs=[
        "ksizes: list(int) >= 5",
        "strides: list(int) >= 5",
        "T: realnumbertype",
        "padding: {'SAME', 'VALID'}",
    ],
    shape_fn=_extract_volume_patches_shape,
    doc="The windows of size `ksizes` of volumes, `strides` apart, each as a row of channels.",
)


@register_kernel(EXTRACT_VOLUME_PATCHES, types={"T": REAL_NUMBERS}, factory=True)
def extract_volume_patches(
    *, ksizes: list[int], strides: list[int], padding: str, T: DataType
) -> Callable[[Any], Any]:
    window, steps = (
        _spatial_of_volume(name, values)
        for name, values in (("ksizes", ksizes), ("strides", strides))
    )
    kind = Padding.from_string(padding)

    def extract(volumes: Any) -> Any:
        require_rank(volumes, 5, "input must be 5-dimensional{}")
        spatial = volumes.shape[1:4]
        along = [
            get_windowed_output_size_verbose(size, ksize, 1, stride, kind)
            for size, ksize, stride in zip(spatial, window, steps, strict=True)
        ]
        output = tuple(found.size for found in along)
        before: tuple[int, ...] = (0, 0, 0)
        if kind is Padding.SAME:
            before = tuple(map(_padding, spatial, window, steps, output))
            volumes = volumes[(slice(None), *(slice(max(0, -skipped), None) for skipped in before))]
            spatial = volumes.shape[1:4]
        paddings = tuple((max(0, missing), window[axis]) for axis, missing in enumerate(before))
        geometry = Geometry(window, steps, (1, 1, 1), paddings, output)
        batch, depth = volumes.shape[0], volumes.shape[4]
        patches: Any = zeros(check_allocation((batch, *output, *window, depth), T), T)
        for offset, windows, elements in overlaps(geometry, spatial):
            patches[windows][(..., *offset, slice(None))] = volumes[elements]
        return patches.reshape(batch, *output, window[0] * window[1] * window[2] * depth)

    return extract


def _padding(size: int, ksize: int, stride: int, output: int) -> int:
    """The elements that are missing before; where strides leave elements out, Eigen begins within them."""
    return int(((output - 1) * stride + ksize - size) / 2)


def _spatial_of_volume(name: str, values: list[int]) -> tuple[int, ...]:
    """The entries of an attr for planes, rows and columns; those for batch and channels are 1."""
    for value in values:
        int32_attr(name, value)
    if values[0] != 1 or values[4] != 1:
        raise UnimplementedError(f"Only support {name} across space.")
    if min(values[1:4]) < 1:
        raise OutOfRangeError(f"{name} is out of range.")
    return tuple(values[1:4])


@g.register_gradient("ExtractVolumePatches")
def extract_volume_patches_gradient(op: g.Operation, grad: g.Tensor) -> g.Gradients:
    """The patches of a volume that holds the number of each element say where the copies come from."""
    (volume,) = op.inputs
    batch, planes, rows, columns, depth = g.nodes.Unpack(g.nodes.Shape(volume), num=5)
    count = g.nodes.Mul(planes, g.nodes.Mul(rows, columns))
    numbers = g.nodes.Range(1, g.nodes.AddV2(count, 1), 1)
    numbered = g.nodes.Reshape(numbers, g.nodes.Pack([1, planes, rows, columns, 1]))
    attrs = g.attrs_of(op, "ksizes", "strides", "padding")
    sources = g.nodes.Sub(g.nodes.Reshape(g.nodes.ExtractVolumePatches(numbered, **attrs), [-1]), 1)
    copies = g.nodes.Reshape(grad, g.nodes.Pack([batch, -1, depth]))
    flat = g.nodes.Reshape(
        g.nodes.Transpose(copies, [1, 0, 2]), g.nodes.Pack([-1, g.nodes.Mul(batch, depth)])
    )
    total = g.nodes.UnsortedSegmentSum(flat, sources, count)
    volume_last = g.nodes.Reshape(total, g.nodes.Pack([count, batch, depth]))
    return g.nodes.Reshape(g.nodes.Transpose(volume_last, [1, 0, 2]), g.shape_of(volume))
