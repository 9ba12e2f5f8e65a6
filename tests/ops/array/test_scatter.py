import numpy as np
import pytest

from opkernel import raw_ops
from opkernel.errors import InvalidArgumentError

NAN, INF = np.nan, np.inf
VECTOR = np.array([1, 2, 3], np.float32)


def test_scatter_nd_adds_what_meets():
    result = raw_ops.ScatterNd(indices=[[2], [0], [2]], updates=[1.0, 2.0, 4.0], shape=[4])
    assert result.tolist() == [2, 0, 5, 0]
    words = raw_ops.ScatterNd(indices=[[1], [1]], updates=[b"a", b"b"], shape=[2])
    assert words.tolist() == [b"", b"ab"]
    bools = raw_ops.ScatterNd(indices=[[1], [1]], updates=[True, True], shape=[2])
    assert bools.tolist() == [False, True]


def test_scatter_nd_of_slices():
    updates = np.array([[1, 2], [3, 4]], np.int8)
    result = raw_ops.ScatterNd(
        indices=[[[1, 0]], [[0, 2]]], updates=updates[:, None], shape=[2, 3, 2]
    )
    assert result.tolist() == [[[0, 0], [0, 0], [3, 4]], [[1, 2], [0, 0], [0, 0]]]


@pytest.mark.parametrize(
    ("op", "expected"),
    [
        ("Update", [7, 2, 9]),
        ("Add", [8, 2, 3 + 5 + 9]),
        ("Sub", [-6, 2, 3 - 5 - 9]),
        ("Max", [7, 2, 9]),
        ("Min", [1, 2, 3]),
    ],
)
def test_tensor_scatter(op, expected):
    scatter = getattr(raw_ops, f"TensorScatter{op}")
    updates = np.array([5, 7, 9], np.float32)
    result = scatter(tensor=VECTOR, indices=[[2], [0], [2]], updates=updates)
    assert result.tolist() == expected
    assert VECTOR.tolist() == [1, 2, 3]


def test_an_update_that_is_no_number_loses_but_what_was_none_stays_none():
    arguments = {
        "tensor": np.array([1, NAN, -INF], np.float32),
        "indices": [[0], [1], [2]],
        "updates": np.array([NAN, 5, NAN], np.float32),
    }
    np.testing.assert_array_equal(raw_ops.TensorScatterMax(**arguments), [1, NAN, -INF])
    np.testing.assert_array_equal(raw_ops.TensorScatterMin(**arguments), [1, NAN, -INF])


def test_bad_indices_are_an_error_or_ignored():
    arguments = {"tensor": VECTOR, "indices": [[0], [3]], "updates": np.ones(2, np.float32)}
    with pytest.raises(InvalidArgumentError, match=r"indices\[1\] = \[3\] does not index .* \[3\]"):
        raw_ops.TensorScatterAdd(**arguments)
    ignored = raw_ops.TensorScatterAdd(**arguments, bad_indices_policy="IGNORE")
    assert ignored.tolist() == [2, 2, 3]
    with pytest.raises(InvalidArgumentError, match="bad indices handling attribute: SHRUG"):
        raw_ops.TensorScatterAdd(**arguments, bad_indices_policy="SHRUG")


@pytest.mark.parametrize(
    ("indices", "updates", "shape", "message"),
    [
        ([[0]], [1, 2], [4], r"Dimensions \[0,1\) of indices\[shape=\[1,1\]\] must match"),
        ([[0]], [[1]], [4], r"Dimensions \[1,1\) of input\[shape=\[4\]\] must match"),
        ([[0]], [1], [0], "Indices and updates specified for empty output"),
        ([[0]], 1, [4], r"Updates shape must have rank at least one. Found:\[\]"),
        (0, [1], [4], r"Indices shape must have rank at least one. Found:\[\]"),
        ([[0]], [1], [[4]], "Shape must be a vector"),
        ([[0]], [1], [-4], "-4"),
    ],
)
def test_scatter_nd_refuses(indices, updates, shape, message):
    with pytest.raises(InvalidArgumentError, match=message):
        raw_ops.ScatterNd(indices=indices, updates=updates, shape=shape)


def test_tensor_scatter_refuses_updates_that_do_not_fit():
    with pytest.raises(InvalidArgumentError, match="Outer dimensions of indices and update"):
        raw_ops.TensorScatterAdd(tensor=VECTOR, indices=[[0]], updates=VECTOR)
    with pytest.raises(InvalidArgumentError, match="Inner dimensions of output shape"):
        raw_ops.TensorScatterAdd(tensor=VECTOR, indices=[[0]], updates=VECTOR[:1, None])
