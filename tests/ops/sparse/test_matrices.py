"""Sparse matrices in variants: laws of linear algebra, and answers of TensorFlow to odd calls."""

import numpy as np
import pytest

import opkernel
from opkernel import errors, raw_ops
from opkernel.ops.sparse import matrix
from opkernel.types import as_dtype, tensor_from_proto, tensor_to_proto

DTYPES = [np.float32, np.float64, np.complex64, np.complex128]


def to_csr(indices, values, shape):
    return raw_ops.SparseTensorToCSRSparseMatrix(
        indices=np.array(indices, np.int64).reshape(-1, len(shape)),
        values=np.array(values),
        dense_shape=np.array(shape),
    )


def sparse(seed, shape, dtype):
    """A dense tensor with some zeros, and the sparse matrix of the rest; of small whole numbers."""
    generator = np.random.default_rng(seed)
    dense = generator.integers(-3, 4, size=shape).astype(dtype)
    if np.iscomplexobj(dense):
        dense += 1j * generator.integers(-3, 4, size=shape)
    dense *= generator.random(shape) < 0.5
    return dense, raw_ops.DenseToCSRSparseMatrix(dense_input=dense, indices=np.argwhere(dense))


def to_dense(matrix, dtype):
    return raw_ops.CSRSparseMatrixToDense(sparse_input=matrix, type=as_dtype(np.dtype(dtype)))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("batch", [(), (2,)])
@pytest.mark.parametrize(
    "turns", [{}, {"transpose_a": True}, {"adjoint_a": True, "adjoint_b": True}]
)
def test_products_are_those_of_the_dense_matrices(dtype, batch, turns):
    def turned(dense, operand):
        if turns.get(f"adjoint_{operand}"):
            return dense.conj().swapaxes(-1, -2)
        return dense.swapaxes(-1, -2) if turns.get(f"transpose_{operand}") else dense

    a, a_matrix = sparse(0, (*batch, 5, 5), dtype)
    b, b_matrix = sparse(1, (*batch, 5, 5), dtype)
    expected = turned(a, "a") @ turned(b, "b")
    np.testing.assert_array_equal(raw_ops.SparseMatrixMatMul(a=a_matrix, b=b, **turns), expected)
    attrs = {"type": as_dtype(np.dtype(dtype)), **turns}
    product = raw_ops.SparseMatrixSparseMatMul(a=a_matrix, b=b_matrix, **attrs)
    np.testing.assert_array_equal(to_dense(product, dtype), expected)


def test_a_product_keeps_sums_that_are_zero():
    a = to_csr([[0, 0], [0, 2]], np.float32([1, 2]), [1, 3])
    b = to_csr([[0, 0], [2, 0]], np.float32([4, -2]), [3, 1])
    product = raw_ops.SparseMatrixSparseMatMul(a=a, b=b, type="float")
    assert raw_ops.SparseMatrixNNZ(sparse_matrix=product) == 1
    assert to_dense(product, np.float32).tolist() == [[0]]


def test_components_are_those_of_each_matrix():
    batch = to_csr([[0, 0, 0], [0, 0, 2], [1, 1, 1]], np.float32([1, 2, 3]), [2, 2, 3])
    assert raw_ops.SparseMatrixNNZ(sparse_matrix=batch).tolist() == [2, 1]
    parts = raw_ops.CSRSparseMatrixComponents(csr_sparse_matrix=batch, index=1, type="float")
    assert [part.tolist() for part in parts] == [[0, 0, 1], [1], [3]]
    back = raw_ops.CSRSparseMatrixToSparseTensor(sparse_matrix=batch, type="float")
    assert back.indices.tolist() == [[0, 0, 0], [0, 0, 2], [1, 1, 1]]
    turned = raw_ops.SparseMatrixTranspose(input=batch, type="float")
    np.testing.assert_array_equal(
        to_dense(turned, np.float32), to_dense(batch, np.float32).swapaxes(1, 2)
    )


