"""Shapes of ops of TPU, XLA, RISC and test ops: the answers are TensorFlow's."""

import pytest

from opkernel.errors import InvalidArgumentError
from opkernel.types import DataType

INFERRED = [
    ("RiscAdd", {"T": DataType.DT_FLOAT}, "[2,?] [?,3]", "in0"),
    (
        "XlaPad",
        {"T": DataType.DT_FLOAT, "Tindices": DataType.DT_INT32},
        "[2,3] [] [2] [2] [2]",
        "[?,?]",
    ),
    ("XlaEinsum", {"T": DataType.DT_FLOAT, "equation": "ab,bc->ac"}, "[2,3] [3,?]", "[d0_0,d1_1]"),
    ("TPUReplicatedInput", {"N": 2, "T": DataType.DT_FLOAT}, "[2,?] [?,3]", "[d0_0,d1_1]"),
    (
        "RetrieveTPUEmbeddingADAMParameters",
        {"num_shards": 1, "shard_id": 0, "table_id": 0},
        "",
        "[?,?];[?,?];[?,?]",
    ),
    (
        "XlaSparseCoreAdam",
        {"feature_width": 2, "use_sum_inside_sqrt": False},
        "[2,3] ? ? ? [4] [5] ? ? ?",
        "in0;in5;in4",
    ),
    ("SdcaFprint", {}, "[3]", "[d0_0,2]"),
    (
        "BoostedTreesAggregateStats",
        {"max_splits": 3, "num_buckets": 4},
        "[5] [5,1] [5,2] [5,7]",
        "[3,d3_1,5,3]",
    ),
    (
        "BoostedTreesPredict",
        {"num_bucketized_features": 1, "logits_dimension": 2},
        "[] [5]",
        "[d1_0,2]",
    ),
    ("Foo1", {}, "[2] [] []", "?;?"),
]

REFUSED = [
    ("RiscAdd", {"T": DataType.DT_FLOAT}, "[2,2] [2,3]", "Mismatch shapes for input."),
    (
        "TPUExecute",
        {"Targs": [], "Tresults": [DataType.DT_FLOAT]},
        "[2]",
        "Dimension must be 3 but is 2",
    ),
    (
        "OutfeedDequeueTuple",
        {"dtypes": [DataType.DT_FLOAT], "shapes": []},
        "",
        "Incorrect number of output shapes specified",
    ),
    (
        "RetrieveTPUEmbeddingADAMParameters",
        {"num_shards": 1, "shard_id": 0},
        "",
        "exactly one of table_id or table_name must be non-default",
    ),
    (
        "LoadTPUEmbeddingAdagradParameters",
        {"num_shards": 1, "shard_id": 0, "table_id": 0},
        "[2,3] [3,3]",
        "Dimension 0 in both shapes must be equal, but are 2 and 3. Shapes are [2,3] and [3,3].",
    ),
    ("KernelLabelRequired", {}, "[]", "Shape must be rank 1 but is rank 0"),
]


@pytest.mark.parametrize(("op", "attrs", "inputs", "outputs"), INFERRED)
def test_shapes_follow_from_the_inputs(infer_op, op, attrs, inputs, outputs):
    assert infer_op(op, *inputs.split(), attrs=attrs) == outputs


@pytest.mark.parametrize(("op", "attrs", "inputs", "message"), REFUSED)
def test_inputs_that_do_not_fit_are_refused(infer_op, op, attrs, inputs, message):
    with pytest.raises(InvalidArgumentError) as refusal:
        infer_op(op, *inputs.split(), attrs=attrs)
    assert message in str(refusal.value)
