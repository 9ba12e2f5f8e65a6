import numpy as np
import pytest

from opkernel.errors import InvalidArgumentError, UnimplementedError
from opkernel.opdef import (
    are_attr_values_equal,
    attr_value_has_type,
    attr_value_hash,
    fast_are_attr_values_equal,
    parse_attr_value,
    substitute_placeholders,
    validate_attr_value,
)
from opkernel.opdef.core.spec import parse_attr_spec
from opkernel.proto import AttrValue, NameAttrList, OpDef

TYPES = ["string", "int", "float", "bool", "type", "shape", "tensor", "func"]
TEXTS = ["'s'", "1", "1.5", "true", "DT_FLOAT", "{}", "{ dtype: DT_INT32 }", "{ name: 'f' }"]


def attr_def(spec):
    attr = OpDef.AttrDef()
    parse_attr_spec(spec, attr)
    return attr


@pytest.mark.parametrize(("type", "text"), list(zip(TYPES, TEXTS, strict=True)))
def test_each_kind_is_of_its_type_alone(type, text):
    value = parse_attr_value(type, text)
    values = parse_attr_value(f"list({type})", f"[{text}]")
    for expected in [*TYPES, *(f"list({other})" for other in TYPES)]:
        for found, is_right in ((value, expected == type), (values, expected == f"list({type})")):
            if is_right:
                attr_value_has_type(found, expected)
                continue
            with pytest.raises(InvalidArgumentError) as caught:
                attr_value_has_type(found, expected)
            assert str(caught.value).endswith(f"when '{expected}' expected")


@pytest.mark.parametrize("type", TYPES)
def test_an_empty_list_is_of_every_list_type(type):
    for value in (AttrValue(), AttrValue(list=AttrValue.ListValue())):
        attr_value_has_type(value, f"list({type})")
        with pytest.raises(
            InvalidArgumentError, match=f"missing value with expected type '{type}'"
        ):
            attr_value_has_type(value, type)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("1000", "AttrValue has invalid DataType enum: 1000"),
        ("DT_FLOAT_REF", "AttrValue must not have reference type value of float_ref"),
        ("DT_INVALID", "AttrValue has invalid DataType"),
    ],
)
def test_types_that_no_attr_may_name(text, message):
    with pytest.raises(InvalidArgumentError, match=message):
        attr_value_has_type(parse_attr_value("type", text), "type")
    with pytest.raises(InvalidArgumentError):
        attr_value_has_type(parse_attr_value("list(type)", f"[DT_INT32, {text}]"), "list(type)")


def test_a_placeholder_is_of_no_type():
    with pytest.raises(InvalidArgumentError, match="unexpected type 'placeholder'"):
        attr_value_has_type(AttrValue(placeholder="T"), "type")


@pytest.mark.parametrize(
    ("spec", "good", "bad", "message"),
    [
        ("a: int >= 5", "5", "4", "Value for attr 'a' of 4 must be at least minimum 5"),
        (
            "a: list(int) >= 2",
            "[1,2]",
            "[1]",
            "Length for attr 'a' of 1 must be at least minimum 2",
        ),
        (
            "a: list(bool) >= 1",
            "[true]",
            "[]",
            "Length for attr 'a' of 0 must be at least minimum 1",
        ),
        (
            "a: {int32, float}",
            "DT_INT32",
            "DT_BOOL",
            "Value for attr 'a' of bool is not in the list of allowed values: int32, float",
        ),
        (
            "a: list({int32, float})",
            "[DT_INT32]",
            "[DT_INT32, DT_BOOL]",
            "Value for attr 'a' of bool is not in the list of allowed values: int32, float",
        ),
        (
            "a: {'x', 'y'}",
            "'y'",
            "'z'",
            'Value for attr \'a\' of "z" is not in the list of allowed values: "x", "y"',
        ),
        (
            "a: list({'x', 'y'})",
            "['x','y']",
            "['z']",
            'Value for attr \'a\' of "z" is not in the list of allowed values: "x", "y"',
        ),
    ],
)
def test_minimum_and_allowed_values(spec, good, bad, message):
    attr = attr_def(spec)
    validate_attr_value(parse_attr_value(attr.type, good), attr)
    with pytest.raises(InvalidArgumentError) as caught:
        validate_attr_value(parse_attr_value(attr.type, bad), attr)
    assert str(caught.value) == message


def test_a_wrong_type_is_reported_with_the_attr():
    with pytest.raises(InvalidArgumentError) as caught:
        validate_attr_value(AttrValue(i=1), attr_def("a: bool"))
    assert str(caught.value) == (
        "AttrValue had value with type 'int' when 'bool' expected\n\t for attr 'a'"
    )


def test_lists_of_allowed_ints_are_not_implemented():
    attr = attr_def("a: int")
    attr.allowed_values.list.i.append(1)
    with pytest.raises(UnimplementedError, match="not implemented for type int"):
        validate_attr_value(AttrValue(i=1), attr)


ONE_AS_VALUE = "{ dtype: DT_FLOAT float_val: 1 }"
ONE_AS_BYTES = "{ dtype: DT_FLOAT tensor_content: '\\000\\000\\200?' }"


