"""Ops whose outputs are references to variables of a graph: no call at once can have one."""

import pytest

import opkernel
from opkernel import raw_ops
from opkernel.errors import UnimplementedError


@pytest.mark.parametrize(
    ("op", "attrs"),
    [
        ("VariableV2", {"shape": [], "dtype": opkernel.float32}),
        ("FIFOQueue", {"component_types": [opkernel.float32]}),
        ("Stack", {"elem_type": opkernel.float32}),
        ("MutableHashTable", {"key_dtype": opkernel.int64, "value_dtype": opkernel.float32}),
        ("Barrier", {"component_types": [opkernel.float32], "shapes": [[2]]}),
    ],
)
def test_they_are_refused_by_name(op, attrs):
    with pytest.raises(
        UnimplementedError, match=f"{op} does not support eager execution: its output"
    ):
        getattr(raw_ops, op)(**attrs)
