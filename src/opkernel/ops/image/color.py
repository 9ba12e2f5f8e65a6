"""Colours: between red, green, blue and hue, saturation, value.

Source: TensorFlow core/ops/image_ops.cc, core/kernels/image/colorspace_op.h.
"""

from collections.abc import Callable
from typing import Any

import numpy as np

from opkernel.errors import FailedPreconditionError, InvalidArgumentError
from opkernel.kernel import register_kernel
from opkernel.opdef import InferenceContext, OpHandle, register_op
from opkernel.ops.kernel_types import FLOATS
from opkernel.types import DataType

__all__ = ["hsv_to_rgb", "rgb_to_hsv"]


def colorspace_shape(c: InferenceContext) -> None:
    """Input 0, its last dimension 3."""
    images = c.with_rank_at_least(c.input(0), 1)
    c.set_output(0, c.replace_dim(images, -1, c.with_value(c.dim(images, -1), 3)))


def _declare(name: str, doc: str) -> OpHandle:
    return register_op(
        name,
        inputs=["images: T"],
        outputs=["output: T"],
        attrs=["T: {half, bfloat16, float, double} = DT_FLOAT"],
        shape_fn=colorspace_shape,
        doc=doc,
    )


RGB_TO_HSV = _declare(
    "RGBToHSV",
    "Hue, saturation and value, between 0 and 1, of colours whose last dimension is red, green, blue.",
)
HSV_TO_RGB = _declare(
    "HSVToRGB",
    "Red, green and blue of colours whose last dimension is hue, saturation, value, between 0 and 1.",
)


def rgb_to_hsv(rgb: Any, xp: Any) -> Any:
    red, green, blue = rgb[..., 0], rgb[..., 1], rgb[..., 2]
    value = xp.maximum(xp.maximum(red, green), blue)
    extent = value - xp.minimum(xp.minimum(red, green), blue)
    zero = xp.zeros_like(value)
    saturation = xp.where(value > 0, extent / value, zero)
    sixth = 1 / extent * (1 / 6)
    hue = xp.where(
        red == value,
        sixth * (green - blue),
        xp.where(
            green == value,
            sixth * (blue - red) + 2 / 6,
            sixth * (red - green) + 4 / 6,
        ),
    )
    hue = xp.where(extent > 0, hue, zero)
    return xp.stack([xp.where(hue < 0, hue + 1, hue), saturation, value], axis=-1)


def hsv_to_rgb(hsv: Any, xp: Any) -> Any:
    hue, saturation, value = hsv[..., 0] * 6, hsv[..., 1], hsv[..., 2]
    parts = (xp.abs(hue - 3) - 1, 2 - xp.abs(hue - 2), 2 - xp.abs(hue - 4))
    rest = 1 - saturation
    return xp.stack(
        [(rest + saturation * xp.clip(part, 0, 1)) * value for part in parts], axis=-1
    )


def _check(images: Any) -> None:
    if images.ndim == 0:
        raise InvalidArgumentError("input must be at least 1D[]")
    if images.shape[-1] != 3:
        raise FailedPreconditionError(
            f"input must have 3 channels but input only has {images.shape[-1]} channels."
        )


def _register(op: OpHandle, convert: Callable[[Any, Any], Any]) -> None:
    """Register a conversion; half and bfloat16 are computed in float."""

    @register_kernel(op, device="CPU", types={"T": FLOATS}, factory=True)
    def make(*, T: DataType, xp: Any) -> Callable[[Any], Any]:
        narrow = T in (DataType.DT_BFLOAT16, DataType.DT_HALF)

        def kernel(images: Any) -> Any:
            _check(images)
            if narrow:
                return convert(images.astype(np.float32), xp).astype(T.numpy_dtype)
            return convert(images, xp)

        return kernel


_register(RGB_TO_HSV, rgb_to_hsv)
_register(HSV_TO_RGB, hsv_to_rgb)
