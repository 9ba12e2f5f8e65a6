import ml_dtypes
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from opkernel import raw_ops
from opkernel.errors import InvalidArgumentError

NAN, INF = np.nan, np.inf
FLOATS = [np.float16, np.float32, np.float64, ml_dtypes.bfloat16]


def softmax(logits):
    return raw_ops.Softmax(logits=logits)


def log_softmax(logits):
    return raw_ops.LogSoftmax(logits=logits)


@pytest.mark.parametrize("dtype", FLOATS)
def test_values(dtype):
    logits = np.log(np.array([[1, 3, 4], [2, 2, 4]])).astype(dtype)
    result = softmax(logits)
    assert result.dtype == log_softmax(logits).dtype == dtype
    expected = np.array([[1, 3, 4], [2, 2, 4]]) / 8
    tolerance = 1e-6 if np.dtype(dtype).itemsize > 2 else 2e-2
    np.testing.assert_allclose(result.astype(np.float64), expected, rtol=tolerance)
    np.testing.assert_allclose(
        log_softmax(logits).astype(np.float64), np.log(expected), rtol=tolerance
    )


@given(arrays(np.float64, (3, 4), elements=st.floats(-500, 500)), st.floats(-500, 500))
def test_laws(logits, shift):
    result = softmax(logits)
    np.testing.assert_allclose(result.sum(axis=-1), 1, rtol=1e-12)
    np.testing.assert_allclose(softmax(logits + shift), result, rtol=1e-9, atol=1e-200)
    np.testing.assert_allclose(np.exp(log_softmax(logits)), result, rtol=1e-9, atol=1e-200)


def test_infinities():
    logits = np.array([[INF, 1], [-INF, 1], [-INF, -INF], [NAN, 1]], np.float32)
    np.testing.assert_array_equal(softmax(logits), [[NAN] * 2, [0, 1], [NAN] * 2, [NAN] * 2])
    np.testing.assert_array_equal(log_softmax(logits), [[NAN] * 2, [-INF, 0], [NAN] * 2, [NAN] * 2])


def test_shapes():
    assert softmax(np.zeros((2, 3, 4, 5), np.float32)).shape == (2, 3, 4, 5)
    assert softmax(np.zeros(5, np.float32)).tolist() == pytest.approx([0.2] * 5)
    for op in (softmax, log_softmax):
        assert op(np.zeros((2, 0), np.float32)).shape == (2, 0)
        assert op(np.zeros((0, 2), np.float32)).shape == (0, 2)
        with pytest.raises(InvalidArgumentError, match="logits must have >= 1 dimension"):
            op(np.float32(1))


def test_the_input_is_not_written_to():
    logits = np.arange(6, dtype=np.float32).reshape(3, 2).T
    logits.flags.writeable = False
    np.testing.assert_allclose(softmax(logits).sum(axis=1), [1, 1], rtol=1e-6)


def test_many_rows_and_rows_that_are_not_finite():
    logits = np.random.default_rng(0).normal(size=(3, 70, 40)).astype(np.float32) * 10
    logits[0, 0, 3], logits[1, 1, 4], logits[2, 2, :] = NAN, -INF, -INF
    result = softmax(logits)
    with np.errstate(invalid="ignore"):
        exact = np.exp(logits.astype(np.float64) - logits.max(-1, keepdims=True))
    np.testing.assert_allclose(result, exact / exact.sum(-1, keepdims=True), rtol=1e-5)
    assert np.isnan(result[0, 0]).all()
    assert np.isnan(result[2, 2]).all()
    assert result[1, 1, 4] == 0
