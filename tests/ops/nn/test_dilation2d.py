"""Dilation2D and its gradients; values are TensorFlow's or the definition's."""

import numpy as np
import pytest

from opkernel import raw_ops
from opkernel.errors import InvalidArgumentError, UnimplementedError

ATTRS = {"strides": [1, 1, 1, 1], "rates": [1, 1, 1, 1], "padding": "VALID"}
NAN, INF = np.nan, np.inf
LOWEST = np.finfo(np.float32).min


def line(*values, dtype=np.float32):
    return np.array(values, dtype).reshape(1, 1, -1, 1)


def element(*values, dtype=np.float32):
    return np.array(values, dtype).reshape(1, -1, 1)


def dilation2d(x, filters, **attrs):
    return raw_ops.Dilation2D(input=x, filter=filters, **{**ATTRS, **attrs})


def gradients(x, filters, gradient, **attrs):
    """The gradients by the input and by the filter, flat."""
    inputs = {"input": x, "filter": filters, "out_backprop": gradient}
    by_input = raw_ops.Dilation2DBackpropInput(**inputs, **{**ATTRS, **attrs})
    by_filter = raw_ops.Dilation2DBackpropFilter(**inputs, **{**ATTRS, **attrs})
    return by_input.ravel().tolist(), by_filter.ravel().tolist()


@pytest.mark.parametrize(
    ("attrs", "expected"),
    [
        ({}, [15, 13, 14]),
        ({"padding": "SAME"}, [15, 13, 14, 4]),
        ({"strides": [1, 1, 2, 1]}, [15, 14]),
        ({"rates": [1, 1, 2, 1]}, [13, 14]),
        ({"rates": [1, 1, 0, 1]}, [11, 15, 13, 14]),
    ],
)
def test_windows(attrs, expected):
    assert dilation2d(line(1, 5, 3, 4), element(0, 10), **attrs).ravel().tolist() == expected


def test_nan_and_infinities_count_as_absent():
    found = dilation2d(line(NAN, 1, NAN, NAN, -INF, -INF, INF), element(0, 0)).ravel()
    np.testing.assert_array_equal(found, [1, 1, LOWEST, LOWEST, LOWEST, INF])


def test_integers_wrap_around():
    found = dilation2d(line(250, 250, dtype=np.uint8), element(3, 6, dtype=np.uint8))
    assert found.ravel().tolist() == [253]


def test_an_empty_filter_gives_the_lowest_values():
    found = dilation2d(np.ones((1, 2, 2, 2), np.float32), np.ones((0, 2, 2), np.float32))
    assert found.shape == (1, 3, 1, 2)
    assert (found == LOWEST).all()


def test_gradients():
    # The windows of 1 5 3 4 have their largest sums 15, 13 and 14 at the filter's last element.
    by_input, by_filter = gradients(line(1, 5, 3, 4), element(0, 10), line(1, 10, 100))
    assert by_input == [0, 1, 10, 100]
    assert by_filter == [0, 111]


def test_gradients_of_equal_sums_go_to_the_first():
    by_input, by_filter = gradients(line(7, 7, 7), element(0, 0), line(1, 10))
    assert by_input == [1, 10, 0]
    assert by_filter == [11, 0]


def test_gradients_of_windows_without_a_largest_sum_go_to_the_first_element():
    by_input, by_filter = gradients(line(NAN, NAN, -INF), element(0, 0), line(1, 10))
    assert by_input == [1, 10, 0]
    assert by_filter == [11, 0]


@pytest.mark.parametrize(
    ("x", "filters", "attrs", "error", "message"),
    [
        ((2, 2, 1), (1, 1, 1), {}, InvalidArgumentError, "input must be 4-dimensional"),
        ((1, 2, 2, 1), (1, 1, 1, 1), {}, InvalidArgumentError, "filter must be 3-dimensional"),
        ((1, 2, 2, 1), (1, 1, 2), {}, InvalidArgumentError, "the same depth: 1 vs 2"),
        ((1, 2, 2, 1), (4, 1, 1), {}, InvalidArgumentError, "would be negative"),
        ((1, 2, 2, 1), (1, 1, 1), {"rates": [2, 1, 1, 1]}, UnimplementedError, "spatial"),
        ((1, 2, 2, 1), (1, 1, 1), {"strides": [1, 1, 1, 2]}, UnimplementedError, "spatial"),
        ((1, 2, 2, 1), (1, 1, 1), {"strides": [1, 0, 1, 1]}, InvalidArgumentError, "Stride must"),
    ],
)
def test_refusals(x, filters, attrs, error, message):
    with pytest.raises(error, match=message):
        dilation2d(np.ones(x, np.float32), np.ones(filters, np.float32), **attrs)


def test_a_gradient_of_another_shape_is_refused():
    with pytest.raises(InvalidArgumentError, match="out_backprop"):
        gradients(line(1, 2, 3), element(0, 0), line(1, 2, 3))
