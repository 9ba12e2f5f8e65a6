"""Shapes of sparse matrices: what is known of the matrix stands in the handle of its variant."""

import pytest

from opkernel.errors import InvalidArgumentError
from opkernel.types import DataType

FLOAT = {"type": DataType.DT_FLOAT}


def held(*shapes):
    return {i: [(shape, DataType.DT_FLOAT)] for i, shape in enumerate(shapes)}


@pytest.mark.parametrize(
    ("op", "attrs", "inputs", "handles", "outputs"),
    [
        ("CSRSparseMatrixToDense", FLOAT, ["[]"], held("[3,?]"), "[3,?]"),
        ("CSRSparseMatrixToSparseTensor", FLOAT, ["[]"], held("[2,3,4]"), "[?,3];[?];[3]"),
        ("CSRSparseMatrixComponents", FLOAT, ["[]", "[]"], held("[3,5]"), "[4];[?];[?]"),
        ("SparseMatrixNNZ", {}, ["[]"], held("[2,3,4]"), "[2]"),
        ("SparseMatrixNNZ", {}, ["[]"], held("[3,4]"), "[]"),
        (
            "SparseMatrixMatMul",
            {"T": DataType.DT_FLOAT, "transpose_a": True},
            ["[]", "[3,7]"],
            held("[3,5]"),
            "[5,d1_1]",
        ),
        ("SparseMatrixOrderingAMD", {}, ["[]"], held("[2,3,3]"), "[2,3]"),
    ],
)
def test_shapes_follow_from_the_matrix(infer_op, op, attrs, inputs, handles, outputs):
    assert infer_op(op, *inputs, attrs=attrs, handles=handles) == outputs


@pytest.mark.parametrize(
    ("op", "attrs", "inputs", "handles", "message"),
    [
        ("CSRSparseMatrixToDense", FLOAT, ["[]"], None, "type info from variant input 0"),
        ("CSRSparseMatrixToDense", FLOAT, ["[]"], held("?"), "sparse_matrix has an unknown rank."),
        ("SparseMatrixNNZ", {}, ["[]"], held("[3]"), "must be at least rank 2 but is rank 1"),
        (
            "SparseMatrixMatMul",
            {"T": DataType.DT_FLOAT, "transpose_a": True, "adjoint_a": True},
            ["[]", "[3,7]"],
            held("[3,5]"),
            "Only one of adjoint_a and transpose_a may be true.",
        ),
        ("SparseMatrixZeros", FLOAT, ["?"], None, "Invalid rank: -1."),
    ],
)
def test_what_is_no_matrix_is_refused(infer_op, op, attrs, inputs, handles, message):
    with pytest.raises(InvalidArgumentError) as refusal:
        infer_op(op, *inputs, attrs=attrs, handles=handles)
    assert message in str(refusal.value)
