"""Decompositions, inverses and solvers. Expected values are TensorFlow's."""

import re

import pytest

from opkernel.errors import InvalidArgumentError
from opkernel.types import DataType

COMPLEX64 = DataType.DT_COMPLEX64
FLOAT = DataType.DT_FLOAT
OF_FLOATS = {"T": FLOAT}


@pytest.mark.parametrize(
    ("op", "attrs", "inputs", "expected"),
    [
        ("Cholesky", OF_FLOATS, "?", "?"),
        ("Cholesky", OF_FLOATS, "[5,2,?]", "[d0_0,d0_1,d0_1]"),
        ("MatrixInverse", OF_FLOATS, "[3,3]", "[d0_0,d0_0]"),
        ("MatrixDeterminant", OF_FLOATS, "[4,?,3,3]", "[d0_0,d0_1]"),
        ("LogMatrixDeterminant", OF_FLOATS, "[2,?,?]", "[d0_0];[d0_0]"),
        ("BatchCholesky", OF_FLOATS, "[2,3]", "?"),
        ("SelfAdjointEig", OF_FLOATS, "[7,2,?]", "[d0_0,3,d0_1]"),
    ],
)
def test_square(infer_op, op, attrs, inputs, expected):
    assert infer_op(op, *inputs.split(), attrs=attrs) == expected


@pytest.mark.parametrize(
    ("op", "attrs", "inputs", "fact"),
    [
        ("MatrixInverse", OF_FLOATS, "[3]", "Shape must be at least rank 2 but is rank 1"),
        ("MatrixSquareRoot", OF_FLOATS, "[2,3]", "Dimensions must be equal, but are 2 and 3"),
        ("MatrixDeterminant", OF_FLOATS, "[2,3]", "Dimensions must be equal, but are 3 and 2"),
    ],
)
def test_square_refuses(infer_op, op, attrs, inputs, fact):
    with pytest.raises(InvalidArgumentError, match=re.escape(fact)):
        infer_op(op, *inputs.split(), attrs=attrs)


@pytest.mark.parametrize(
    ("op", "attrs", "inputs", "expected"),
    [
        ("MatrixSolve", OF_FLOATS, "[5,3,3] [?,3,2]", "[d0_0,d0_1,d1_2]"),
        ("MatrixSolveLs", OF_FLOATS, "[6,3,4] [6,3,2] []", "[d0_0,d0_2,d1_2]"),
        ("MatrixTriangularSolve", OF_FLOATS, "[5,1,3,3] [7,3,2]", "[d0_0,d1_0,d0_2,d1_2]"),
        ("BandedTriangularSolve", OF_FLOATS, "[2,5] [7,5,3]", "[d1_0,d0_1,d1_2]"),
        ("TridiagonalSolve", OF_FLOATS, "[7,3,5] [7,5,2]", "in1"),
        ("TridiagonalMatMul", OF_FLOATS, "[1,5] [1,5] [1,5] [5,2]", "in3"),
    ],
)
def test_solve(infer_op, op, attrs, inputs, expected):
    assert infer_op(op, *inputs.split(), attrs=attrs) == expected


@pytest.mark.parametrize(
    ("op", "attrs", "inputs", "fact"),
    [
        ("MatrixSolve", OF_FLOATS, "[3,?] [4,2]", "Dimensions must be equal, but are 3 and 4"),
        (
            "MatrixSolve",
            OF_FLOATS,
            "[2,3,3] [5,3,1]",
            "Dimension 0 in both shapes must be equal, but are 2 and 5",
        ),
        ("MatrixSolveLs", OF_FLOATS, "[3,4] [3,2] [1]", "Shape must be rank 0 but is rank 1"),
        (
            "MatrixTriangularSolve",
            OF_FLOATS,
            "[3,3] [4,2]",
            "Dimensions must be equal, but are 3 and 4",
        ),
        (
            "BandedTriangularSolve",
            OF_FLOATS,
            "[0,5] [5,3]",
            "Number of bands must be positive, but is 0",
        ),
        (
            "BandedTriangularSolve",
            OF_FLOATS,
            "[6,5] [5,3]",
            "Number of bands 6 cannot exceed the size of the matrix 5",
        ),
        ("TridiagonalSolve", OF_FLOATS, "[2,5] [5,2]", "Dimension must be 3 but is 2"),
        ("TridiagonalMatMul", OF_FLOATS, "[2,5] [2,5] [2,5] [5,2]", "Dimension must be 1 but is 2"),
    ],
)
def test_solve_refuses(infer_op, op, attrs, inputs, fact):
    with pytest.raises(InvalidArgumentError, match=re.escape(fact)):
        infer_op(op, *inputs.split(), attrs=attrs)


@pytest.mark.parametrize(
    ("op", "attrs", "inputs", "expected"),
    [
        ("Lu", OF_FLOATS, "[2,?,4]", "[d0_0,d0_2,d0_2];[d0_0,d0_2]"),
        ("Qr", OF_FLOATS, "[7,3,5]", "[d0_0,d0_1,d0_1];[d0_0,d0_1,d0_2]"),
        ("Qr", {"T": FLOAT, "full_matrices": True}, "[7,3,5]", "[d0_0,d0_1,d0_1];[d0_0,d0_1,d0_2]"),
        ("Svd", OF_FLOATS, "[7,5,3]", "[d0_0,d0_2];[d0_0,d0_1,d0_2];[d0_0,d0_2,d0_2]"),
        ("Svd", {"T": FLOAT, "full_matrices": True}, "[5,?]", "[?];[d0_0,d0_0];[d0_1,d0_1]"),
        ("Svd", {"T": FLOAT, "compute_uv": False}, "[5,3]", "[d0_1];[0];[0]"),
        ("Eig", {"T": FLOAT, "Tout": COMPLEX64}, "[2,3,?]", "[d0_0,d0_1];[d0_0,d0_1,d0_1]"),
        ("SelfAdjointEigV2", {"T": FLOAT, "compute_v": False}, "[3,3]", "[d0_0];[0]"),
    ],
)
def test_decompositions(infer_op, op, attrs, inputs, expected):
    assert infer_op(op, *inputs.split(), attrs=attrs) == expected


@pytest.mark.parametrize(
    ("op", "attrs", "inputs", "fact"),
    [
        ("Svd", OF_FLOATS, "[3]", "Shape must be at least rank 2 but is rank 1"),
    ],
)
def test_decompositions_refuses(infer_op, op, attrs, inputs, fact):
    with pytest.raises(InvalidArgumentError, match=re.escape(fact)):
        infer_op(op, *inputs.split(), attrs=attrs)
