from functools import partial

import numpy as np
import pytest

from opkernel import raw_ops
from opkernel.errors import InvalidArgumentError

f32 = partial(np.array, dtype=np.float32)
f64 = partial(np.array, dtype=np.float64)
c64 = partial(np.array, dtype=np.complex64)
c128 = partial(np.array, dtype=np.complex128)
i8 = partial(np.array, dtype=np.int8)
i16 = partial(np.array, dtype=np.int16)
u8 = partial(np.array, dtype=np.uint8)

NAN, INF = np.nan, np.inf


def test_strings_are_joined():
    left = np.array([b"a", b""], object)
    result = raw_ops.Add(x=left, y=np.array(b"z", object))
    assert result.tolist() == [b"az", b"z"]
    assert raw_ops.Add(x=b"p", y=b"q") == b"pq"


def test_integers_wrap_around():
    assert raw_ops.AddV2(x=u8([250]), y=u8([10])).tolist() == [4]
    assert raw_ops.Neg(x=i8([-128])).tolist() == [-128]
    assert raw_ops.Abs(x=i16([-32768])).tolist() == [-32768]


def test_extrema_of_nan():
    x, y = f32([NAN, 1, -INF]), f32([1, NAN, 2])
    np.testing.assert_array_equal(raw_ops.Maximum(x=x, y=y), f32([NAN, NAN, 2]))
    np.testing.assert_array_equal(raw_ops.Minimum(x=x, y=y), f32([NAN, NAN, -INF]))


def test_mul_no_nan():
    x, y = f32([NAN, INF, 2, 0]), f32([0, 0, 3, NAN])
    np.testing.assert_array_equal(raw_ops.MulNoNan(x=x, y=y), f32([0, 0, 6, NAN]))


def test_squared_difference_of_complex_numbers_is_real():
    result = raw_ops.SquaredDifference(x=c64([1 + 3j]), y=c64([-3 + 1j]))
    assert result.tolist() == [20 + 0j]


def test_sign():
    np.testing.assert_array_equal(raw_ops.Sign(x=f64([-2, -0.0, 0, 5, NAN])), [-1, 0, 0, 1, NAN])
    np.testing.assert_allclose(raw_ops.Sign(x=c128([3 + 4j, 0])), [0.6 + 0.8j, 0])


def test_add_n():
    parts = [f32([i, 2 * i]) for i in range(1, 5)]
    assert raw_ops.AddN(inputs=parts).tolist() == [10, 20]
    single = raw_ops.AddN(inputs=parts[:1])
    assert single.tolist() == [1, 2]
    assert not np.shares_memory(single, parts[0])
    assert parts[0].tolist() == [1, 2]


def test_add_n_does_not_broadcast():
    with pytest.raises(InvalidArgumentError, match=r"same size and shape"):
        raw_ops.AddN(inputs=[f32([1]), f32([1, 2])])
