"""Ops that take, merge and reduce entries: answers of TensorFlow, odd inputs included."""

from typing import Any

import numpy as np
import pytest

from opkernel import errors, libraries
from opkernel.testing import assert_outputs, run_op

NAN = np.nan
V = np.array([1.0, 2.0])


def column(*rows):
    return np.array(rows, np.int64).reshape(-1, 1)


def vector(*sizes):
    return np.array(sizes, np.int64)


def outputs(op, *inputs, **attrs):
    return [np.asarray(output).tolist() for output in run_op(op, list(inputs), attrs=attrs).outputs]


ODD: dict[str, Any] = {
    "a sum of two entries is left out below the threshold, an entry alone never": (
        ("SparseAdd", column(0, 1), np.array([0.5, 0.5]), vector(3), column(1, 2), np.array([0.1, 0.2]), vector(3), np.array(1.0)),
        [[[0], [2]], [0.5, 0.2], [3]],
    ),
    "NaN is below any threshold": (
        ("SparseAdd", column(0), V[:1] * NAN, vector(2), column(0), V[:1], vector(2), np.array(0.0)),
        [[], [], [2]],
    ),
    "the magnitude of the lowest int8 is 128": (
        ("SparseAdd", column(0), np.array([-64], np.int8), vector(2), column(0), np.array([-64], np.int8), vector(2), np.array(3, np.int8)),
        [[[0]], [-128], [2]],
    ),
    "a threshold of int64 for values of int8 is its lowest byte": (
        ("SparseAdd", column(0, 1), np.array([3, 4], np.int8), vector(4), column(0, 1), np.zeros(2, np.int8), vector(4), np.array(260)),
        [[[1]], [4], [4]],
    ),
    "a threshold of double for values of int32 is its lower half": (
        ("SparseAdd", column(0, 1), np.array([3, 4], np.int32), vector(4), column(0, 1), np.zeros(2, np.int32), vector(4), np.array(3.5)),
        [[[0], [1]], [3, 4], [4]],
    ),
    "entries out of order are merged as they come": (
        ("SparseSparseMaximum", column(2, 1), V, vector(5), column(1, 0), V, vector(5)),
        [[[1], [0], [2], [1]], [1.0, 2.0, 1.0, 2.0]],
    ),
    "repeated entries are merged one by one": (
        ("SparseSparseMaximum", column(1, 1), V, vector(5), column(1, 1), V, vector(5)),
        [[[1], [1]], [1.0, 2.0]],
    ),
    "a slice may start before the tensor": (
        ("SparseSlice", column(7, -1), V, vector(5), vector(-2), vector(20)),
        [[[9], [1]], [1.0, 2.0], [7]],
    ),
    "the end of a slice overflows": (
        ("SparseSlice", column(1, 2), V, vector(5), vector(1), vector(2**63 - 1)),
        [[], [], [4]],
    ),
    "a sparse reduction sorts, and keeps indices that are out of bounds": (
        ("SparseReduceSumSparse", np.array([[7, 0], [-1, 0], [1, 0]]), np.array([1.0, 2.0, 4.0]), vector(2, 2), np.array([-1, 1], np.int32)),
        [[[-1], [1], [7]], [2.0, 4.0, 1.0], [2]],
    ),
    "a maximum skips NaN": (
        ("SparseReduceMax", np.array([[0, 0], [0, 1], [1, 0]]), np.array([NAN, 1.0, 2.0]), vector(2, 2), np.array([1], np.int32)),
        [[1.0, 2.0]],
    ),
    "softmax sorts its result": (
        ("SparseSoftmax", np.array([[1, 0], [0, 1], [1, 1]]), np.array([1.0, 2.0, 3.0]), vector(2, 2)),
        [[1.0, 0.11920292202211755, 0.8807970779778823]],
    ),
    "a concatenation sorts": (
        ("SparseConcat", [column(2, 1), column(0, 0)], [V, V], [vector(3), vector(4)]),
        [[[1], [2], [3], [3]], [2.0, 1.0, 1.0, 2.0], [7]],
    ),
    "a shape of more than 2**63 elements can be reordered": (
        ("SparseReorder", np.array([[1, 0], [0, 5]]), V, vector(2**40, 2**40)),
        [[[0, 5], [1, 0]], [2.0, 1.0]],
    ),
    "only the number of rows counts for filling": (
        ("SparseFillEmptyRows", np.array([[0, 0]]), V[:1], vector(2, 2**62), np.array(0.0)),
        [[[0, 0], [1, 0]], [1.0, 0.0], [False, True], [0]],
    ),
    "indices out of bounds are reshaped towards zero": (
        ("SparseReshape", np.array([[-1, 0], [5, -7]]), vector(2, 3), vector(3, 2)),
        [[[-1, -1], [4, 0]], [3, 2]],
    ),
    "the gradient of a sum follows repeated entries": (
        ("SparseAddGrad", V, column(1, 1), column(1, 2), column(1, 2)),
        [[1.0, 0.0], [1.0, 2.0]],
    ),
    "the gradient of a slice follows repeated entries": (
        ("SparseSliceGrad", V, column(1, 1, 2), vector(1), column(0, 0)),
        [[1.0, 2.0, 0.0]],
    ),
    "the last of repeated values stays, if indices are not validated": (
        ("SparseToDense", column(1, 1, 0), vector(3), np.array([1.0, 2.0, 3.0]), np.array(1.0)),
        [[3.0, 2.0, 1.0]],
    ),
    "integers are divided towards zero, and zeros elsewhere do not matter": (
        ("SparseDenseCwiseDiv", column(0, 1), np.array([-7, 7], np.int32), vector(3), np.array([2, -2, 0], np.int32)),
        [[-3, -3]],
    ),
}  # fmt: skip
ATTRS = {"SparseConcat": {"concat_dim": -1}, "SparseToDense": {"validate_indices": False}}


