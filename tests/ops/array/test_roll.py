"""Roll."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from opkernel import raw_ops
from opkernel.errors import InvalidArgumentError


@given(st.integers(-7, 7), st.integers(-2, 1))
def test_an_element_moves_by_the_shift(shift: int, axis: int) -> None:
    x = np.arange(12).reshape(3, 4)
    rolled = raw_ops.Roll(input=x, shift=shift, axis=axis)
    for place in np.ndindex(3, 4):
        target = list(place)
        target[axis] = (target[axis] + shift) % x.shape[axis]
        assert rolled[tuple(target)] == x[place]


def test_shifts_of_one_axis_add_up() -> None:
    x = np.array([b"a", b"b", b"c", b"d"], object)
    assert raw_ops.Roll(input=x, shift=[1, 2], axis=[0, 0]).tolist() == [b"b", b"c", b"d", b"a"]


@pytest.mark.parametrize(
    ("x", "shift", "axis", "message"),
    [
        (np.float32(1), [1], [0], "1-D or higher"),
        (np.zeros(3), [1], [1], "axis 1 is out of range"),
        (np.zeros(3), [1, 2], [0], "the same size"),
        (np.zeros(3), [[1]], [0], r"shift must be a scalar or a 1-D vector. Found: \[1,1\]"),
    ],
)
def test_errors(x: Any, shift: Any, axis: Any, message: str) -> None:
    with pytest.raises(InvalidArgumentError, match=message):
        raw_ops.Roll(input=x, shift=np.array(shift), axis=np.array(axis))
