"""How GreatCircleDistance is computed."""

import math
from typing import Any

import opkernel
from great_circle.ops import GREAT_CIRCLE_DISTANCE

__all__ = ["haversine"]


@opkernel.register_kernel(GREAT_CIRCLE_DISTANCE, device="CPU")
def haversine(start: Any, end: Any, *, radius: float, xp: Any) -> Any:
    """The haversine formula, which is exact for places near each other, too."""
    start, end = start * (math.pi / 180), end * (math.pi / 180)
    half = xp.sin((end - start) / 2) ** 2
    cosines = xp.cos(start[..., 0]) * xp.cos(end[..., 0])
    square = half[..., 0] + cosines * half[..., 1]
    return 2 * radius * xp.asin(xp.sqrt(xp.clip(square, 0, 1)))
