"""Shapes of parsed examples: one output for each part of each feature."""

import pytest

from opkernel.errors import InvalidArgumentError
from opkernel.types import DataType, PartialTensorShape

FLOAT = DataType.DT_FLOAT
SHAPE = PartialTensorShape([2, 3])


def example(**changed):
    attrs = {
        "num_sparse": 1,
        "sparse_types": [FLOAT],
        "ragged_value_types": [FLOAT],
        "ragged_split_types": [DataType.DT_INT32],
        "Tdense": [FLOAT],
        "dense_shapes": [SHAPE],
    }
    return {**attrs, **changed}


@pytest.mark.parametrize(
    ("serialized", "outputs"),
    [
        ("[4]", "[?,2];[?];[2];[d0_0,2,3];[?];[5]"),
        ("[]", "[?,1];[?];[1];[2,3];[?];[?]"),
        ("?", "[?,?];[?];[?];?;[?];[?]"),
    ],
)
def test_features_have_the_batch_before_their_own_dimensions(infer_op, serialized, outputs):
    inputs = [serialized, "[0]", "[1]", "[1]", "[1]", "[6]"]
    assert infer_op("ParseExampleV2", *inputs, attrs=example()) == outputs


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"sparse_types": []}, "len(sparse_keys) != len(sparse_types)"),
        ({"dense_shapes": []}, "len(dense_keys) != len(dense_shapes)"),
        ({"ragged_split_types": []}, "len(ragged_keys) != len(ragged_split_types)"),
        ({"dense_shapes": [PartialTensorShape([2, None])]}, "unknown inner dimensions: [2,?]"),
    ],
)
def test_attrs_that_do_not_match_are_refused(infer_op, changed, message):
    inputs = ["[4]", "[0]", "[1]", "[1]", "[1]", "[6]"]
    with pytest.raises(InvalidArgumentError) as refusal:
        infer_op("ParseExampleV2", *inputs, attrs=example(**changed))
    assert message in str(refusal.value)
