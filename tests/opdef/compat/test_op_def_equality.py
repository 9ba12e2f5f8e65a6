import pytest
from google.protobuf import text_format
from hypothesis import given
from hypothesis import strategies as st

from opkernel.opdef import (
    attr_def_equal,
    attr_def_hash,
    op_def_equal,
    op_def_hash,
    repeated_attr_def_equal,
    repeated_attr_def_hash,
)
from opkernel.proto import OpDef

DIFFERENT_ATTRS = [
    "name: 'a' type: 'int'",
    "name: 'b' type: 'int'",
    "name: 'a' type: 'float'",
    "name: 'a' type: 'int' description: 'x'",
    "name: 'a' type: 'int' has_minimum: true",
    "name: 'a' type: 'int' has_minimum: true minimum: 2",
    "name: 'a' type: 'int' default_value { i: 1 }",
    "name: 'a' type: 'int' default_value { i: 2 }",
    "name: 'a' type: 'int' default_value { list { i: 2 } }",
    "name: 'a' type: 'int' allowed_values { list { i: 2 } }",
    "name: 'a' type: 'int' allowed_values { list { i: 2 i: 3 } }",
]
A, B, C = "name: 'a' type: 'int'", "name: 'b' type: 'bool'", "name: 'c' type: 'int'"


def attr(text):
    return text_format.Parse(text, OpDef.AttrDef())


def op(text):
    return text_format.Parse(text, OpDef())


@pytest.mark.parametrize("i", range(len(DIFFERENT_ATTRS)))
def test_attrs_differ_in_each_field(i):
    for j, text in enumerate(DIFFERENT_ATTRS):
        one, other = attr(DIFFERENT_ATTRS[i]), attr(text)
        assert attr_def_equal(one, other) is (i == j)
        assert (attr_def_hash(one) == attr_def_hash(other)) is (i == j)


def test_values_are_compared_by_what_they_mean():
    tensor = "dtype: DT_INT32 tensor_shape { dim { size: 2 } }"
    one = attr(f"name: 't' type: 'tensor' default_value {{ tensor {{ {tensor} int_val: 7 }} }}")
    other = attr(
        f"name: 't' type: 'tensor' default_value {{ tensor {{ {tensor} int_val: [7, 7] }} }}"
    )
    assert attr_def_equal(one, other)
    assert attr_def_hash(one) == attr_def_hash(other)


def test_a_minimum_counts_where_there_is_one():
    one, other = attr("name: 'a' type: 'int' minimum: 3"), attr("name: 'a' type: 'int'")
    assert attr_def_equal(one, other)
    assert attr_def_hash(one) == attr_def_hash(other)


@pytest.mark.parametrize(
    ("left", "right", "equal"),
    [
        ([], [], True),
        ([A, B], [A, B], True),
        ([A, B], [B, A], True),
        ([A, B], [A], False),
        ([A], [A, B], False),
        ([A, B], [A, C], False),
        ([A], [A, A], False),
    ],
)
def test_lists_of_attrs_have_no_order(left, right, equal):
    one, other = list(map(attr, left)), list(map(attr, right))
    assert repeated_attr_def_equal(one, other) is equal
    assert (repeated_attr_def_hash(one) == repeated_attr_def_hash(other)) is equal


@pytest.mark.parametrize(
    ("left", "right", "equal"),
    [
        ("name: 'A'", "name: 'A'", True),
        ("name: 'A'", "name: 'B'", False),
        (f"attr {{ {A} }} attr {{ {B} }}", f"attr {{ {B} }} attr {{ {A} }}", True),
        ("control_output: ['x', 'y']", "control_output: ['y', 'x']", True),
        ("control_output: ['x', 'y']", "control_output: ['x', 'x']", False),
        (
            "input_arg { name: 'a' type: 1 } input_arg { name: 'b' type: 1 }",
            "input_arg { name: 'b' type: 1 } input_arg { name: 'a' type: 1 }",
            False,
        ),
        ("output_arg { name: 'a' type: 1 }", "output_arg { name: 'a' type: 2 }", False),
        ("is_stateful: true", "", False),
        ("summary: 'x'", "", False),
        ("deprecation { version: 0 }", "", False),
        (
            "input_arg { name: 'a' type: 20 handle_data { dtype: 1 } }",
            "input_arg { name: 'a' type: 20 handle_data { dtype: 3 } }",
            False,
        ),
    ],
)
def test_ops(left, right, equal):
    assert op_def_equal(op(left), op(right)) is equal
    assert (op_def_hash(op(left)) == op_def_hash(op(right))) is equal


def test_comparing_changes_nothing():
    before = f"name: 'A' attr {{ {A} }} control_output: ['y', 'x']"
    op_def = op(before)
    op_def_equal(op_def, op_def)
    op_def_hash(op_def)
    assert op_def == op(before)


@given(st.permutations([A, B, C, "name: 'd' type: 'list(int)'"]))
def test_equal_ops_have_the_same_hash(texts):
    one = op(" ".join(f"attr {{ {text} }}" for text in sorted(texts)))
    other = op(" ".join(f"attr {{ {text} }}" for text in texts))
    assert op_def_equal(one, other)
    assert op_def_hash(one) == op_def_hash(other)