@pytest.mark.parametrize(
    ("type", "a", "b", "are_equal"),
    [
        ("tensor", ONE_AS_VALUE, ONE_AS_BYTES, True),
        ("tensor", ONE_AS_VALUE, "{ dtype: DT_INT32 int_val: 1 }", False),
        (
            "tensor",
            "{ dtype: DT_FLOAT float_val: nan }",
            "{ dtype: DT_FLOAT float_val: nan }",
            True,
        ),
        ("tensor", "{ dtype: DT_FLOAT float_val: 0 }", "{ dtype: DT_FLOAT float_val: -0 }", False),
        ("tensor", "{ dtype: DT_INT8 int_val: 1 }", "{ dtype: DT_QINT8 int_val: 1 }", False),
        (
            "tensor",
            "{ dtype: DT_STRING string_val: 'a' tensor_shape { dim { size: 2 } } }",
            "{ dtype: DT_STRING string_val: ['a', 'a'] tensor_shape { dim { size: 2 } } }",
            True,
        ),
        (
            "tensor",
            "{ dtype: DT_STRING string_val: ['ab', 'c'] tensor_shape { dim { size: 2 } } }",
            "{ dtype: DT_STRING string_val: ['a', 'bc'] tensor_shape { dim { size: 2 } } }",
            False,
        ),
        ("tensor", "{ dtype: DT_RESOURCE }", "{ dtype: DT_RESOURCE resource_handle_val {} }", True),
        ("tensor", "{}", "{}", False),  # no tensor, hence equal to none
        ("list(tensor)", f"[{ONE_AS_VALUE}]", f"[{ONE_AS_BYTES}]", False),  # compared as written
        (
            "func",
            "{ name: 'f' attr { key: 'a' value { i: 1 } } attr { key: 'b' value { i: 2 } } }",
            "{ name: 'f' attr { key: 'b' value { i: 2 } } attr { key: 'a' value { i: 1 } } }",
            True,
        ),
        ("func", "{ name: 'f' }", "{ name: 'g' }", False),
        ("func", "{ name: 'f' attr { key: 'a' value { i: 1 } } }", "{ name: 'f' }", False),
        (
            "func",
            f"{{ attr {{ key: 'a' value {{ tensor {ONE_AS_VALUE} }} }} }}",
            f"{{ attr {{ key: 'a' value {{ tensor {ONE_AS_BYTES} }} }} }}",
            True,
        ),
        ("list(int)", "[1, 2]", "[2, 1]", False),
        ("float", "nan", "nan", True),
    ],
)
def test_equality_and_hash(type, a, b, are_equal):
    first, second = parse_attr_value(type, a), parse_attr_value(type, b)
    assert are_attr_values_equal(first, second) is are_equal
    assert fast_are_attr_values_equal(first, second) is are_equal
    if are_equal:
        assert attr_value_hash(first) == attr_value_hash(second)


def test_values_of_different_kinds_differ():
    assert not are_attr_values_equal(AttrValue(i=0), AttrValue(b=False))
    assert not are_attr_values_equal(AttrValue(), AttrValue(list=AttrValue.ListValue()))


def test_a_small_proto_of_a_giant_tensor_is_compared_without_decoding_it():
    giant = "{ dtype: DT_INT32 int_val: 1 tensor_shape { dim { size: 10000000000 } } }"
    other = "{ dtype: DT_INT32 int_val: 2 tensor_shape { dim { size: 10000000000 } } }"
    a, b = parse_attr_value("tensor", giant), parse_attr_value("tensor", other)
    assert are_attr_values_equal(a, parse_attr_value("tensor", giant))
    assert not are_attr_values_equal(a, b)
    assert attr_value_hash(a) == attr_value_hash(parse_attr_value("tensor", giant))


def test_very_large_tensors_are_compared_as_encoded_where_speed_counts():
    content = np.ones(9_000_000, np.float32).tobytes()
    a, b = AttrValue(), AttrValue()
    for value in (a, b):
        value.tensor.dtype = 1
        value.tensor.tensor_shape.dim.add(size=9_000_000)
        value.tensor.tensor_content = content
    assert fast_are_attr_values_equal(a, b)
    b.tensor.version_number = 1
    assert not fast_are_attr_values_equal(a, b)
    assert are_attr_values_equal(a, b)


def test_substitute_placeholders():
    values = {"T": AttrValue(type=1), "N": AttrValue(i=3)}
    func = NameAttrList(name="f")
    func.attr["a"].placeholder = "T"
    func.attr["b"].list.func.add(name="g").attr["c"].placeholder = "N"
    value = AttrValue(func=func)
    result = substitute_placeholders(value, values.get)
    assert result is not None
    assert result.func.attr["a"] == AttrValue(type=1)
    assert result.func.attr["b"].list.func[0].attr["c"] == AttrValue(i=3)
    assert value.func.attr["a"].placeholder == "T"
    assert substitute_placeholders(AttrValue(placeholder="N"), values.get) == AttrValue(i=3)
    assert substitute_placeholders(value, {"T": AttrValue(type=1)}.get) is None
    assert substitute_placeholders(AttrValue(), values.get) is None
    assert substitute_placeholders(AttrValue(i=1), values.get) == AttrValue(i=1)
