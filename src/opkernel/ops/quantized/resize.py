"""QuantizedResizeBilinear: pixels between four others, in fixed point.

Source: TensorFlow core/ops/image_ops.cc, core/kernels/quantized_resize_bilinear_op.cc.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from opkernel.errors import InvalidArgumentError
from opkernel.kernel import check_allocation
from opkernel.opdef import register_op
from opkernel.opdef.common_shapes.quantized import shape_with_range
from opkernel.ops.image.resize import ALIGNMENT_ATTRS, check_size, resize_shape
from opkernel.ops.image.resize_sampling import Linear, linear
from opkernel.ops.nn.geometry import check_rank
from opkernel.ops.quantized.conversion import Array, as_int64
from opkernel.ops.registration import register_kernel
from opkernel.types import DataType, as_dtype

QUANTIZED_RESIZE_BILINEAR = register_op(
    "QuantizedResizeBilinear",
    inputs=["images: T", "size: int32", "min: float", "max: float"],
    outputs=["resized_images: T", "out_min: float", "out_max: float"],
    attrs=["T: {quint8, qint32, float}", *ALIGNMENT_ATTRS],
    shape_fn=partial(shape_with_range, plain=resize_shape, scalars=(2, 3)),
    doc="ResizeBilinear of images of integers, and their range unchanged.",
)

_FRACTION_BITS = {np.dtype(np.uint8): 7, np.dtype(np.int32): 30}


def _quotient(x: Array, bits: int) -> Array:
    """X / 2**bits, rounded towards 0."""
    quotient: Array = np.where(x < 0, -(-x >> bits), x >> bits)
    return quotient


def _corners(x: Array, rows: Linear, columns: Linear) -> tuple[Array, Array, Array, Array]:
    above, below = x[:, rows.lower], x[:, rows.upper]
    return (
        above[:, :, columns.lower],
        above[:, :, columns.upper],
        below[:, :, columns.lower],
        below[:, :, columns.upper],
    )


def _between_integers(x: Array, rows: Linear, columns: Linear) -> Array:
    """With 7 bits of fraction for 8 bits, 30 for 32; what lies between rows loses its fraction first."""
    bits = _FRACTION_BITS[x.dtype]
    across, down = (
        (line.fraction * np.float32(1 << bits)).astype(np.int64) for line in (columns, rows)
    )
    across, down = across[:, np.newaxis], down[:, np.newaxis, np.newaxis]
    top_left, top_right, bottom_left, bottom_right = (
        as_int64(corner) for corner in _corners(x, rows, columns)
    )
    top = (top_left << bits) + (top_right - top_left) * across
    bottom = (bottom_left << bits) + (bottom_right - bottom_left) * across
    value = top + _quotient(bottom - top, bits) * down
    return _quotient(value + (1 << (bits - 1)), bits).astype(x.dtype)


def _between_floats(x: Array, rows: Linear, columns: Linear) -> Array:
    across, down = columns.fraction[:, np.newaxis], rows.fraction[:, np.newaxis, np.newaxis]
    top_left, top_right, bottom_left, bottom_right = _corners(x, rows, columns)
    top = top_left + (top_right - top_left) * across
    bottom = bottom_left + (bottom_right - bottom_left) * across
    value: Array = top + (bottom - top) * down
    return value


def _check_images(x: Array, height: int, width: int) -> None:
    check_rank("input", x, 4)
    if height <= 0 or width <= 0:
        raise InvalidArgumentError(
            f"output dimensions must be positive, got height {height} and width {width}"
        )
    if not x.shape[1] or not x.shape[2]:
        raise InvalidArgumentError(f"input image must be of non-zero size, got {list(x.shape)}")
    if not x.shape[3]:
        raise InvalidArgumentError("image must have at least one channel")


@register_kernel(
    QUANTIZED_RESIZE_BILINEAR,
    device="CPU",
    types={"T": (DataType.DT_QUINT8, DataType.DT_QINT32, DataType.DT_FLOAT)},
    host_memory=["size"],
    factory=True,
)
def quantized_resize_bilinear(
    *, align_corners: bool, half_pixel_centers: bool
) -> Callable[[Any, Any, Any, Any], Any]:
    def kernel(x: Any, size: Any, low: Any, high: Any) -> Any:
        for name, end in (("min", low), ("max", high)):
            if end.ndim:
                raise InvalidArgumentError(f"{name} must be a scalar")
        height, width = check_size(size)
        _check_images(x, height, width)
        check_allocation((x.shape[0], height, width, x.shape[3]), as_dtype(np.int64))
        if x.shape[1:3] == (height, width):
            return x.copy(), low.copy(), high.copy()
        rows = linear(x.shape[1], height, align_corners, half_pixel_centers)
        columns = linear(x.shape[2], width, align_corners, half_pixel_centers)
        between = _between_floats if x.dtype.kind == "f" else _between_integers
        return between(x, rows, columns), low.copy(), high.copy()

    return kernel
