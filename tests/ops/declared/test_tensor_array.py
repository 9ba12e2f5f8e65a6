"""Shapes of ops on tensor arrays. Expected values are TensorFlow's."""

import pytest

from opkernel.errors import InvalidArgumentError
from opkernel.types import PartialTensorShape, float32

T = {"T": float32}
DTYPE = {"dtype": float32}
SOURCE = {"source": "gradients"}
ROWS = {0: [("[3]", float32)]}


@pytest.mark.parametrize(
    ("op", "attrs", "inputs", "held", "expected"),
    [
        ("TensorArrayReadV3", DTYPE, ["[2]", "[]", "[]"], {}, "?"),
        ("TensorArrayReadV3", DTYPE, ["[2]", "[]", "[]"], ROWS, "[3]"),
        ("TensorArrayWriteV3", T, ["[2]", "[]", "[3]", "[]"], ROWS, "[]"),
        ("TensorArrayGatherV3", DTYPE, ["[2]", "[4]", "[]"], {}, "?"),
        ("TensorArrayGatherV3", DTYPE, ["[2]", "[4]", "[]"], ROWS, "[d1_0,3]"),
        (
            "TensorArrayGatherV3",
            {**DTYPE, "element_shape": PartialTensorShape([None, 5])},
            ["?", "?", "?"],
            {},
            "[?,?,5]",
        ),
        ("TensorArrayScatterV3", T, ["[2]", "[?]", "[4,3]", "[]"], ROWS, "[]"),
        ("TensorArrayConcatV3", DTYPE, ["[2]", "[]"], ROWS, "?;[?]"),
        ("TensorArrayGradV3", SOURCE, ["?", "?"], {}, "[2];[]"),
        ("TensorArraySizeV3", {}, ["?", "[7]"], {}, "[]"),
        ("TensorArrayCloseV3", {}, ["[2]"], {}, ""),
        ("TensorArrayRead", DTYPE, ["[7]", "[7]", "[7]"], {}, "?"),
    ],
)
def test_outputs(infer_op, op, attrs, inputs, held, expected):
    assert infer_op(op, *inputs, attrs=attrs, handles=held) == expected


@pytest.mark.parametrize(
    ("sizes", "identical", "held"),
    [
        ([2, 3], False, "float [2,3]"),
        ([2, None], False, None),
        ([2, None], True, "float [2,?]"),
        (None, True, "float ?"),
    ],
)
def test_the_handle_knows_a_shape_that_holds_of_all(infer_held, sizes, identical, held):
    shape = {"element_shape": PartialTensorShape(sizes), "identical_element_shapes": identical}
    assert infer_held("TensorArrayV3", "[]", attrs={**DTYPE, **shape}) == held


def test_gradients_are_like_the_elements(infer_held):
    assert infer_held("TensorArrayGradV3", "[2]", "[]", attrs=SOURCE, handles=ROWS) == "float [3]"


@pytest.mark.parametrize(("added", "held"), [("[2]", "float [?,?,3]"), ("[?]", "float ?")])
def test_gradients_with_more_dimensions(infer_held, added, held):
    op = "TensorArrayGradWithShape"
    assert infer_held(op, "[2]", "[]", added, attrs=SOURCE, handles=ROWS) == held
    assert infer_held(op, "[2]", "[]", added, attrs=SOURCE) is None


@pytest.mark.parametrize(
    ("op", "attrs", "inputs", "held", "problem"),
    [
        ("TensorArrayReadV3", DTYPE, ["[3]", "[]", "[]"], {}, "must be 2 but is 3"),
        ("TensorArrayReadV3", DTYPE, ["[]", "[]", "[]"], {}, "must be rank 1 but is rank 0"),
        ("TensorArrayWriteV3", T, ["[2]", "[]", "[4]", "[]"], ROWS, "are 3 and 4"),
        ("TensorArrayWriteV3", T, ["[2]", "[]", "[3]", "[1]"], ROWS, "must be rank 0"),
        ("TensorArrayScatterV3", T, ["[2]", "[2]", "[4,3]", "[]"], {}, "are 4 and 2"),
        ("TensorArrayScatterV3", T, ["[2]", "[2]", "[2,4]", "[]"], ROWS, "are 3 and 4"),
        # The ranks of handle and indices come first, then the length of the handle.
        ("TensorArrayGatherV3", DTYPE, ["[3]", "[]", "[]"], {}, "must be rank 1 but is rank 0"),
        ("TensorArrayGatherV2", DTYPE, ["[3]", "[1]", "[1]"], {}, "must be 2 but is 3"),
        ("TensorArraySplitV3", T, ["[2]", "?", "[]", "[]"], {}, "must be rank 1 but is rank 0"),
        ("TensorArrayV3", DTYPE, ["[1]"], {}, "must be rank 0 but is rank 1"),
    ],
)
def test_inputs_that_do_not_match_are_refused(infer_op, op, attrs, inputs, held, problem):
    with pytest.raises(InvalidArgumentError, match=problem):
        infer_op(op, *inputs, attrs=attrs, handles=held)
