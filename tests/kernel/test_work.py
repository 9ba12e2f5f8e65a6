"""How much a kernel has to do: a guess for folding constants, and the least for steps with little time."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from opkernel.kernel import bounded
from opkernel.kernel.bounded import least_seconds, work_of
from opkernel.opdef import global_op_registry

CALL = 16384
"""The work of any call, which is about 16 µs."""

sizes = st.integers(1, 9)


def traits(op):
    return global_op_registry().look_up(op).traits


def floats(*shape):
    return np.broadcast_to(np.float32(1), shape)


@pytest.mark.parametrize(
    ("op", "of_element"),
    [("AddV2", 8), ("Lgamma", 8), ("Transpose", 8), ("Reshape", 8), ("Igamma", 1000)],
)
def test_work_that_is_linear_in_the_elements(op, of_element):
    assert work_of(traits(op), [], 0) == CALL
    assert work_of(traits(op), [floats(2, 3), floats()], 5) == CALL + 12 * of_element


@given(sizes, sizes, sizes)
def test_a_product_multiplies_each_row_by_each_column(rows, inner, columns):
    inputs, outputs = [floats(rows, inner), floats(inner, columns)], rows * columns
    elements = rows * inner + inner * columns + outputs
    expected = CALL + rows * inner * columns + 8 * elements
    assert work_of(traits("MatMul"), inputs, outputs) == expected


def test_a_product_of_unknown_size_is_work_all_the_same():
    assert work_of(traits("MatMul"), [floats(4, 4), floats(4, 4)], 0) == CALL + 16 + 8 * 32


@given(sizes, sizes, sizes, sizes, sizes)
def test_a_convolution_multiplies_each_output_by_its_window(outputs, height, width, given_, made):
    image, filters = floats(1, 8, 8, given_), floats(height, width, given_, made)
    expected = CALL + outputs * made * height * width * given_
    assert work_of(traits("Conv2D"), [image, filters], outputs * made) == expected


@pytest.mark.parametrize("inputs", [[floats(6)], [floats(6), floats()]])
def test_a_convolution_without_filters_is_taken_for_the_worst(inputs):
    """No graph has one; what is guessed is more than nothing."""
    assert work_of(traits("Conv2D"), inputs, 4) >= CALL + 4


def test_an_op_of_which_nothing_is_known_may_compare_all_with_all():
    assert work_of(traits("NonMaxSuppression"), [floats(10, 4), floats(10)], 10) == CALL + 60**2


@pytest.fixture
def rates(monkeypatch):
    """As on a machine that does a thousand multiplications, and sorts a hundred elements, in a second."""
    monkeypatch.setattr(bounded, "_MOST_PER_SECOND", 1000)
    monkeypatch.setattr(bounded, "_MOST_SORTED_PER_SECOND", 100)


@pytest.mark.parametrize(
    ("a", "b", "multiplications"),
    [
        ((20, 30), (30, 40), 20 * 30 * 40),
        ((5, 20, 30), (5, 30, 40), 5 * 20 * 30 * 40),
        ((30, 20), (30, 40), 20 * 30 * 40),  # transposed
        ((20, 30), (50, 40), 20 * 30 * 50 * 40),  # which fits in no way: nothing is summed over
        ((0, 30), (30, 40), 0),
        ((2, 0), (0, 3), 0),
    ],
)
def test_a_product_takes_its_multiplications_at_least(rates, a, b, multiplications):
    found = least_seconds(traits("MatMul"), [floats(*a), floats(*b)])
    assert math.isclose(found, multiplications / 1000)


def test_a_product_is_never_thought_slower_than_it_is(rates):
    """Where several sizes may be the one that is summed over, it is taken for the largest."""
    assert least_seconds(traits("MatMul"), [floats(40, 30), floats(30, 40)]) == 40 * 30 * 30 / 1000


def test_a_sort_takes_its_elements_at_least(rates):
    assert least_seconds(traits("TopKV2"), [floats(30, 40), floats()]) == 12
    assert least_seconds(traits("TopKV2"), []) == 0


@pytest.mark.parametrize(
    ("op", "inputs"),
    [
        ("AddV2", [floats(9), floats(9)]),
        ("Conv2D", [floats(9), floats(9)]),
        ("MatMul", [floats(9)]),
    ],
)
def test_of_other_kernels_nothing_is_known(op, inputs):
    assert least_seconds(traits(op), inputs) == 0


def test_rates_are_those_of_no_machine_yet():
    """A processor multiplies less than 1.5e11 times in a second, and sorts less than 1e9 elements."""
    assert 0 < least_seconds(traits("MatMul"), [floats(1000, 1000), floats(1000, 1000)]) <= 1 / 150
    assert least_seconds(traits("TopKV2"), [floats(1000, 1000)]) == 1e-3
