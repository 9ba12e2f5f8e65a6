import numpy as np
import pytest

from great_circle import GREAT_CIRCLE_DISTANCE
from opkernel import errors
from opkernel.testing import assert_outputs, check_op, expect_shapes, run_op

OP = GREAT_CIRCLE_DISTANCE.name
NORTH_POLE, SOUTH_POLE, GULF_OF_GUINEA = [90.0, 0.0], [-90.0, 0.0], [0.0, 0.0]


def test_poles_are_half_a_circle_apart():
    places = [np.array([NORTH_POLE, NORTH_POLE]), np.array([SOUTH_POLE, GULF_OF_GUINEA])]
    assert_outputs(run_op(OP, places, attrs={"radius": 1.0}), [np.pi, np.pi / 2])


def test_berlin_to_paris_in_kilometres():
    places = [np.array([52.52, 13.405]), np.array([48.857, 2.352])]
    assert 877 < run_op(OP, places).outputs[0] < 878


def test_shapes():
    expect_shapes(OP, [[None, 2], [5, None]], [[5]])
    expect_shapes(OP, [None, None], [None])


def test_places_have_two_numbers():
    with pytest.raises(errors.InvalidArgumentError, match="must be 2 but is 3"):
        expect_shapes(OP, [[3], [3]], [[]])


def test_every_kernel_keeps_the_rules():
    check_op(OP)
