"""What plans call beside kernels: conditions, indices of branches, dead tensors."""

from typing import Any

import ml_dtypes
import numpy as np
import pytest

from opkernel.errors import InvalidArgumentError
from opkernel.runtime.plan.functional_ops import switch, switch_n
from opkernel.runtime.plan.services import (
    DEAD,
    branch_index,
    check_alive,
    first_alive,
    scalar_of,
    switch_index,
    truth,
)

CONDITIONS = ["?", "f", "d", "b", "B", "h", "i", "q", "l"]


@pytest.mark.parametrize("kind", CONDITIONS)
def test_a_number_is_true_unless_it_is_zero(kind: str) -> None:
    for value in (0, 1):
        assert truth(np.array(value, kind)) is bool(value)
        assert truth(np.dtype(kind).type(value)) is bool(value)


@pytest.mark.parametrize("kind", ["e", "F", "D", "H", "I", "Q", ml_dtypes.bfloat16])
def test_other_numbers_are_no_conditions(kind: Any) -> None:
    """As ToBool of TensorFlow's core/kernels/functional_ops.cc has it."""
    with pytest.raises(InvalidArgumentError, match="cannot be converted to a boolean"):
        truth(np.array(1, kind))


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (np.array(b"a", object), True),
        (np.array(b"", object), False),
        (np.zeros(1, np.complex64), True),
        (np.zeros((2, 0)), False),
        (np.array([False]), True),
    ],
)
def test_strings_and_tensors_are_true_unless_they_are_empty(value: Any, expected: bool) -> None:
    assert truth(value) is expected


@pytest.mark.parametrize(("index", "branch"), [(-1, 2), (0, 0), (1, 1), (2, 2), (3, 2)])
def test_the_last_branch_stands_for_indices_out_of_range(index: int, branch: int) -> None:
    assert branch_index(np.int32(index), 3) == switch_index(np.int32(index), 3) == branch
    assert branch_index(np.array(index), 3) == switch_index(np.array(index), 3) == branch
    expected: list[Any] = [DEAD, DEAD, DEAD]
    expected[branch] = "data"
    assert switch_n(3)("data", np.array(index)) == tuple(expected)


@pytest.mark.parametrize("shape", [(1,), (0,), (1, 1)])
def test_decisions_are_scalars(shape: tuple[int, ...]) -> None:
    value = np.zeros(shape, np.int32)
    text = str([*shape]).replace("[", r"\[").replace("]", r"\]")
    with pytest.raises(InvalidArgumentError, match=f"must be a scalar, but it has shape {text}"):
        scalar_of(value)
    with pytest.raises(InvalidArgumentError, match=f"must be a scalar, but it has shape {text}"):
        switch_index(value, 2)
    with pytest.raises(InvalidArgumentError, match=f"must be scalar, but it has shape {text}"):
        branch_index(value, 2)


def test_a_switch_gives_its_data_to_one_side() -> None:
    assert switch("data", np.array(True)) == (DEAD, "data")
    assert switch("data", np.array(False)) == ("data", DEAD)


def test_the_first_tensor_that_is_alive() -> None:
    assert first_alive(DEAD, "a", "b") == ("a", 1)
    assert first_alive("a", DEAD) == ("a", 0)
    index = first_alive(DEAD, DEAD, "c")[1]
    assert (index, index.dtype) == (2, np.int32)
    assert first_alive(DEAD, DEAD) == (DEAD, DEAD)
    assert repr(DEAD) == "DEAD"
    check_alive("a", "x:0")
    with pytest.raises(InvalidArgumentError, match="x:0 was not valid"):
        check_alive(DEAD, "x:0")
