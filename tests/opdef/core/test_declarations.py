import pytest

from opkernel.errors import InvalidArgumentError
from opkernel.opdef import (
    attr_from_python,
    attr_to_python,
    attr_type_of,
    find_attr,
    is_list_arg,
)
from opkernel.opdef.core.declarations import split_attr_type
from opkernel.opdef.core.validate import with_context
from opkernel.proto import AttrValue, OpDef
from opkernel.types import DataType

OP = OpDef(
    name="Op",
    input_arg=[
        OpDef.ArgDef(name="one", type_attr="T"),
        OpDef.ArgDef(name="many", number_attr="N", type_attr="T"),
        OpDef.ArgDef(name="mixed", type_list_attr="Ts"),
    ],
    attr=[OpDef.AttrDef(name="T", type="type"), OpDef.AttrDef(name="N", type="int")],
)


def test_attrs_by_name():
    assert find_attr(OP, "N") == OP.attr[1]
    assert find_attr(OP, "M") is None


def test_arguments_that_are_lists():
    assert [is_list_arg(arg) for arg in OP.input_arg] == [False, True, True]


def test_types_by_name():
    assert DataType.find("half") is DataType.DT_HALF
    assert DataType.find("Half") is None


def test_the_kind_of_an_attr_type():
    assert split_attr_type("func") == ("func", False)
    assert split_attr_type("list(func)") == ("func", True)


@pytest.mark.parametrize(
    ("attr_type", "value"),
    [
        ("string", "a"),
        ("int", 3),
        ("float", 0.5),
        ("bool", False),
        ("type", DataType.DT_INT32),
        ("list(int)", [1, 2]),
        ("list(bool)", [False]),
        ("list(type)", [DataType.DT_HALF]),
    ],
)
def test_a_value_shows_its_type(attr_type, value):
    message = attr_from_python(value, attr_type)
    assert attr_type_of(message) == attr_type
    assert attr_to_python(message, attr_type_of(message)) == value


def test_an_empty_list_shows_the_type_of_some_list():
    message = AttrValue(list=AttrValue.ListValue())
    assert attr_to_python(message, attr_type_of(message)) == []


def test_context_keeps_the_node_that_an_error_names():
    error = with_context(InvalidArgumentError("m", node="n", op="Op"), "here")
    assert (error.message, error.node, error.op) == ("m\n\there", "n", "Op")
