"""Shapes of ops that make up graphs. Expected values are TensorFlow's."""

import pytest

from opkernel.errors import InvalidArgumentError
from opkernel.types import PartialTensorShape, float32, int32, resource

ARG = {"T": float32, "index": 0}
SHAPES = [PartialTensorShape([2, None]), PartialTensorShape([7])]


@pytest.mark.parametrize(
    ("attrs", "expected"),
    [
        (ARG, "?"),
        ({**ARG, "_output_shapes": SHAPES}, "[2,?]"),
        ({**ARG, "_output_shapes": 7}, "?"),
    ],
)
def test_arguments_may_say_their_shape(infer_op, attrs, expected):
    assert infer_op("_Arg", attrs=attrs) == expected


def test_arguments_may_say_what_they_hold(infer_held):
    held = {"_handle_dtypes": [int32], "_handle_shapes": SHAPES}
    assert infer_held("_Arg", attrs={"T": resource, "index": 0, **held}) == "int32 [2,?]"
    assert infer_held("_Arg", attrs={**ARG, **held}) is None
    assert infer_held("_Arg", attrs={"T": resource, "index": 0, "_handle_dtypes": []}) is None


@pytest.mark.parametrize(
    "attrs",
    [
        {"_output_shapes": []},
        {"_handle_dtypes": [], "_handle_shapes": SHAPES},
        {"_handle_shapes": [], "_handle_dtypes": [int32]},
    ],
)
def test_what_arguments_say_is_not_empty(infer_op, attrs):
    with pytest.raises(InvalidArgumentError, match=f'Invalid "{next(iter(attrs))}" attribute'):
        infer_op("_Arg", attrs={"T": resource, "index": 0, **attrs})


@pytest.mark.parametrize(
    ("inputs", "expected"),
    [
        (["[]", "[2,3]", "[2,3]"], "in1"),
        (["[]", "[2,3]", "[2,4]"], "?"),
        (["[]", "[2,?]", "[2,3]"], "?"),
        (["[]", "[2,3]", "[2,?]"], "?"),
        (["[]", "[2,3]", "[2]"], "?"),
    ],
)
def test_one_of_references_has_the_shape_of_all(infer_op, inputs, expected):
    assert infer_op("RefSelect", *inputs, attrs={"T": float32, "N": 2}) == expected


def test_the_choice_of_references_is_a_scalar(infer_op):
    with pytest.raises(InvalidArgumentError, match="must be rank 0 but is rank 1"):
        infer_op("RefSelect", "[1]", "?", attrs={"T": float32, "N": 1})


@pytest.mark.parametrize(
    ("op", "attrs", "inputs", "expected"),
    [
        ("Abort", {}, [], ""),
        ("RefIdentity", {"T": float32}, ["[3]"], "in0"),
        ("_HostCast", {"SrcT": float32, "DstT": int32}, ["[3]"], "in0"),
        ("_Retval", {"T": float32, "index": 0}, ["[3]"], ""),
        ("_ListToArray", {"Tin": [float32] * 2, "T": float32, "N": 2}, ["[3]", "?"], "?;?"),
    ],
)
def test_outputs(infer_op, op, attrs, inputs, expected):
    assert infer_op(op, *inputs, attrs=attrs) == expected
