import pytest
from hypothesis import given
from hypothesis import strategies as st

from opkernel.opdef import parse_attr_value
from opkernel.opdef.core.spec import SpecError, parse_arg_spec, parse_attr_spec
from opkernel.opdef.text.spec_text import arg_spec, attr_spec, default_text
from opkernel.proto import AttrValue, NameAttrList, OpDef, TensorShapeProto
from opkernel.types import NUMBER_TYPES, QUANTIZED_TYPES, REAL_NUMBER_TYPES, DataType

AttrDef, ArgDef = OpDef.AttrDef, OpDef.ArgDef


def attr_of(spec, **options):
    attr = AttrDef()
    parse_attr_spec(spec, attr, **options)
    return attr


def one_of(**values):
    return AttrValue(list=AttrValue.ListValue(**values))


@pytest.mark.parametrize(
    ("spec", "attr"),
    [
        ("a:string", AttrDef(name="a", type="string")),
        ("aB_3\t: shape ", AttrDef(name="aB_3", type="shape")),
        ("t: list ( type )", AttrDef(name="t", type="list(type)")),
        ("i: int >= -5", AttrDef(name="i", type="int", has_minimum=True, minimum=-5)),
        ("b: list(bool) >= 4", AttrDef(name="b", type="list(bool)", has_minimum=True, minimum=4)),
        ("T: {float,}", AttrDef(name="T", type="type", allowed_values=one_of(type=[1]))),
        (
            "T: { int32 , string }",
            AttrDef(name="T", type="type", allowed_values=one_of(type=[3, 7])),
        ),
        (
            's: {\'a\', "b\\""}',
            AttrDef(name="s", type="string", allowed_values=one_of(s=[b"a", b'b"'])),
        ),
        (
            "l: list({'x'}) >= 1 = ['x']",
            AttrDef(
                name="l",
                type="list(string)",
                has_minimum=True,
                minimum=1,
                allowed_values=one_of(s=[b"x"]),
                default_value=one_of(s=[b"x"]),
            ),
        ),
        ("i: int=3", AttrDef(name="i", type="int", default_value=AttrValue(i=3))),
        ("b:bool = true", AttrDef(name="b", type="bool", default_value=AttrValue(b=True))),
        ("T: type = DT_INT32", AttrDef(name="T", type="type", default_value=AttrValue(type=3))),
    ],
)
def test_attrs(spec, attr):
    assert attr_of(spec) == attr


@pytest.mark.parametrize(
    ("spec", "types"),
    [
        ("T: numbertype", NUMBER_TYPES),
        ("T: numerictype", NUMBER_TYPES),
        ("T: realnumbertype", REAL_NUMBER_TYPES),
        ("T: list(quantizedtype)", QUANTIZED_TYPES),
        ("T: {quantizedtype, variant}", (*QUANTIZED_TYPES, DataType.DT_VARIANT)),
        ("T: {realnumerictype}", REAL_NUMBER_TYPES),
    ],
)
def test_groups_of_types(spec, types):
    assert tuple(attr_of(spec).allowed_values.list.type) == types


def test_any_is_admitted_on_demand():
    assert attr_of("a: any", allow_any=True).type == "any"
    with pytest.raises(SpecError):
        attr_of("a: any")


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ("_: int", "Trouble parsing '<name>:'"),
        ("int", "Trouble parsing '<name>:'"),
        ("a:", "Trouble parsing type string at ''"),
        ("a: invalid", "Trouble parsing type string at 'invalid'"),
        ("a: realnumerictype", "Trouble parsing type string at 'realnumerictype'"),
        ("a: integer", "Extra 'eger' unparsed at the end"),
        ("a: {}", "Trouble parsing type string at '}'"),
        ("a: {invalid}", "Unrecognized type string 'invalid'"),
        ("a: {float_ref}", "Expected , or } after types in list, not: '_ref}'"),
        ("a: {float,,string}", "Trouble parsing type string at ',string}'"),
        ("a: {'x' 'y'}", "Expected , or } after strings in list, not: ''y'}'"),
        ("a: {'x', float}", "Trouble parsing allowed string at 'float}'"),
        ("a: {'\\q'}", 'Trouble unescaping "\\q", got error: Unknown escape sequence: \\q'),
        ("a: list(int", "Expected ) to close 'list(', not: ''"),
        ("a: int >= x", "Could not parse integer lower limit after '>=', found ' x' instead"),
        (
            "a: int >= 9223372036854775808",
            "Could not parse integer lower limit after '>=', found ' 9223372036854775808' instead",
        ),
        ("a: float >= 1", "Extra '>= 1' unparsed at the end"),
        ("a: int = 'x'", "Could not parse default value ''x''"),
        ("a: list(int) = 3", "Could not parse default value '3'"),
    ],
)
def test_attrs_that_break_the_grammar(spec, message):
    with pytest.raises(SpecError) as caught:
        attr_of(spec)
    assert str(caught.value) == message


OP = OpDef(
    attr=[
        AttrDef(name="T", type="type"),
        AttrDef(name="N", type="int"),
        AttrDef(name="L", type="list(type)"),
    ]
)


