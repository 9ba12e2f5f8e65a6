import pytest
from google.protobuf import text_format

from opkernel.errors import InvalidArgumentError, OpError, UnimplementedError
from opkernel.opdef import OpDefBuilder, validate_op_def
from opkernel.proto import OpDef


@pytest.mark.parametrize("name", ["Foo", "F", "Foo_9", "Foo>Bar>Baz", "_anything goes", "_"])
def test_names(name):
    validate_op_def(OpDef(name=name))


@pytest.mark.parametrize(
    "name",
    ["", "foo", "9Foo", "Foo Bar", "Foo>bar", "Foo>", ">Foo", "Foo>>Bar", "Foo>_B", "É", "F\n"],
)
def test_names_that_are_no_camel_case(name):
    with pytest.raises(InvalidArgumentError) as caught:
        validate_op_def(OpDef(name=name))
    assert str(caught.value).startswith(f"Invalid name: {name} (Did you use CamelCase?); in OpDef:")


def test_an_op_with_everything():
    builder = (
        OpDefBuilder("Everything").attr("N: int >= 0 = 2").attr("T: {float, int32} = DT_FLOAT")
    )
    builder.attr("L: list(type) >= 1 = [DT_BOOL]").attr("s: {'a'} = 'a'").attr("f: func")
    builder.attr("t: list(tensor) = []").attr("i: list(int) >= 1 = [3]")
    builder.input("a: N * T").input("b: L").input("c: Ref(T)").output("d: float")
    validate_op_def(builder.finalize().op_def)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("input_arg { name: 'a' type: 1 } output_arg { name: 'a' type: 1 }", "Duplicate name: a"),
        ("attr { name: 'a' type: 'int' } input_arg { name: 'a' type: 1 }", "Duplicate name: a"),
        ("attr { name: 'half' type: 'int' }", "Attr can't have name half that matches a data type"),
        ("attr { name: 'a' type: 'illegal' }", "Unrecognized type 'illegal' in attr 'a'"),
        ("attr { name: 'a' type: 'list(illegal)' }", "Unrecognized type 'illegal)' in attr 'a'"),
        ("attr { name: 'a' type: 'int x' }", "Extra ' x' at the end of attr a's type int x"),
        ("attr { name: 'a' type: 'list(int) x' }", "Extra ' x' at the end of attr a's type"),
        ("attr { name: 'a' type: 'list(int x)' }", "'list(' is missing ')' in attr a's type"),
        (
            "attr { name: 'a' type: 'float' has_minimum: true }",
            "Attr 'a' has minimum for unsupported type float",
        ),
        (
            "attr { name: 'a' type: 'list(int)' has_minimum: true minimum: -5 }",
            "Attr 'a' with list type must have a non-negative minimum, not -5",
        ),
        (
            "attr { name: 'a' type: 'int' minimum: 3 }",
            "Attr 'a' with has_minimum = false but minimum 3 not equal to default of 0",
        ),
        ("input_arg { name: 'a' }", "Missing type for input 'a'"),
        ("output_arg { name: 'a' number_attr: 'N' }", "Missing type for output 'a'"),
        (
            "attr { name: 'T' type: 'type' } input_arg { name: 'a' type: 1 type_attr: 'T' }",
            "Exactly one of type, type_attr, type_list_attr must be set for input 'a'",
        ),
        ("input_arg { name: 'a' type_attr: 'x' }", "No attr with name 'x' for input 'a'"),
        (
            "attr { name: 'x' type: 'int' } input_arg { name: 'a' type_attr: 'x' }",
            "Attr 'x' used as type_attr for input 'a' has type int != type",
        ),
        (
            "attr { name: 'x' type: 'type' } input_arg { name: 'a' type_list_attr: 'x' }",
            "Attr 'x' used as type_list_attr for input 'a' has type type != list(type)",
        ),
        (
            "attr { name: 'n' type: 'string' } input_arg { name: 'a' type: 1 number_attr: 'n' }",
            "Attr 'n' used as length for input 'a' has type string != int",
        ),
        (
            "attr { name: 'n' type: 'int' } input_arg { name: 'a' type: 1 number_attr: 'n' }",
            "Attr 'n' used as length for input 'a' must have minimum",
        ),
        (
            (
                "attr { name: 'n' type: 'int' has_minimum: true minimum: -1 }"
                " input_arg { name: 'a' type: 1 number_attr: 'n' }"
            ),
            "Attr 'n' used as length for input 'a' must have minimum >= 0",
        ),
        (
            (
                "attr { name: 'n' type: 'int' has_minimum: true } attr { name: 'L' type: 'list(type)' }"
                " input_arg { name: 'a' type_list_attr: 'L' number_attr: 'n' }"
            ),
            "Can't have both number_attr and type_list_attr for input 'a'",
        ),
        (
            (
                "attr { name: 'n' type: 'int' has_minimum: true } attr { name: 'T' type: 'type' }"
                " input_arg { name: 'a' type: 1 type_attr: 'T' number_attr: 'n' }"
            ),
            "Exactly one of type, type_attr must be set for input 'a'",
        ),
        (
            "output_arg { name: 'a' type: DT_INT32_REF }",
            "Illegal use of ref type 'int32_ref'. Use 'Ref(type)' instead for output 'a'",
        ),
    ],
)
def test_rules(text, message):
    op_def = text_format.Parse(f"name: 'Op' {text}", OpDef())
    with pytest.raises(InvalidArgumentError) as caught:
        validate_op_def(op_def)
    assert str(caught.value).startswith(message)
    assert '; in OpDef: name: "Op"' in str(caught.value)


@pytest.mark.parametrize(
    ("text", "error", "message"),
    [
        (
            "type: 'int' default_value { s: 'x' }",
            InvalidArgumentError,
            "AttrValue had value with type 'string' when 'int' expected\n\t for attr 'a'\n\t in Op 'Op'",
        ),
        (
            "type: 'int' default_value { }",
            InvalidArgumentError,
            "AttrValue missing value with expected type 'int'\n\t for attr 'a'\n\t in Op 'Op'",
        ),
        (
            "type: 'int' has_minimum: true minimum: 7 default_value { i: 2 }",
            InvalidArgumentError,
            "Value for attr 'a' of 2 must be at least minimum 7\n\t in Op 'Op'",
        ),
        (
            "type: 'string' allowed_values { list { i: 1 } }",
            InvalidArgumentError,
            (
                "AttrValue had value with type 'list(int)' when 'list(string)' expected"
                "\n\t for attr 'a' in Op 'Op'"
            ),
        ),
        (
            "type: 'int' default_value { i: 1 } allowed_values { list { i: 1 } }",
            UnimplementedError,
            "Support for allowed_values not implemented for type int\n\t in Op 'Op'",
        ),
    ],
)
def test_values_of_attrs(text, error, message):
    op_def = text_format.Parse(f"name: 'Op' attr {{ name: 'a' {text} }}", OpDef())
    with pytest.raises(OpError) as caught:
        validate_op_def(op_def)
    assert type(caught.value) is error
    assert str(caught.value) == message
