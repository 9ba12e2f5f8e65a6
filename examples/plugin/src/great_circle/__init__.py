"""The op GreatCircleDistance, for opkernel; importing this registers it."""

from great_circle import kernels
from great_circle.ops import GREAT_CIRCLE_DISTANCE

__all__ = ["GREAT_CIRCLE_DISTANCE", "kernels"]