@pytest.mark.parametrize("dtype", DTYPES)
def test_the_cholesky_factor_of_the_permuted_matrix_is_sparse(dtype):
    size = 12
    dense, _ = sparse(2, (size, size), dtype)
    dense = dense * (np.random.default_rng(3).random((size, size)) < 0.3)
    dense = (dense @ dense.conj().T + 3 * np.eye(size)).astype(dtype)
    matrix = raw_ops.DenseToCSRSparseMatrix(dense_input=dense, indices=np.argwhere(dense))
    order = raw_ops.SparseMatrixOrderingAMD(input=matrix)
    assert sorted(order.tolist()) == list(range(size))
    factor = raw_ops.SparseMatrixSparseCholesky(
        input=matrix, permutation=order, type=as_dtype(np.dtype(dtype))
    )
    lower = to_dense(factor, dtype)
    np.testing.assert_array_equal(lower, np.tril(lower))
    permuted = dense[order][:, order]
    np.testing.assert_allclose(lower @ lower.conj().T, permuted, atol=1e-4)
    assert raw_ops.SparseMatrixNNZ(sparse_matrix=factor) < size * (size + 1) // 2


def test_the_order_keeps_a_star_sparse():
    size = 9
    points = [[i, i] for i in range(size)] + [[0, i] for i in range(1, size)]
    points += [[i, 0] for i in range(1, size)]
    star = to_csr(sorted(points), np.ones(len(points)), [size, size])
    assert raw_ops.SparseMatrixOrderingAMD(input=star)[0] != 0


@pytest.mark.parametrize(
    ("indices", "shape", "match"),
    [
        ([[0, 2]], [2, 2], "out of bounds"),
        ([[-1, 0]], [2, 2], "out of bounds"),
        ([[0]], [2], "rank 2 or 3"),
        ([[0, 0]], [2**40, 2], "int32"),
    ],
)
def test_wrong_indices_are_refused(indices, shape, match):
    with pytest.raises(errors.InvalidArgumentError, match=match):
        to_csr(indices, np.float32([1]), shape)


def test_wrong_operands_are_refused():
    a = to_csr([[0, 0]], np.float32([1]), [2, 3])
    with pytest.raises(errors.InvalidArgumentError, match="Inner product"):
        raw_ops.SparseMatrixMatMul(a=a, b=np.ones((2, 2), np.float32))
    with pytest.raises(errors.InvalidArgumentError, match="of type double"):
        raw_ops.CSRSparseMatrixToDense(sparse_input=a, type="double")
    with pytest.raises(errors.InvalidArgumentError, match="square"):
        raw_ops.SparseMatrixOrderingAMD(input=a)
    with pytest.raises(errors.InvalidArgumentError, match="CSRSparseMatrix"):
        raw_ops.SparseMatrixNNZ(sparse_matrix=raw_ops.OptionalNone())
    with pytest.raises(errors.InvalidArgumentError, match="factorization failed"):
        raw_ops.SparseMatrixSparseCholesky(
            input=to_csr([[0, 0], [1, 1]], np.float32([1, -1]), [2, 2]),
            permutation=np.array([0, 1], np.int32),
            type="float",
        )


def test_matrices_survive_a_file():
    dense, matrix = sparse(5, (2, 3, 4), np.float64)
    back = tensor_from_proto(tensor_to_proto(matrix))
    np.testing.assert_array_equal(to_dense(back, np.float64), dense)


@pytest.mark.parametrize("turns", [{}, {"transpose_a": True, "transpose_b": True}])
def test_gradients_of_products_are_those_of_dense_ones(turns):
    a, _ = sparse(6, (4, 4), np.float64)
    b = np.random.default_rng(7).normal(size=(4, 4))
    places = np.argwhere(a)
    weights = np.random.default_rng(8).normal(size=(4, 4))
    with opkernel.Graph().as_default() as graph:
        values, dense = opkernel.constant(a[tuple(places.T)]), opkernel.constant(b)
        matrix = raw_ops.SparseTensorToCSRSparseMatrix(
            indices=places, values=values, dense_shape=np.array([4, 4])
        )
        product = raw_ops.SparseMatrixMatMul(a=matrix, b=dense, **turns)
        total = raw_ops.Sum(input=raw_ops.Mul(x=product, y=weights), axis=[0, 1])
        found = opkernel.Session(graph).run(opkernel.gradients(total, [values, dense]))
    a_grad, b_grad = (
        (weights @ b.T, a.T @ weights) if not turns else ((weights @ b).T, (a @ weights).T)
    )
    np.testing.assert_allclose(found[0], a_grad[tuple(places.T)])
    np.testing.assert_allclose(found[1], b_grad)


