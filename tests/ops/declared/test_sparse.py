"""Shapes of ops of sparse tensors: the answers are TensorFlow's."""

import pytest

from opkernel.errors import InvalidArgumentError
from opkernel.types import DataType

INFERRED = [
    (
        "SparseAdd",
        {"T": DataType.DT_FLOAT, "Treal": DataType.DT_FLOAT},
        "[4,2] [4] [2] [?,2] [?] ? []",
        "[?,d2_0];[?];in2",
    ),
    ("SparseAddGrad", {"T": DataType.DT_FLOAT}, "[?] [4,2] [?,2] ?", "[d1_0];[d2_0]"),
    (
        "SparseConcat",
        {"concat_dim": 0, "N": 2, "T": DataType.DT_FLOAT},
        "[4,2] [3,?] [4] [3] [2] ?",
        "[7,d0_1];[7];in4",
    ),
    (
        "SparseSplit",
        {"num_split": 2, "T": DataType.DT_FLOAT},
        "[] ? ? [3]",
        "[?,3];[?,3];[?];[?];in3;in3",
    ),
    ("SparseReorder", {"T": DataType.DT_FLOAT}, "[?,3] [?] [3]", "in0;in1"),
    ("SparseReshape", {}, "[4,2] [2] [3]", "[d0_0,d2_0];in2"),
    ("SparseFillEmptyRows", {"T": DataType.DT_FLOAT}, "[4,2] [4] [2] []", "[?,2];[?];[?];[d0_0]"),
    (
        "SparseTensorDenseMatMul",
        {"T": DataType.DT_FLOAT, "adjoint_a": True},
        "[4,2] [4] [2] [3,5]",
        "[?,d3_1]",
    ),
    (
        "SparseToDense",
        {"T": DataType.DT_FLOAT, "Tindices": DataType.DT_INT64},
        "? [2] ? ?",
        "[?,?]",
    ),
    ("SerializeManySparse", {"T": DataType.DT_FLOAT}, "[4,2] [4] [2]", "[?,3]"),
    ("DeserializeSparse", {"dtype": DataType.DT_FLOAT}, "[2,3]", "[?,?];[?];[?]"),
    ("TakeManySparseFromTensorsMap", {"dtype": DataType.DT_FLOAT}, "[3]", "[?,?];[?];[?]"),
    ("SparseDenseCwiseMul", {"T": DataType.DT_FLOAT}, "[4,2] [4] [2] ?", "[d0_0]"),
    (
        "DenseCountSparseOutput",
        {"T": DataType.DT_INT32, "output_type": DataType.DT_FLOAT, "binary_output": False},
        "[2,3] [0]",
        "[?,2];[?];[2]",
    ),
    (
        "RaggedCountSparseOutput",
        {"T": DataType.DT_INT32, "output_type": DataType.DT_FLOAT, "binary_output": False},
        "[3] [4] [0]",
        "[?,2];[?];[2]",
    ),
]

REFUSED = [
    (
        "SparseAdd",
        {"T": DataType.DT_FLOAT, "Treal": DataType.DT_FLOAT},
        "[4,2] [4] [] [?,2] [?] ? []",
        "Shape must be rank 1 but is rank 0",
    ),
    (
        "SparseConcat",
        {"concat_dim": 0, "N": 2, "T": DataType.DT_FLOAT},
        "[4,2] [3,3] [4] [3] [2] ?",
        "Dimensions must be equal, but are 2 and 3",
    ),
    (
        "SparseFillEmptyRows",
        {"T": DataType.DT_FLOAT},
        "[4,2] [4] [3] []",
        "Dimensions must be equal, but are 2 and 3",
    ),
    ("DeserializeSparse", {"dtype": DataType.DT_FLOAT}, "[2,4]", "Dimension must be 3 but is 4"),
    (
        "DeserializeSparse",
        {"dtype": DataType.DT_FLOAT},
        "[]",
        "Shape must be at least rank 1 but is rank 0",
    ),
    (
        "SparseSparseMaximum",
        {"T": DataType.DT_FLOAT},
        "[4,2] [4] [2] [4] [4] [2]",
        "Shape must be rank 2 but is rank 1",
    ),
    (
        "DenseCountSparseOutput",
        {"T": DataType.DT_INT32, "output_type": DataType.DT_FLOAT, "binary_output": False},
        "[2,3] [4]",
        "Shapes must be equal rank, but are 1 and 2",
    ),
    (
        "SparseAccumulatorTakeGradient",
        {"dtype": DataType.DT_FLOAT},
        "[2] [1]",
        "Shape must be rank 0 but is rank 1",
    ),
]


@pytest.mark.parametrize(("op", "attrs", "inputs", "outputs"), INFERRED)
def test_shapes_follow_from_the_inputs(infer_op, op, attrs, inputs, outputs):
    assert infer_op(op, *inputs.split(), attrs=attrs) == outputs


@pytest.mark.parametrize(("op", "attrs", "inputs", "message"), REFUSED)
def test_inputs_that_do_not_fit_are_refused(infer_op, op, attrs, inputs, message):
    with pytest.raises(InvalidArgumentError) as refusal:
        infer_op(op, *inputs.split(), attrs=attrs)
    assert message in str(refusal.value)