@pytest.mark.parametrize("case", ODD)
def test_odd_calls_are_answered_as_by_tensorflow(case):
    (op, *inputs), expected = ODD[case]
    found = outputs(op, *inputs, **ATTRS.get(op, {}))
    for one, other in zip(found, expected, strict=True):
        np.testing.assert_allclose(
            np.array(one, float).ravel(), np.array(other, float).ravel(), rtol=1e-15
        )


ERRORS = [
    ("SparseToDense", [column(3), vector(3), V[:1], V[0]], errors.InvalidArgumentError, "out of bounds"),
    ("SparseToDense", [column(1, 0), vector(3), V, V[0]], errors.InvalidArgumentError, "out of order"),
    ("SparseToDense", [column(1, 1), vector(3), V, V[0]], errors.InvalidArgumentError, "is repeated"),
    ("SparseToDense", [column(), vector(2**62), V[:0], V[0]], errors.ResourceExhaustedError, "memory|allocat|bytes"),
    ("SparseSliceGrad", [V, column(1, 2), vector(1), column(1, 0)], errors.InternalError, "aren't all propagated"),
    ("SparseReduceSum", [column(9), V[:1], vector(2), np.array([], np.int32)], errors.InternalError, "write index of 9"),
    ("SparseReduceSum", [column(1), V[:1], vector(2), np.array([1], np.int32)], errors.InvalidArgumentError, "reduction dimension 1"),
    ("SparseSparseMinimum", [column(5), V[:1], vector(5), column(), V[:0], vector(5)], errors.InvalidArgumentError, "out of bounds"),
    ("SparseFillEmptyRows", [np.array([[2, 0]]), V[:1], vector(2, 1), V[0]], errors.InvalidArgumentError, "2 >= 2"),
    ("SparseFillEmptyRows", [np.zeros((0, 2), np.int64), V[:0], vector(2**60, 1), V[0]], errors.ResourceExhaustedError, "memory|allocat|bytes"),
    ("SparseFillEmptyRowsGrad", [vector(2), V], errors.InvalidArgumentError, "reverse index"),
    ("SparseTensorDenseAdd", [column(-1), V[:1], vector(2), V], errors.InvalidArgumentError, "invalid index"),
    ("SparseTensorDenseMatMul", [np.array([[0, -1]]), V[:1], vector(2, 2), np.eye(2)], errors.InvalidArgumentError, "k .-1. from"),
    ("SparseTensorDenseMatMul", [np.array([[2, 0]]), V[:1], vector(2, 2), np.eye(2)], errors.InvalidArgumentError, "m .2. from"),
    ("SparseDenseCwiseDiv", [column(1), np.array([1]), vector(2), np.array([1, 0])], errors.InvalidArgumentError, "divide by zero"),
    ("SparseReshape", [column(0), vector(0), vector(0, 1)], errors.InvalidArgumentError, "is empty"),
]  # fmt: skip


@pytest.mark.parametrize(("op", "inputs", "error", "match"), ERRORS)
def test_wrong_calls_get_tensorflows_codes(op, inputs, error, match):
    with pytest.raises(error, match=match):
        run_op(op, inputs)


def test_parts_of_a_split_concatenate_to_the_whole():
    indices = np.argwhere(np.random.default_rng(0).random((7, 5)) < 0.4)
    values = np.arange(len(indices), dtype=np.float32)
    parts = run_op(
        "SparseSplit", [np.int64(0), indices, values, vector(7, 5)], attrs={"num_split": 3}
    )
    rows, numbers, shapes = (list(parts.outputs[i : i + 3]) for i in (0, 3, 6))
    assert [shape.tolist() for shape in shapes] == [[3, 5], [2, 5], [2, 5]]
    whole = run_op("SparseConcat", [rows, numbers, shapes], attrs={"concat_dim": 0})
    assert_outputs(whole, indices, values, vector(7, 5))


@pytest.mark.parametrize("has_scipy", [True, False])
@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.complex64, np.int32])
def test_products_are_those_of_the_dense_matrices(monkeypatch, has_scipy, dtype):
    if not has_scipy:
        find = libraries.library_or_none
        monkeypatch.setattr(
            "opkernel.ops.sparse.matrix.library_or_none",
            lambda name: None if name.startswith("scipy") else find(name),
        )
    generator = np.random.default_rng(1)
    indices = generator.integers(0, [30, 20], size=(200, 2))  # in any order, some twice
    values = generator.integers(-4, 5, size=200).astype(dtype)
    b = generator.integers(-4, 5, size=(30, 6)).astype(dtype)
    a = np.zeros((30, 20), dtype)
    np.add.at(a, tuple(indices.T), values)
    product = run_op(
        "SparseTensorDenseMatMul", [indices, values, vector(30, 20), b], attrs={"adjoint_a": True}
    )
    assert_outputs(product, a.T @ b)
