"""Shapes of ops on variables. Expected values are TensorFlow's."""

import pytest

from opkernel.errors import InvalidArgumentError
from opkernel.types import PartialTensorShape, float32, int32, resource, variant

T = {"T": float32}
DTYPE = {"dtype": float32}
SCATTER = {"T": float32, "Tindices": int32}
RESOURCE_SCATTER = {"dtype": float32, "Tindices": int32}
MATRIX = {0: [("[2,3]", float32)]}
VARIANTS = {0: [("[2]", variant), ("[3]", float32)]}


@pytest.mark.parametrize(
    ("op", "attrs", "inputs", "expected"),
    [
        ("VariableV2", {"shape": PartialTensorShape([]), **DTYPE}, [], "[]"),
        ("Variable", {"shape": PartialTensorShape([]), **DTYPE}, [], "?"),
        ("Variable", {"shape": PartialTensorShape([2, None]), **DTYPE}, [], "[2,?]"),
        ("Assign", T, ["[2,?]", "[?,3]"], "[d0_0,d1_1]"),
        ("Assign", {**T, "validate_shape": False}, ["[2]", "[3]"], "in1"),
        ("AssignAdd", T, ["?", "[3]"], "in1"),
        ("ScatterAdd", SCATTER, ["[5,3]", "[2]", "[2,3]"], "in0"),
        ("ScatterAdd", SCATTER, ["[5,3]", "[2]", "[]"], "in0"),
        ("ScatterNdAdd", SCATTER, ["[5,3]", "[2,1]", "[2,3]"], "in0"),
        ("CountUpTo", {"T": int32, "limit": 3}, ["?"], "[]"),
        ("VariableShape", {}, ["?"], "[?]"),
        ("ReadVariableOp", DTYPE, ["[]"], "?"),
        ("ReadVariableOp", {**DTYPE, "_shape": PartialTensorShape([2])}, ["[]"], "[2]"),
    ],
)
def test_outputs(infer_op, op, attrs, inputs, expected):
    assert infer_op(op, *inputs, attrs=attrs) == expected


@pytest.mark.parametrize(
    ("op", "attrs", "inputs", "held", "expected"),
    [
        ("ReadVariableOp", DTYPE, ["[]"], MATRIX, "[2,3]"),
        ("_ReadVariablesOp", {"N": 1, "dtypes": [float32]}, ["[]"], MATRIX, "[2,3]"),
        ("VariableShape", {}, ["[]"], MATRIX, "[2]"),
        ("VariableShape", {}, ["[]"], {0: [("?", float32)]}, "[?]"),
        ("ResourceGather", RESOURCE_SCATTER, ["[]", "[4,?]"], MATRIX, "[d1_0,d1_1,3]"),
        (
            "ResourceGather",
            {**RESOURCE_SCATTER, "batch_dims": 1},
            ["[]", "[2,7]"],
            MATRIX,
            "[2,d1_1]",
        ),
        ("ResourceGatherNd", RESOURCE_SCATTER, ["[]", "[4,1]"], MATRIX, "[d1_0,3]"),
        ("ResourceCountUpTo", {"T": int32, "limit": 1}, ["[]"], {0: [("?", int32)]}, "[]"),
    ],
)
def test_outputs_of_what_resources_hold(infer_op, op, attrs, inputs, held, expected):
    assert infer_op(op, *inputs, attrs=attrs, handles=held) == expected


def test_handles_know_their_variables(infer_held, infer_op):
    one = {"shape": PartialTensorShape([2, None]), **DTYPE}
    assert infer_held("VarHandleOp", attrs=one) == "float [2,?]"
    shapes = [PartialTensorShape([2]), PartialTensorShape(None)]
    names = {"containers": ["", ""], "shared_names": ["a", "b"]}
    many = {"N": 2, "dtypes": [float32, int32], "shapes": shapes, **names}
    assert infer_op("_VarHandlesOp", attrs=many) == "[];[]"
    assert infer_held("_VarHandlesOp", attrs=many, output=1) == "int32 ?"
    with pytest.raises(InvalidArgumentError, match=r"dtypes \(n=3, num dtypes=2\)"):
        infer_op("_VarHandlesOp", attrs={**many, "N": 3})


def test_variants_pass_on_what_they_hold(infer_held):
    read = {"dtype": variant}
    assert infer_held("ReadVariableOp", "[]", attrs=read, handles=VARIANTS) == "float [3]"
    gather = {"dtype": variant, "Tindices": int32}
    assert infer_held("ResourceGather", "[]", "[]", attrs=gather, handles=VARIANTS) == "float [3]"


@pytest.mark.parametrize(
    ("op", "attrs", "inputs", "held", "problem"),
    [
        ("Assign", T, ["[2]", "[3]"], {}, "are 2 and 3"),
        ("ScatterAdd", SCATTER, ["[5,3]", "[2]", "[2,4]"], {}, "are 4 and 3"),
        ("ScatterNdAdd", SCATTER, ["[5,3]", "[]", "[2,3]"], {}, "at least rank 1"),
        ("ScatterNdAdd", SCATTER, ["[5,3]", "[2,1]", "[]"], {}, "at least rank 1"),
        ("ReadVariableOp", {"dtype": int32}, ["[]"], MATRIX, "Expected float got int32"),
        ("_ReadVariablesOp", {"N": 1, "dtypes": [int32]}, ["[]"], MATRIX, "Expected float got int"),
        ("_ReadVariablesOp", {"N": 1, "dtypes": [int32] * 2}, ["[]"], {}, "Mismatched number"),
        ("AssignVariableOp", DTYPE, ["[]", "[2,4]"], MATRIX, "are 3 and 4"),
        (
            "ResourceGather",
            {**RESOURCE_SCATTER, "batch_dims": -1},
            ["?", "?"],
            {},
            r"negative \(-1",
        ),
        (
            "ResourceGather",
            {**RESOURCE_SCATTER, "batch_dims": 2},
            ["[]", "?"],
            MATRIX,
            "least rank 3",
        ),
        (
            "ResourceGather",
            {**RESOURCE_SCATTER, "batch_dims": 1},
            ["[]", "[]"],
            MATRIX,
            "least rank 1",
        ),
        ("ResourceScatterAdd", RESOURCE_SCATTER, ["[]", "[4]", "[4]"], MATRIX, "are 1 and 2"),
        ("ResourceCountUpTo", {"T": int32, "limit": 1}, ["[]"], {}, "no shape/type information"),
        ("ResourceCountUpTo", {"T": int32, "limit": 1}, ["[]"], MATRIX, "int32 and float"),
    ],
)
def test_inputs_that_do_not_match_are_refused(infer_op, op, attrs, inputs, held, problem):
    with pytest.raises(InvalidArgumentError, match=problem):
        infer_op(op, *inputs, attrs=attrs, handles=held)


def test_as_many_tensors_in_a_variant_as_in_the_variable(infer_op):
    held = {**VARIANTS, 1: [("[3]", float32), ("[3]", float32)]}
    with pytest.raises(InvalidArgumentError, match=r"1 vs\. 2"):
        infer_op("AssignVariableOp", "[]", "[2]", attrs={"dtype": variant}, handles=held)


def test_handles_in_variables_are_no_variants(infer_held):
    held = {0: [("[]", resource), ("[3]", float32)]}
    assert infer_held("ReadVariableOp", "[]", attrs={"dtype": resource}, handles=held) is None