@pytest.mark.parametrize(
    ("spec", "arg"),
    [
        ("a: int32 ", ArgDef(name="a", type=3)),
        ("a : T", ArgDef(name="a", type_attr="T")),
        ("a:L", ArgDef(name="a", type_list_attr="L")),
        ("a: N*float", ArgDef(name="a", number_attr="N", type=1)),
        ("a: N * T", ArgDef(name="a", number_attr="N", type_attr="T")),
        ("a: Ref( T )", ArgDef(name="a", type_attr="T", is_ref=True)),
        ("a: Ref(N * bool)", ArgDef(name="a", number_attr="N", type=10, is_ref=True)),
    ],
)
def test_args(spec, arg):
    found, op_def = ArgDef(), OpDef.FromString(OP.SerializeToString())
    parse_arg_spec(spec, found, op_def)
    assert found == arg


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ("CAPS: int32", "Trouble parsing 'name:'"),
        ("a: 9", "Trouble parsing either a type or an attr name at '9'"),
        ("a: M", "Reference to unknown attr 'M'"),
        ("a: N", "Reference to attr 'N' with type int that isn't type or list(type)"),
        ("a: int32 extra", "Extra 'extra' unparsed at the end"),
        ("a: N * _", "Reference to attr 'N' with type int that isn't type or list(type)"),
        ("a: Ref(int32", "Did not find closing ')' for 'Ref(', instead found: ''"),
        ("a: Ref", "Reference to unknown attr 'Ref'"),
    ],
)
def test_args_that_break_the_grammar(spec, message):
    with pytest.raises(SpecError) as caught:
        parse_arg_spec(spec, ArgDef(), OpDef.FromString(OP.SerializeToString()))
    assert str(caught.value) == message


def test_the_attr_that_is_a_length_gets_a_minimum_of_1_unless_it_has_one():
    op_def = OpDef.FromString(OP.SerializeToString())
    op_def.attr[2].has_minimum = True
    parse_arg_spec("a: N * T", ArgDef(), op_def)
    parse_arg_spec("b: L", ArgDef(), op_def)
    assert [(attr.has_minimum, attr.minimum) for attr in op_def.attr] == [
        (False, 0),
        (True, 1),
        (True, 0),
    ]


# -- and back -----------------------------------------------------------------------------------

names = st.from_regex(r"[a-zA-Z][a-zA-Z0-9_]{0,5}", fullmatch=True)
dtypes = st.sampled_from([dtype for dtype in DataType if dtype and not dtype.is_ref])
shapes = st.builds(
    TensorShapeProto,
    dim=st.lists(st.builds(TensorShapeProto.Dim, size=st.integers(-1, 9)), max_size=3),
)
funcs = st.builds(NameAttrList, name=st.text("abc<>{}\"'\n", max_size=5))
elements = {
    "s": st.binary(max_size=6),
    "i": st.integers(-(2**63), 2**63 - 1),
    "f": st.floats(width=32, allow_nan=False),
    "b": st.booleans(),
    "type": dtypes,
    "shape": shapes,
    "func": funcs,
}
kinds = {"s": "string", "i": "int", "f": "float", "b": "bool"}


@st.composite
def attrs(draw):
    field = draw(st.sampled_from(sorted(elements)))
    kind = kinds.get(field, field)
    is_list = draw(st.booleans())
    attr = AttrDef(name=draw(names), type=f"list({kind})" if is_list else kind)
    if field in ("s", "type") and draw(st.booleans()):
        # The language has no word for types with an underscore in their names: float8_e5m2.
        words = dtypes.filter(lambda d: "_" not in d.string) if field == "type" else elements["s"]
        choices = draw(st.lists(words, min_size=1, max_size=3))
        attr.allowed_values.CopyFrom(one_of(**{field: choices}))
    if (is_list or field == "i") and draw(st.booleans()):
        attr.has_minimum = True
        attr.minimum = draw(st.integers(-(2**63), 2**63 - 1))
    if draw(st.booleans()):
        value = one_of(**{field: draw(st.lists(elements[field], max_size=3))})
        if not is_list:
            value = AttrValue(**{field: draw(elements[field])})
        attr.default_value.CopyFrom(value)
    return attr


@given(attrs())
def test_an_attr_is_read_back_from_its_spec(attr):
    assert attr_of(attr_spec(attr)) == attr


@st.composite
def args(draw):
    arg = ArgDef(name=draw(names).lower(), is_ref=draw(st.booleans()))
    kind = draw(st.sampled_from(["type", "type_attr", "type_list_attr"]))
    value = {"type": draw(dtypes), "type_attr": "T", "type_list_attr": "L"}[kind]
    setattr(arg, kind, value)
    if kind != "type_list_attr" and draw(st.booleans()):
        arg.number_attr = "N"
    return arg


@given(args())
def test_an_arg_is_read_back_from_its_spec(arg):
    found = ArgDef()
    parse_arg_spec(arg_spec(arg), found, OpDef.FromString(OP.SerializeToString()))
    assert found == arg


def test_specs_are_spelled_as_people_do():
    assert attr_spec(attr_of("T:{float,int32}=DT_FLOAT")) == "T: {float, int32} = DT_FLOAT"
    assert attr_spec(attr_of("l:list({'a'})>=1")) == 'l: list({"a"}) >= 1'
    assert attr_spec(attr_of("s:shape={dim{size:2}}")) == "s: shape = { dim { size: 2 } }"
    assert attr_spec(attr_of("l:list(type)=[DT_FLOAT,DT_INT32]")) == (
        "l: list(type) = [DT_FLOAT, DT_INT32]"
    )
    assert arg_spec(ArgDef(name="a", number_attr="N", type=1, is_ref=True)) == "a: Ref(N * float)"


def test_long_defaults_are_spelled_in_full():
    value = parse_attr_value("list(int)", str(list(range(50))))
    assert parse_attr_value("list(int)", default_text(value)) == value
    assert default_text(AttrValue()) == ""
