import math

import ml_dtypes
import numpy as np
import pytest

from opkernel import raw_ops
from opkernel.errors import InvalidArgumentError

NAN, INF = np.nan, np.inf
LOGITS = np.log(np.array([[1, 3, 4], [2, 2, 4]], np.float32))


def dense(features, labels):
    return raw_ops.SoftmaxCrossEntropyWithLogits(
        features=np.asarray(features, np.float32), labels=np.asarray(labels, np.float32)
    )


def sparse(features, labels, dtype=np.int64):
    return raw_ops.SparseSoftmaxCrossEntropyWithLogits(
        features=features, labels=np.asarray(labels, dtype)
    )


def test_dense_labels():
    loss, backprop = dense(LOGITS, [[0, 0.5, 0.5], [1, 0, 0]])
    np.testing.assert_allclose(
        loss, [0.5 * math.log(8 / 3) + 0.5 * math.log(2), math.log(4)], rtol=1e-6
    )
    np.testing.assert_allclose(
        backprop, [[1 / 8, -1 / 8, 0], [-3 / 4, 1 / 4, 1 / 2]], rtol=1e-5, atol=1e-7
    )


def test_features_and_labels_broadcast():
    loss, backprop = dense([[0, 0]], [[1, 0], [0, 1], [2, 2]])
    np.testing.assert_allclose(loss, np.log(2) * np.array([1, 1, 4]), rtol=1e-6)
    assert backprop.shape == (3, 2)
    assert dense([0, 0], [[1, 0]]).loss.shape == (1,)
    assert dense([[0, 0]], 1).backprop.tolist() == [[-0.5, -0.5]]


@pytest.mark.parametrize(
    ("features", "labels", "message"),
    [
        ((3,), (3,), "2-dimensional"),
        ((1, 1, 3), (3,), "2-dimensional"),
        ((2, 3), (3, 3), "must be broadcastable"),
    ],
)
def test_shapes_that_do_not_fit(features, labels, message):
    with pytest.raises(InvalidArgumentError, match=message):
        dense(np.zeros(features), np.zeros(labels))


def test_empty():
    loss, backprop = dense(np.zeros((0, 3)), np.zeros((0, 3)))
    assert (loss.shape, backprop.shape) == ((0,), (0, 3))
    assert dense(np.zeros((2, 0)), np.zeros((2, 0))).loss.tolist() == [0, 0]
    assert sparse(np.zeros((0, 3), np.float32), []).backprop.shape == (0, 3)


def test_impossible_classes():
    """A label of 0 does not make up for a probability of 0."""
    loss, backprop = dense([[-INF, 0, 0]], [[0, 0, 1]])
    np.testing.assert_array_equal(loss, [NAN])
    assert backprop.tolist() == [[0, 0.5, -0.5]]
    loss, backprop = sparse(np.array([[-INF, 0, 0]], np.float32), [0])
    assert loss.tolist() == [INF]
    assert backprop.tolist() == [[-1, 0.5, 0.5]]


@pytest.mark.parametrize("dtype", [np.int32, np.int64])
def test_sparse_labels_are_certain_ones(dtype):
    loss, backprop = sparse(LOGITS, [2, 0], dtype)
    expected = dense(LOGITS, np.eye(3)[[2, 0]])
    np.testing.assert_allclose(loss, expected.loss, rtol=1e-6)
    np.testing.assert_allclose(backprop, expected.backprop, rtol=1e-6)


@pytest.mark.parametrize(
    ("features", "labels", "message"),
    [
        ((2, 3), [0, 3], r"label value of 3 .* valid range of \[0, 3\)"),
        ((2, 3), [-1, 0], r"label value of -1 .* valid range of \[0, 3\)"),
        ((2, 3), [0], "same first dimension"),
        ((2, 3), [[0], [1]], r"labels must be 1-D, but got shape \[2,1\]"),
        ((3,), [0], r"logits must be 2-D, but got shape \[3\]"),
        ((0, 0), [], "at least one class"),
    ],
)
def test_sparse_labels_that_do_not_fit(features, labels, message):
    with pytest.raises(InvalidArgumentError, match=message):
        sparse(np.zeros(features, np.float32), labels)


def test_bfloat16_rounds_each_sum():
    features = np.array([[16.125, -10.875, 12.5625]], ml_dtypes.bfloat16)
    loss, backprop = sparse(features, [0])
    assert loss.astype(float).tolist() == pytest.approx([0.0307617], rel=1e-4)
    assert backprop.astype(float)[0, 0] == -0.03125
