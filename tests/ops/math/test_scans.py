import numpy as np
import pytest

from opkernel import raw_ops
from opkernel.errors import InvalidArgumentError

NAN, INF = np.nan, np.inf


def scan(op, x, axis=0, **attrs):
    return getattr(raw_ops, op)(x=np.asarray(x), axis=np.int32(axis), **attrs)


@pytest.mark.parametrize(
    ("exclusive", "reverse", "sums", "products"),
    [
        (False, False, [1, 3, 6, 10], [1, 2, 6, 24]),
        (True, False, [0, 1, 3, 6], [1, 1, 2, 6]),
        (False, True, [10, 9, 7, 4], [24, 24, 12, 4]),
        (True, True, [9, 7, 4, 0], [24, 12, 4, 1]),
    ],
)
def test_exclusive_and_reverse(exclusive, reverse, sums, products):
    x = np.array([[1, 2, 3, 4]] * 2, np.int32)
    attrs = {"exclusive": exclusive, "reverse": reverse}
    assert scan("Cumsum", x, 1, **attrs).tolist() == [sums] * 2
    assert scan("Cumprod", x, -1, **attrs).tolist() == [products] * 2
    logs = scan("CumulativeLogsumexp", np.log(x[0].astype(np.float64)), **attrs)
    np.testing.assert_allclose(np.exp(logs), sums)


def test_types_are_kept_and_integers_wrap_around():
    result = scan("Cumsum", np.array([200, 100], np.uint8))
    assert result.tolist() == [200, 44]
    assert result.dtype == np.uint8


def test_empty_and_single():
    assert scan("Cumsum", np.zeros((0, 3), np.float32), 1, exclusive=True).shape == (0, 3)
    assert scan("CumulativeLogsumexp", np.zeros((3, 0), np.float32), 1).shape == (3, 0)
    assert scan("Cumprod", np.array([7], np.int64), exclusive=True).tolist() == [1]


def test_log_sum_exp_of_extremes():
    sums = scan("CumulativeLogsumexp", [1000.0, 1000.0, -1000.0])
    np.testing.assert_allclose(sums, [1000, 1000 + np.log(2), 1000 + np.log(2)])
    np.testing.assert_array_equal(scan("CumulativeLogsumexp", [-INF, -INF, 2.0]), [-INF, -INF, 2])
    np.testing.assert_array_equal(scan("CumulativeLogsumexp", [INF, INF]), [INF, NAN])
    np.testing.assert_allclose(  # TensorFlow's: a NaN counts as what stands before it
        scan("CumulativeLogsumexp", [1.0, NAN, 2.0]), [1, 1 + np.log(2), 2.5514447]
    )


@pytest.mark.parametrize(
    ("axis", "message"),
    [
        (np.int32(2), r"Expected scan axis in the range \[-2, 2\), but got 2"),
        (np.int32(-3), r"Expected scan axis in the range \[-2, 2\), but got -1"),
        (np.array([0], np.int32), r"axis must be a scalar, not \[1\]"),
    ],
)
def test_wrong_axis(axis, message):
    with pytest.raises(InvalidArgumentError, match=message):
        raw_ops.Cumsum(x=np.ones((2, 3), np.float32), axis=axis)
