"""Assertions on tensors and shapes."""

import ml_dtypes
import numpy as np
import pytest

from opkernel.errors import InvalidArgumentError
from opkernel.testing import Tolerance, assert_close, assert_outputs, expect_shapes, infer_shapes


@pytest.mark.parametrize(
    ("kind", "near", "far"),
    [
        (np.float64, 1 + 1e-11, 1 + 1e-8),
        (np.float32, 1 + 2e-6, 1 + 1e-4),
        (np.float16, 1 + 2e-3, 1 + 2e-2),
        (ml_dtypes.bfloat16, 1.02, 1.1),
        (np.complex64, 1 + 2e-6j, 1 + 1e-4j),
    ],
)
def test_each_type_has_its_tolerance(kind, near, far):
    assert_close(np.array([near], kind), np.array([1], kind))
    with pytest.raises(AssertionError, match=r"1 of 1 elements differ, the first at \[0\]"):
        assert_close(np.array([far], kind), np.array([1], kind))


def test_nan_is_nan_and_infinities_keep_their_sign():
    assert_close(np.array([np.nan, np.inf], np.float32), [np.nan, np.inf])
    with pytest.raises(AssertionError):
        assert_close(np.array([np.inf], np.float32), [-np.inf])
    with pytest.raises(AssertionError):
        assert_close(np.array([np.nan], np.float32), [0])
    with pytest.raises(AssertionError):
        assert_close(np.array([3e38], np.float32), [np.inf])


def test_integers_and_strings_are_to_be_the_same():
    assert_close(np.array([1, 2], np.int32), [1, 2])
    assert_close(np.array([b"a", b"b"], object), ["a", "b"])
    with pytest.raises(AssertionError, match="5 where 6 is expected"):
        assert_close(np.array([5], np.int64), [6])
    with pytest.raises(AssertionError):
        assert_close(np.array([b"a"], object), ["b"])


def test_type_and_shape_count():
    with pytest.raises(AssertionError, match="type is float32, where float64 is expected"):
        assert_close(np.array([1], np.float32), np.array([1], np.float64))
    with pytest.raises(AssertionError, match=r"shape is \[1\], where \[\] is expected"):
        assert_close(np.array([1], np.float32), 1.0)


def test_outputs_are_counted_and_named():
    with pytest.raises(AssertionError, match="1 outputs, where 2"):
        assert_outputs([np.float32(1)], 1.0, 2.0)
    with pytest.raises(AssertionError, match="output 1: "):
        assert_outputs([np.float32(1), np.float32(1)], 1.0, 2.0)
    assert_outputs([np.float32(1)], 1.5, tolerance=Tolerance(atol=1))


def test_shapes():
    expect_shapes("MatMul", [[2, None], [None, 3]], [[2, 3]])
    expect_shapes("MatMul", [[2, None], [None, 3]], [[None, 3]], attrs={"transpose_a": True})
    expect_shapes("Reshape", [None, [2]], [[2, 3]], values={1: [2, 3]})
    expect_shapes("ConcatV2", [[1], [2], []], [[3]], values={2: np.int32(0)})
    expect_shapes("Reshape", [[6], None], [None])


def test_other_shapes_are_told():
    with pytest.raises(AssertionError, match=r"MatMul gives \[2,3\]; expected \[3,2\]"):
        expect_shapes("MatMul", [[2, None], [None, 3]], [[3, 2]])
    with pytest.raises(InvalidArgumentError, match="must be equal"):
        infer_shapes("MatMul", [[2, 3], [2, 3]])
