"""Shapes of datasets, iterators and other resources. Expected values are TensorFlow's."""

import pytest

from opkernel.errors import InvalidArgumentError
from opkernel.opdef import global_op_registry
from opkernel.ops.data import shape_functions
from opkernel.proto import NameAttrList
from opkernel.types import PartialTensorShape, float32

ELEMENTS = {"output_types": [float32], "output_shapes": [PartialTensorShape([2])]}
TWO_OF_ONE = {**ELEMENTS, "output_types": [float32] * 2}
CSV = ["[]", "[]", "[]", "[]", "[]", "[]", "[]", "[3]"]
PADDED = {"Toutput_types": [float32], "output_shapes": [PartialTensorShape([2])], "N": 1}
MAP = {**ELEMENTS, "Targuments": [float32], "f": NameAttrList(name="f")}


@pytest.mark.parametrize(
    ("op", "attrs", "inputs", "expected"),
    [
        ("MapDataset", MAP, ["[7]", "[7]"], "[]"),
        ("TFRecordDatasetV2", {}, ["[3]", "[]", "[]", "?"], "[]"),
        ("MapAndBatchDataset", MAP, ["?", "[7]", "[]", "[]", "[]"], "[]"),
        ("CSVDataset", ELEMENTS, [*CSV, "[1]"], "[]"),
        ("CSVDatasetV2", ELEMENTS, [*CSV, "[]", "[2]"], "[]"),
        ("IteratorGetNext", ELEMENTS, ["[]"], "[2]"),
        ("GetElementAtIndex", ELEMENTS, ["[]", "[3]"], "[2]"),
        ("AnonymousIteratorV2", ELEMENTS, [], "[];[]"),
        ("SerializeIterator", {}, ["[]"], "[?]"),
        ("MakeIterator", {}, ["[3]", "[3]"], ""),
        (
            "SaveDatasetV2",
            {**MAP, "shard_func": MAP["f"], "Tshard_func_args": []},
            ["?", "[]"],
            "[]",
        ),
        ("MutexV2", {}, [], "[]"),
        ("AnonymousMemoryCache", {}, [], "[];[]"),
    ],
)
def test_outputs(infer_op, op, attrs, inputs, expected):
    declared = {attr.name for attr in global_op_registry().look_up_op_def(op).attr}
    attrs = {name: value for name, value in attrs.items() if name in declared}
    assert infer_op(op, *inputs, attrs=attrs) == expected


@pytest.mark.parametrize(
    ("op", "attrs", "inputs", "problem"),
    [
        ("RangeDataset", ELEMENTS, ["[]", "[]", "[1]"], "must be rank 0 but is rank 1"),
        ("SleepDataset", ELEMENTS, ["[]", "[1]"], "at most rank 0"),
        ("AssertNextDataset", ELEMENTS, ["?", "[]"], "must be rank 1 but is rank 0"),
        ("MapAndBatchDataset", MAP, ["?", "?", "?", "?", "[1]"], "must be rank 0"),
        ("PaddedBatchDatasetV2", PADDED, ["?", "[]", "?", "?", "[1]"], "must be rank 0"),
        ("CSVDataset", ELEMENTS, [*CSV, "[2]"], "length-0 or length-1 vector"),
        ("CSVDatasetV2", ELEMENTS, [*CSV, "[2]", "[]"], "must be rank 1 but is rank 0"),
        ("TextLineDataset", {}, ["[1,1]", "[]", "[]"], "at most rank 1"),
        ("IteratorGetNext", TWO_OF_ONE, ["[]"], r"1 vs\. 2"),
        ("UncompressElement", ELEMENTS, ["[1]"], "must be rank 0"),
    ],
)
def test_inputs_that_do_not_match_are_refused(infer_op, op, attrs, inputs, problem):
    with pytest.raises(InvalidArgumentError, match=problem):
        infer_op(op, *inputs, attrs=attrs)


def test_ops_have_the_rules_of_their_experimental_twins():
    names = shape_functions.DATA_SHAPE_FNS
    twins = [name for name in names if name.startswith("Experimental")]
    assert len(twins) == 37
    assert all(names[twin] is names[twin.removeprefix("Experimental")] for twin in twins)
