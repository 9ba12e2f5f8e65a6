import pytest

from opkernel.errors import InvalidArgumentError
from opkernel.opdef import has_placeholder, parse_attr_value, summarize_attr_value
from opkernel.opdef.text.attr_value_text import dtype_text
from opkernel.proto import AttrValue, NameAttrList, TensorShapeProto

Dim = TensorShapeProto.Dim


def list_of(**values):
    return AttrValue(list=AttrValue.ListValue(**values))


@pytest.mark.parametrize(
    ("type", "text", "value"),
    [
        ("string", "'foo'", AttrValue(s=b"foo")),
        ("string", ' "a\\"b" ', AttrValue(s=b'a"b')),
        ("int", "-3", AttrValue(i=-3)),
        ("float", "1e400", AttrValue(f=float("inf"))),
        ("bool", "true", AttrValue(b=True)),
        ("bool", "False", AttrValue(b=False)),
        ("type", "DT_BFLOAT16", AttrValue(type=14)),
        ("shape", "{}", AttrValue(shape=TensorShapeProto())),
        (
            "shape",
            "{ dim { size: 2 } dim { size: -1 } }",
            AttrValue(shape=TensorShapeProto(dim=[Dim(size=2), Dim(size=-1)])),
        ),
        ("func", "{ name: 'f' }", AttrValue(func=NameAttrList(name="f"))),
        ("list(int)", " [ 1 , -2 ] ", list_of(i=[1, -2])),
        ("list(int)", "[ ]", list_of()),
        ("list(type)", "[DT_FLOAT, DT_INT32]", list_of(type=[1, 3])),
        ("list(string)", "['a', \"b\"]", list_of(s=[b"a", b"b"])),
        ("list(shape)", "[{}]", list_of(shape=[TensorShapeProto()])),
    ],
)
def test_parse(type, text, value):
    assert parse_attr_value(type, text) == value


@pytest.mark.parametrize(
    ("type", "text"),
    [
        ("string", "foo"),
        ("string", ""),
        ("int", "'1'"),
        ("int", "[1]"),
        ("bool", "t"),
        ("type", "float"),
        ("func", "f"),
        ("list(int)", "1"),
        ("list(int)", "[1"),
        ("list(int)", "[1,]"),
        ("list(int)", "[]]"),
        ("list(list(int))", "[[1]]"),
        ("list()", "[]"),
        ("any", "1"),
        ("", "1"),
    ],
)
def test_parse_refuses(type, text):
    with pytest.raises(InvalidArgumentError):
        parse_attr_value(type, text)


def test_a_tensor_nested_a_hundred_deep_is_refused():
    with pytest.raises(InvalidArgumentError, match="nested too deeply"):
        parse_attr_value("tensor", "{" * 100)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (AttrValue(), "<Unknown AttrValue type>"),
        (AttrValue(s=b'with "quotes" and \n'), '"with \\"quotes\\" and \\n"'),
        (AttrValue(s=b"-" * 79), '"' + "-" * 79 + '"'),
        (AttrValue(s=b"0123456789" * 8), '"0123456789...0123456789"'),
        (AttrValue(i=-1), "-1"),
        (AttrValue(f=1.5), "1.5"),
        (AttrValue(b=True), "true"),
        (AttrValue(type=103), "DT_INT32_REF"),
        (AttrValue(type=1000), ""),
        (AttrValue(shape=TensorShapeProto(dim=[Dim(size=1), Dim(size=-1)])), "[1,?]"),
        (AttrValue(shape=TensorShapeProto(unknown_rank=True)), "<unknown>"),
        (AttrValue(placeholder="T"), "$T"),
        (AttrValue(func=NameAttrList(name="f")), "f[]"),
        (list_of(), "[]"),
        (list_of(i=range(29)), "[" + ", ".join(map(str, range(29))) + "]"),
        (
            list_of(i=range(1, 31)),
            "[1, 2, 3, 4, 5, ..., 26, 27, 28, 29, 30]{attr_hash=4548725597169123031}",
        ),
        (list_of(b=[True, False]), "[true, false]"),
        (list_of(s=[b"a", b"b"]), '["a", "b"]'),
    ],
)
def test_summarize(value, text):
    assert summarize_attr_value(value) == text


def test_functions_are_summarized_with_their_attrs_sorted_and_nested():
    inner = NameAttrList(name="g")
    inner.attr["T"].placeholder = "T"
    value = AttrValue(func=NameAttrList(name="f"))
    value.func.attr["z"].i = 1
    value.func.attr["a"].list.func.append(inner)
    assert summarize_attr_value(value) == "f[a=[g[T=$T]], z=1]"
    assert has_placeholder(value)
    inner.attr["T"].type = 1
    assert not has_placeholder(AttrValue(func=inner))
    assert has_placeholder(AttrValue(placeholder="x"))


def test_the_name_of_a_number_that_is_no_type():
    assert [dtype_text(number) for number in (1, 101, 77, 1000)] == [
        "float",
        "float_ref",
        "unknown dtype enum (77)",
        "unknown dtype enum (900)_ref",
    ]
