"""Shapes of ops on lookup tables. Expected values are TensorFlow's."""

import pytest

from opkernel.errors import InvalidArgumentError
from opkernel.types import PartialTensorShape, float32, int64

TABLE = {"key_dtype": int64, "value_dtype": float32}
IN_OUT = {"Tin": int64, "Tout": float32}
KEY_VALUE = {"Tkeys": int64, "Tvalues": float32}
OF_PAIRS = {0: [("[2]", int64), ("[7,8]", float32)]}


@pytest.mark.parametrize(
    ("op", "attrs", "inputs", "held"),
    [
        ("HashTableV2", TABLE, [], None),
        ("MutableHashTableV2", TABLE, [], "int64 [];float []"),
        (
            "MutableHashTableOfTensorsV2",
            {**TABLE, "value_shape": PartialTensorShape([3, None])},
            [],
            "int64 [];float [3,?]",
        ),
        ("MutableDenseHashTableV2", TABLE, ["[2]", "[3,4]"], "int64 [2];float []"),
    ],
)
def test_handles_know_keys_and_values(infer_held, infer_op, op, attrs, inputs, held):
    assert infer_op(op, *inputs, attrs=attrs) == "[]"
    assert infer_held(op, *inputs, attrs=attrs) == held


@pytest.mark.parametrize(
    ("op", "attrs", "inputs", "held", "expected"),
    [
        ("LookupTableFindV2", IN_OUT, ["[]", "[5,2]", "?"], {}, "?"),
        ("LookupTableFindV2", IN_OUT, ["[]", "[5,2]", "?"], OF_PAIRS, "[d1_0,7,8]"),
        ("LookupTableFindV2", IN_OUT, ["[]", "[5,6]", "?"], OF_PAIRS, "[d1_0,7,8]"),
        ("LookupTableFindV2", IN_OUT, ["[]", "?", "?"], OF_PAIRS, "?"),
        ("LookupTableFind", IN_OUT, ["[2]", "[5]", "[1]"], {}, "?"),
        ("LookupTableExport", KEY_VALUE, ["[2]"], {}, "[?];?"),
        ("LookupTableExportV2", KEY_VALUE, ["[]"], OF_PAIRS, "?;?"),
        ("LookupTableImportV2", IN_OUT, ["[]", "[5]", "[5,7]"], {}, ""),
        ("LookupTableSizeV2", {}, ["?"], {}, "[]"),
        ("HashTable", TABLE, [], {}, "[2]"),
    ],
)
def test_outputs(infer_op, op, attrs, inputs, held, expected):
    assert infer_op(op, *inputs, attrs=attrs, handles=held) == expected


@pytest.mark.parametrize(
    ("op", "attrs", "inputs", "held", "problem"),
    [
        (
            "LookupTableFindV2",
            IN_OUT,
            ["[]", "[]", "?"],
            OF_PAIRS,
            r"suffix \[2\] but saw shape: \[\]",
        ),
        (
            "LookupTableFindV2",
            {**IN_OUT, "Tin": float32},
            ["[]", "?", "?"],
            OF_PAIRS,
            "int64 got float",
        ),
        (
            "LookupTableExportV2",
            {**KEY_VALUE, "Tvalues": int64},
            ["[]"],
            OF_PAIRS,
            "float got int64",
        ),
        ("LookupTableFind", IN_OUT, ["[2]", "[5]", "[1,1]"], {}, "at most rank 1"),
        ("LookupTableImportV2", IN_OUT, ["[]", "[5]", "[4]"], {}, "are 5 and 4"),
        ("LookupTableImportV2", IN_OUT, ["[]", "[5]", "[]"], {}, "at least rank 1"),
        ("LookupTableRemoveV2", {"Tin": int64}, ["[]", "[]"], {}, "at least rank 1"),
        (
            "InitializeTableV2",
            {"Tkey": int64, "Tval": int64},
            ["[]", "[2]", "[3]"],
            {},
            "are 2 and 3",
        ),
        ("InitializeTable", {"Tkey": int64, "Tval": int64}, ["[3]", "[2]", "[2]"], {}, "is 3"),
        ("LookupTableInsertV2", IN_OUT, ["[2]", "?", "?"], {}, "must be rank 0"),
        ("AnonymousMutableDenseHashTable", TABLE, ["[1,1]", "?"], {}, "at most rank 1"),
    ],
)
def test_inputs_that_do_not_match_are_refused(infer_op, op, attrs, inputs, held, problem):
    with pytest.raises(InvalidArgumentError, match=problem):
        infer_op(op, *inputs, attrs=attrs, handles=held)
