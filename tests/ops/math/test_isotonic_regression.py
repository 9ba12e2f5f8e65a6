"""IsotonicRegression: answers of TensorFlow, and what makes its result the best one."""

import numpy as np
import pytest

from opkernel.testing import check_gradient, run_op

INF, NAN = np.inf, np.nan


@pytest.mark.parametrize(
    ("row", "output", "segments"),
    [
        ([3, 1, 2, 5, 4, 0], [3, 3, 3, 3, 3, 0], [0, 1, 1, 1, 1, 2]),
        ([1, 1, 2, 2, 1], [1.5, 1.5, 1.5, 1.5, 1], [0, 0, 0, 0, 1]),
        ([1, NAN, 2, 3, 1], [1, NAN, 2.5, 2.5, 1], [0, 1, 2, 2, 3]),
        ([1, INF, 2, -INF, 1], [INF, INF, 2, -INF, -INF], [0, 0, 1, 2, 2]),
        ([], [], []),
        (3, 3, 0),
    ],
)
def test_results_are_those_of_tensorflow(row, output, segments):
    found = run_op("IsotonicRegression", [np.array(row, np.float32)]).outputs
    np.testing.assert_array_equal(found[0], np.array(output, np.float32))
    np.testing.assert_array_equal(found[1], np.array(segments, np.int32))


def test_results_do_not_rise_and_segments_are_means():
    x = np.random.default_rng(0).normal(size=(3, 2, 50))
    outputs = run_op("IsotonicRegression", [x], attrs={"output_dtype": "double"}).outputs
    assert (np.diff(outputs[0], axis=-1) <= 0).all()
    for row, result, segments in zip(*(t.reshape(-1, 50) for t in (x, *outputs)), strict=True):
        means = np.bincount(segments, row) / np.bincount(segments)
        np.testing.assert_allclose(result, means[segments])


def test_the_gradient_is_the_derivative():
    x = np.random.default_rng(1).normal(size=(3, 7))
    check_gradient("IsotonicRegression", [x], {"output_dtype": "double"})