def _turned(x, turns, name):
    if turns.get(f"adjoint_{name}"):
        return x.conj().swapaxes(-1, -2)
    return x.swapaxes(-1, -2) if turns.get(f"transpose_{name}") else x


TURNS = [
    {f"{a}_a": True, f"{b}_b": True}
    for a in ("keep", "transpose", "adjoint")
    for b in ("keep", "transpose", "adjoint")
]


@pytest.mark.parametrize("turns", TURNS, ids=lambda turns: "-".join(turns))
@pytest.mark.parametrize("dtype", [np.float64, np.complex128])
@pytest.mark.parametrize("batch", [(), (2,)])
def test_gradients_of_sparse_products_are_those_of_dense_ones(turns, dtype, batch):
    turns = {name: on for name, on in turns.items() if not name.startswith("keep")}
    (a, _), (b, _) = (sparse(seed, (*batch, 4, 4), dtype) for seed in (9, 10))
    weights, _ = sparse(11, (*batch, 4, 4), dtype)
    places = [np.argwhere(x) for x in (a, b)]
    with opkernel.Graph().as_default() as graph:
        values = [opkernel.constant(x[tuple(at.T)]) for x, at in zip((a, b), places, strict=True)]
        one, other = (
            raw_ops.SparseTensorToCSRSparseMatrix(
                indices=at, values=each, dense_shape=np.array(a.shape)
            )
            for at, each in zip(places, values, strict=True)
        )
        product = raw_ops.SparseMatrixSparseMatMul(a=one, b=other, type=as_dtype(dtype), **turns)
        dense = raw_ops.CSRSparseMatrixToDense(sparse_input=product, type=as_dtype(dtype))
        found = opkernel.Session(graph).run(
            opkernel.gradients(dense, values, [opkernel.constant(weights)])
        )
    left, right = _turned(a, turns, "a"), _turned(b, turns, "b")
    of_left = weights @ right.conj().swapaxes(-1, -2)
    of_right = left.conj().swapaxes(-1, -2) @ weights
    for name, at, of_turned, gradient in zip("ab", places, (of_left, of_right), found, strict=True):
        expected = _turned(of_turned, turns, name)  # each turn undoes itself
        np.testing.assert_allclose(gradient, expected[tuple(at.T)])


def test_gradient_of_a_sparse_product_without_entries_is_zero():
    nothing = np.zeros((0, 2), np.int64)
    with opkernel.Graph().as_default() as graph:
        values = opkernel.constant([2.0, 3.0])
        matrix = raw_ops.SparseTensorToCSRSparseMatrix(
            indices=[[0, 1], [1, 0]], values=values, dense_shape=[2, 2]
        )
        empty = raw_ops.SparseTensorToCSRSparseMatrix(
            indices=nothing, values=np.zeros(0, np.float32), dense_shape=[2, 2]
        )
        product = raw_ops.SparseMatrixSparseMatMul(a=matrix, b=empty, type="float")
        dense = raw_ops.CSRSparseMatrixToDense(sparse_input=product, type="float")
        (gradient,) = opkernel.gradients(dense, values)
        assert opkernel.Session(graph).run(gradient).tolist() == [0, 0]


@pytest.mark.parametrize("dtype", ["float32", "float64", "int32"])
def test_few_products_are_added_as_many(monkeypatch, dtype):
    """NumPy adds few, SciPy many: in the order of the entries, to the same bits."""
    pytest.importorskip("scipy")
    draw = np.random.default_rng(0)
    rows, columns = draw.integers(0, 9, 200), draw.integers(0, 7, 200)
    values = (draw.standard_normal(200) * 100).astype(dtype)
    dense = (draw.standard_normal((7, 5)) * 100).astype(dtype)
    found = []
    for few in (0, 1000):
        monkeypatch.setattr(matrix, "_FEW", few)
        found.append(matrix.sparse_times_dense(rows, columns, values, dense, 9))
    np.testing.assert_array_equal(*found, strict=True)
