"""Boxes and the links between them, which a layout places."""

from __future__ import annotations

from typing import Literal

from opkernel.records import dataclass, field

Point = tuple[float, float]


@dataclass(slots=True, eq=False)
class Box:
    """A thing that takes room in a drawing.

    Attributes:
        width: its width.
        height: its height.
        place: `top` or `bottom` of a box that stands at that rim.
        is_joint: whether it is but a place where a link passes a row.
        is_open: whether lines go on inside of it, from its upper side and to its lower one.
        x: its left side, once it is laid out.
        y: its upper side.
    """

    width: float
    height: float
    place: Literal["", "top", "bottom"] = ""
    is_joint: bool = False
    is_open: bool = False
    x: float = 0.0
    y: float = 0.0


@dataclass(slots=True, eq=False)
class Link:
    """A line from one box to another.

    Attributes:
        upper: where it begins; where it ends, if it is a back link.
        lower: the other end.
        upper_at: how far from the left side of `upper` the line touches it.
        lower_at: the same of `lower`.
        is_back: whether it leads upwards: it closes a cycle.
        points: the line from the upper end to the lower one, once it is laid out.
    """

    upper: Box
    lower: Box
    upper_at: float
    lower_at: float
    is_back: bool = False
    points: list[Point] = field(default_factory=list)

    def turn(self) -> None:
        """Turn it round."""
        self.upper, self.lower = self.lower, self.upper
        self.upper_at, self.lower_at = self.lower_at, self.upper_at
        self.is_back = not self.is_back
