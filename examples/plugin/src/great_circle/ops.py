"""What GreatCircleDistance is: its declaration and its shape function."""

import opkernel
from opkernel.opdef import InferenceContext

__all__ = ["GREAT_CIRCLE_DISTANCE"]


def _shape(c: InferenceContext) -> None:
    places = c.merge(c.with_rank_at_least(c.input(0), 1), c.input(1))
    c.with_value(c.dim(places, -1), 2)
    c.set_output(0, c.subshape(places, 0, -1))


GREAT_CIRCLE_DISTANCE = opkernel.register_op(
    "GreatCircleDistance",
    inputs=["start: T", "end: T"],
    outputs=["distance: T"],
    attrs=["T: {float, double}", "radius: float = 6371.0"],
    shape_fn=_shape,
    doc="""The shortest way between places on a sphere.

start: Latitudes and longitudes in degrees, [..., 2].
end: The same.
distance: The ways' lengths in the unit of the radius, [...].
radius: The sphere's; that of the Earth in kilometres without it.""",
)
