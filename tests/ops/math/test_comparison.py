from functools import partial

import numpy as np
import pytest

from opkernel import raw_ops
from opkernel.errors import InvalidArgumentError

f32 = partial(np.array, dtype=np.float32)

NAN = np.nan


def test_nan_is_unequal_to_all():
    x = f32([NAN, 1])
    assert raw_ops.Equal(x=x, y=x).tolist() == [False, True]
    assert raw_ops.NotEqual(x=x, y=x).tolist() == [True, False]
    assert raw_ops.GreaterEqual(x=x, y=x).tolist() == [False, True]


def test_strings():
    x = np.array([b"a", b"b"], object)
    result = raw_ops.Equal(x=x, y=np.array(b"a", object))
    assert result.dtype == np.bool_
    assert result.tolist() == [True, False]
    assert raw_ops.NotEqual(x=x, y=x).tolist() == [False, False]


def test_shapes_that_cannot_be_equal():
    x, y = np.zeros(2, np.float32), np.zeros(3, np.float32)
    with pytest.raises(InvalidArgumentError):
        raw_ops.Equal(x=x, y=y)
    different = raw_ops.Equal(x=x, y=y, incompatible_shape_error=False)
    assert np.shape(different) == ()
    assert not different
    assert raw_ops.NotEqual(x=x, y=y, incompatible_shape_error=False)
    same = raw_ops.Equal(x=x, y=np.float32(0), incompatible_shape_error=False)
    assert same.tolist() == [True, True]


def test_approximate_equal_takes_the_tolerance_itself_and_does_not_broadcast():
    x, y = f32([1, 1, NAN, np.inf]), f32([1.25, 1.75, NAN, np.inf])
    result = raw_ops.ApproximateEqual(x=x, y=y, tolerance=0.5)
    assert result.tolist() == [True, False, False, False]
    assert raw_ops.ApproximateEqual(x=x[:1], y=y[:1], tolerance=0.25)[0]
    assert raw_ops.ApproximateEqual(x=x[:1], y=x[:1], tolerance=0.0)[0]
    assert not raw_ops.ApproximateEqual(x=x[:1], y=y[:1], tolerance=0.125)[0]
    with pytest.raises(InvalidArgumentError, match=r"same shape.*\[4\].*\[1\]"):
        raw_ops.ApproximateEqual(x=x, y=y[:1])


def test_logic():
    x, y = np.array([True, True, False]), np.array([True, False, False])
    assert raw_ops.LogicalAnd(x=x, y=y).tolist() == [True, False, False]
    assert raw_ops.LogicalOr(x=x, y=y).tolist() == [True, True, False]
    assert raw_ops.LogicalNot(x=x).tolist() == [False, False, True]
