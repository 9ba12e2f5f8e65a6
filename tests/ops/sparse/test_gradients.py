"""Gradients of ops on sparse tensors, against finite differences."""

import numpy as np
import pytest

import opkernel
from opkernel import raw_ops
from opkernel.testing import check_gradient

INDICES = np.array([[0, 0], [0, 2], [1, 1], [2, 0]])
SHAPE = np.array([3, 3])
VALUES = np.array([1.5, -2.0, 0.75, 3.0])
OTHER = np.array([[0, 2], [1, 0], [2, 0]])
OTHER_VALUES = np.array([0.5, 4.0, -1.25])
DENSE = np.array([[1.0, -2.0, 0.5], [2.0, 3.0, -1.0], [0.25, 1.0, 2.0]])


@pytest.mark.parametrize(
    ("op", "inputs", "attrs"),
    [
        ("SparseToDense", [INDICES, SHAPE, VALUES, np.array(2.0)], {}),
        ("SparseTensorDenseAdd", [INDICES, VALUES, SHAPE, DENSE], {}),
        ("SparseDenseCwiseMul", [INDICES, VALUES, SHAPE, DENSE], {}),
        ("SparseDenseCwiseMul", [INDICES, VALUES, SHAPE, DENSE[:, :1]], {}),
        ("SparseDenseCwiseDiv", [INDICES, VALUES, SHAPE, DENSE[0]], {}),
        ("SparseReorder", [INDICES[::-1].copy(), VALUES, SHAPE], {}),
        ("SparseAdd", [INDICES, VALUES, SHAPE, OTHER, OTHER_VALUES, SHAPE, np.array(0.0)], {}),
        ("SparseSlice", [INDICES, VALUES, SHAPE, np.array([0, 1]), np.array([2, 2])], {}),
        ("SparseFillEmptyRows", [INDICES[:3], VALUES[:3], SHAPE, np.array(2.0)], {}),
        ("SparseReduceSum", [INDICES, VALUES, SHAPE, np.array([-1], np.int32)], {}),
        ("SparseReduceSum", [INDICES, VALUES, SHAPE, np.array(0, np.int32)], {"keep_dims": True}),
        ("SparseSoftmax", [INDICES, VALUES, SHAPE], {}),
    ],
)
def test_gradients_are_the_derivatives(op, inputs, attrs):
    check_gradient(op, inputs, attrs)


@pytest.mark.parametrize("dtype", [np.float64, np.complex128])
@pytest.mark.parametrize("adjoint_a", [False, True])
@pytest.mark.parametrize("adjoint_b", [False, True])
def test_gradients_of_products_follow_the_adjoints(dtype, adjoint_a, adjoint_b):
    generator = np.random.default_rng(0)
    shape = np.array([2, 3])
    b = generator.normal(size=(2 if adjoint_a else 3, 4)).astype(dtype)
    values = VALUES.astype(dtype)
    if dtype is np.complex128:
        b += 1j * generator.normal(size=b.shape)
        values = values + np.array([0.5j, -1j, 2j, 0.25j])
    indices = np.array([[1, 2], [0, 0], [0, 2], [1, 0]])
    attrs = {"adjoint_a": adjoint_a, "adjoint_b": adjoint_b}
    b = b.conj().T.copy() if adjoint_b else b
    check_gradient("SparseTensorDenseMatMul", [indices, values, shape, b], attrs)


def test_ops_whose_gradient_tensorflow_refuses_refuse_it():
    with opkernel.Graph().as_default():
        values = opkernel.constant(VALUES)
        total = raw_ops.SparseDenseCwiseAdd(
            sp_indices=INDICES, sp_values=values, sp_shape=SHAPE, dense=DENSE
        )
        with pytest.raises(opkernel.errors.UnimplementedError, match="no gradient"):
            opkernel.gradients(total, values)
