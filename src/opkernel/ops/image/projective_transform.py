"""Images seen from elsewhere: ImageProjectiveTransformV2, ImageProjectiveTransformV3.

Source: TensorFlow core/ops/image_ops.cc, core/kernels/image/image_ops.cc, image_ops.h.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

import opkernel.gradients as g
from opkernel.device.work_clock import SLOW, in_time
from opkernel.errors import InvalidArgumentError
from opkernel.kernel import KernelRegistry, check_allocation
from opkernel.opdef import InferenceContext, register_op
from opkernel.ops.image.resize import sized_image_shape
from opkernel.ops.input_checks import require_equal, require_rank, require_scalar, require_vector
from opkernel.ops.registration import FLOATS, INDEX, register_kernel
from opkernel.types import Array, DataType

_TYPES = (DataType.DT_UINT8, *INDEX, *FLOATS)
_PROJECTION_ATTRS = [
    "dtype: {uint8, int32, int64, half, bfloat16, float, double}",
    "interpolation: string",
    "fill_mode: string = 'CONSTANT'",
]


def _projective_transform_shape(c: InferenceContext) -> None:
    """Images -> images of the height and width that input 2 holds."""
    images = c.with_rank(c.input(0), 4)
    sized_image_shape(c, c.dim(images, 0), 2, c.dim(images, 3))


_INPUTS = "images: dtype, transforms: float, output_shape: int32"

IMAGE_PROJECTIVE_TRANSFORM_V2 = register_op(
    f"ImageProjectiveTransformV2({_INPUTS}) -> transformed_images: dtype",
    attrs=_PROJECTION_ATTRS,
    shape_fn=_projective_transform_shape,
    doc=(
        "Each pixel (x, y) is that of the image at ((a0 x + a1 y + a2) / k, (b0 x + b1 y + b2) / k), where "
        "k = c0 x + c1 y + 1. `fill_mode` says what lies beyond the image."
    ),
)
IMAGE_PROJECTIVE_TRANSFORM_V3 = register_op(
    f"ImageProjectiveTransformV3({_INPUTS}, fill_value: float) -> transformed_images: dtype",
    attrs=_PROJECTION_ATTRS,
    shape_fn=_projective_transform_shape,
    doc="ImageProjectiveTransformV2 with the value beyond the image where `fill_mode` is CONSTANT.",
)

_F = np.float32
_TILE = 1 << 17
"""The pixels of a tile."""


def _nearest(at: Any, size: int) -> Any:
    return np.clip(at, _F(0), _F(size - 1))


def _reflect(at: Any, size: int) -> Any:
    """Abcd continues as dcba on both sides."""
    if size <= 1:
        return np.where((at < 0) | (at > size - 1), _F(0), at)
    twice = _F(2 * size)
    before = twice * np.trunc(-at / twice) + at
    before = np.where(before < -size, before + twice, -before - 1)
    after = at - twice * np.trunc(at / twice)
    after = np.where(after >= size, twice - after - 1, after)
    inside = np.where(at < 0, before, np.where(at > size - 1, after, at))
    return np.clip(inside, _F(0), _F(size - 1))


def _wrap(at: Any, size: int) -> Any:
    """Abcd continues as abcd on both sides."""
    if size <= 1:
        return np.where((at < 0) | (at > size - 1), _F(0), at)
    last = _F(size - 1)
    before = at + _F(size) * (np.trunc(-at / last) + 1)
    after = at - _F(size) * np.trunc(at / last)
    inside = np.where(at < 0, before, np.where(at > last, after, at))
    return np.clip(inside, _F(0), last)


_FILLS: dict[str, Callable[[Any, int], Any]] = {
    "": lambda at, size: at,
    "CONSTANT": lambda at, size: at,
    "NEAREST": _nearest,
    "REFLECT": _reflect,
    "WRAP": _wrap,
}


FILL_MODES = tuple(_FILLS)
"""The values of the attr `fill_mode`; algorithms get an index of it."""

Project = Callable[[Any, Any, Any, int, Any, Any], Any]
"""A function as `project_nearest`."""


def project_nearest(
    images: Array, projections: Array, first: Array, mode: int, fill: Array, out: Array
) -> None:
    """Fill a tile of the new images with the nearest pixels.

    Args:
        images: [images, height, width, channels].
        projections: [images, 8] or [1, 8], float32: the transforms.
        first: int64 [2]: the row and the column of the new images where the tile begins.
        mode: What lies beyond an image: an index of `FILL_MODES`.
        fill: [1], of the type of the images: the value beyond them, where the mode has none.
        out: [images, rows, columns, channels]: the tile.
    """
    _project(_take_nearest, images, projections, first, mode, fill, out)


def project_bilinear(*arguments: Any) -> None:
    """As `project_nearest`, with pixels between the four around each place."""
    _project(_take_bilinear, *arguments)


def _project(take: Callable[..., Any], images: Any, projections: Any, *rest: Any) -> None:
    first, mode, fill, out = rest
    inside = _FILLS[FILL_MODES[mode]]
    with np.errstate(all="ignore"):
        x, y, valid = _positions(projections, first, out.shape)
        rows, columns = inside(y, images.shape[1]), inside(x, images.shape[2])
        out[...] = take(images, rows, columns, fill)
    out[np.broadcast_to(~valid, out.shape[:3])] = fill


def register_projective_transform(
    nearest: Project,
    bilinear: Project,
    types: Sequence[DataType] = _TYPES,
    registry: KernelRegistry | None = None,
) -> None:
    """Register the kernels of both ops with functions that compute tiles."""

    def image_projective_transform(*, interpolation: str, fill_mode: str) -> Callable[..., Any]:
        interpolation = interpolation.upper()
        methods = {"NEAREST": nearest, "BILINEAR": bilinear}
        if interpolation not in methods:
            raise InvalidArgumentError(f"Interpolation {interpolation} is not supported")
        if fill_mode not in FILL_MODES:
            raise InvalidArgumentError(f"fill_mode {fill_mode} is not supported")
        project, mode = methods[interpolation], FILL_MODES.index(fill_mode)

        def transform(
            images: Any, transforms: Any, output_shape: Any, fill_value: Any = None
        ) -> Any:
            shape = _output_shape(images, transforms, output_shape)
            if fill_value is not None:
                require_scalar(fill_value, "fill_value must be a scalar, got {}")
            with np.errstate(all="ignore"):
                fill = np.full(1, 0 if fill_value is None else fill_value, _F).astype(images.dtype)
            output = np.empty(shape, images.dtype)
            for some, rows, columns in _tiles(*shape[:3]) if output.size else ():
                own = transforms if len(transforms) == 1 else transforms[some]
                first = np.array([rows.start, columns.start])
                project(images[some], own, first, mode, fill, output[some, rows, columns])
            return output

        return transform

    register_kernel(
        IMAGE_PROJECTIVE_TRANSFORM_V2,
        IMAGE_PROJECTIVE_TRANSFORM_V3,
        types={"dtype": types},
        factory=True,
        registry=registry,
    )(image_projective_transform)


register_projective_transform(project_nearest, project_bilinear)


def _output_shape(images: Any, transforms: Any, output_shape: Any) -> tuple[int, ...]:
    require_rank(images, 4, "Input images must have rank 4")
    if transforms.ndim != 2 or transforms.shape[1] != 8 or len(transforms) not in (1, len(images)):
        raise InvalidArgumentError("Input transform should be num_images x 8 or 1 x 8")
    require_vector(output_shape, "output shape must be 1-dimensional{}")
    require_equal(output_shape.shape, (2,), "output shape must have two elements{}")
    height, width = output_shape.tolist()
    if height <= 0 or width <= 0:
        raise InvalidArgumentError(f"output dimensions must be positive, got {height} x {width}")
    dtype = DataType.DT_DOUBLE if images.dtype.itemsize == 8 else DataType.DT_FLOAT
    return check_allocation((len(images), height, width, images.shape[3]), dtype)


def _tiles(images: int, height: int, width: int) -> Iterable[tuple[slice, slice, slice]]:
    """What is computed at a time: some images, their rows and columns."""
    columns = min(width, _TILE)
    rows = min(max(_TILE // columns, 1), height)
    at_once = max(_TILE // (rows * columns), 1)
    starts = itertools.product(
        range(0, images, at_once), range(0, height, rows), range(0, width, columns)
    )
    return (
        (
            slice(image, image + at_once),
            slice(top, min(top + rows, height)),
            slice(left, min(left + columns, width)),
        )
        for image, top, left in in_time(starts, SLOW, "transforming images")
    )


def _positions(projections: Any, first: Any, shape: Any) -> tuple[Any, Any, Any]:
    """The column and row of the image for each pixel of a tile, and whether there is any."""
    a0, a1, a2, b0, b1, b2, c0, c1 = projections.T.reshape(8, -1, 1, 1)
    y = np.arange(first[0], first[0] + shape[1], dtype=_F)[:, None]
    x = np.arange(first[1], first[1] + shape[2], dtype=_F)
    projection = c0 * x + c1 * y + _F(1)
    across = (a0 * x + a1 * y + a2) / projection
    down = (b0 * x + b1 * y + b2) / projection
    return across, down, projection != 0


def _read(images: Any, rows: Any, columns: Any, fill: Any) -> Any:
    """The pixels at rows and columns; the fill value beyond the image."""
    count, height, width, channels = images.shape
    if not images.size:
        return np.full((count, *rows.shape[1:], channels), fill, images.dtype)
    valid = (rows >= 0) & (rows < height) & (columns >= 0) & (columns < width)
    row, column = (np.where(valid, part, 0).astype(np.intp) for part in (rows, columns))
    found = images[np.arange(count)[:, None, None], row, column]
    if not valid.all():
        found[np.broadcast_to(~valid, found.shape[:3])] = fill
    return found


def _take_nearest(image: Any, rows: Any, columns: Any, fill: Any) -> Any:
    return _read(image, _rounded(rows), _rounded(columns), fill)


def _rounded(at: Any) -> Any:
    """Half away from zero."""
    return np.trunc(at + np.copysign(_F(0.49999997), at))


def _take_bilinear(image: Any, rows: Any, columns: Any, fill: Any) -> Any:
    top, left = np.floor(rows), np.floor(columns)
    down, across = (rows - top)[..., None], (columns - left)[..., None]
    up, back = (top + 1 - rows)[..., None], (left + 1 - columns)[..., None]

    def mixed(at: Any) -> Any:
        first, second = (_read(image, at, part, fill).astype(_F) for part in (left, left + 1))
        return back * first + across * second

    return up * mixed(top) + down * mixed(top + 1)


def _inverse(transforms: g.Tensor) -> Any:
    """The transforms back."""
    nodes = g.nodes
    count = nodes.Slice(nodes.Shape(transforms), [0], [1])
    ones = nodes.Fill(nodes.ConcatV2([count, [1]], 0), nodes.Cast(1.0, DstT="float32"))
    whole = nodes.ConcatV2([transforms, ones], 1)
    inverse = nodes.Reshape(nodes.MatrixInverse(nodes.Reshape(whole, [-1, 3, 3])), [-1, 9])
    last = nodes.Slice(inverse, [0, 8], [-1, 1])
    return nodes.Slice(nodes.RealDiv(inverse, last), [0, 0], [-1, 8])


@g.register_gradient(
    "ImageProjectiveTransformV2",
    "ImageProjectiveTransformV3",
    not_derivative="it is the transform back, which only comes near",
)
def image_projective_transform_gradient(op: g.Operation, grad: g.Tensor) -> g.Gradients:
    """The gradient seen from there, as TensorFlow has it: the inverse transform of it."""
    images, transforms, _, *fill_value = op.inputs
    size = g.nodes.Slice(g.nodes.Shape(images), [1], [2])
    attrs = g.attrs_of(op, "interpolation", "fill_mode")
    version = "V3" if fill_value else "V2"
    transform = getattr(g.nodes, f"ImageProjectiveTransform{version}")
    back = transform(grad, _inverse(transforms), size, *fill_value, **attrs)
    return [back, *[None] * (len(op.inputs) - 1)]
