"""Shapes of ops that call functions or batch requests. Expected values are TensorFlow's."""

import pytest

from opkernel.errors import InvalidArgumentError
from opkernel.proto import NameAttrList
from opkernel.types import PartialTensorShape, float32, resource

F = NameAttrList(name="f")
BATCH = {
    "T": [float32],
    "num_batch_threads": 1,
    "max_batch_size": 2,
    "batch_timeout_micros": 3,
    "grad_timeout_micros": 4,
}
MAP = {
    "Targuments": [float32] * 2,
    "output_types": [float32],
    "output_shapes": [PartialTensorShape([5])],
    "f": F,
}
CAPTURE = {**MAP, "Targuments": [float32], "Tcaptured": [float32]}


@pytest.mark.parametrize(
    ("op", "attrs", "inputs", "expected"),
    [
        ("MapDefun", MAP, ["[3,2]", "?"], "[3,5]"),
        ("MapDefun", MAP, ["[?]", "[?,4]"], "[?,5]"),
        ("MapDefun", CAPTURE, ["[3]", "[]"], "[3,5]"),
        ("Batch", BATCH, ["[3,4]"], "[?,d0_1];[?,3];[]"),
        ("Unbatch", {"T": float32, "timeout_micros": 1}, ["[3,4]", "?", "?"], "[?,d0_1]"),
        ("UnbatchGrad", {"T": float32}, ["?", "?", "[3,4]", "?"], "[?,?]"),
        ("UnbatchGrad", {"T": float32}, ["[3]", "?", "?", "?"], "?"),
        ("FakeParam", {"dtype": float32, "shape": PartialTensorShape([2, None])}, [], "[2,?]"),
        ("_While", {"T": [float32], "cond": F, "body": F}, ["[3]"], "in0"),
        ("For", {"T": [float32], "body": F}, ["[]", "[]", "[]", "[3]"], "?"),
        ("DeviceIndex", {"device_names": ["CPU"]}, [], "[]"),
        ("EagerPyFunc", {"Tin": [float32], "Tout": [float32], "token": "t"}, ["[3]"], "?"),
    ],
)
def test_outputs(infer_op, op, attrs, inputs, expected):
    assert infer_op(op, *inputs, attrs=attrs) == expected


def test_gradients_are_like_what_they_are_of(infer_op):
    attrs = {"Tin": [float32, resource, float32], "Tout": [float32, resource], "f": F}
    inputs = ["[2]", "[]", "[2]"]
    assert infer_op("SymbolicGradient", *inputs, attrs=attrs) == "in0;?"
    held = {1: [("[7]", float32)]}
    assert infer_op("SymbolicGradient", *inputs, attrs=attrs, handles=held) == "in0;[7]"


@pytest.mark.parametrize(
    ("op", "attrs", "inputs", "problem"),
    [
        ("MapDefun", MAP, ["[3]", "[]"], "Input 1 has rank of 0"),
        ("MapDefun", MAP, ["[3]", "[4]"], "same dimension 0"),
        ("MapDefun", {**MAP, "output_types": [float32] * 2}, ["?", "?"], r"\(1 vs\. 2\)"),
        ("Batch", BATCH, ["[]"], "dim_index 0"),
        (
            "SymbolicGradient",
            {"Tin": [float32], "Tout": [float32] * 2, "f": F},
            ["?"],
            r"len\(inputs\) < len",
        ),
    ],
)
def test_inputs_that_do_not_match_are_refused(infer_op, op, attrs, inputs, problem):
    with pytest.raises(InvalidArgumentError, match=problem):
        infer_op(op, *inputs, attrs=attrs)
