import pytest
from google.protobuf import text_format

from opkernel.errors import InvalidArgumentError, NotFoundError
from opkernel.opdef import (
    OpDefBuilder,
    add_defaults_to_node_def,
    attach_def,
    get_node_attr,
    in_out_types_for_node,
    input_types_for_node,
    name_ranges_for_node,
    num_outputs,
    output_types_for_node,
    strip_defaults_from_node_def,
    validate_external_node_def_syntax,
    validate_node_def,
)
from opkernel.proto import NodeDef, OpDef
from opkernel.types import DataType, bool_, float32, int32, string


def op(*calls, name="Op"):
    """An OpDef from specs `input a: T`, `output b: T`, `attr T: type`."""
    builder = OpDefBuilder(name)
    for call in calls:
        method, spec = call.split(" ", 1)
        getattr(builder, method)(spec)
    return builder.finalize().op_def


def node(text, **attrs):
    result = text_format.Parse("name: 'n' op: 'Op' " + text, NodeDef())
    for name, value in attrs.items():
        text_format.Parse(value, result.attr[name])
    return result


IN = op("input i: T", "attr T: {float, int32}")
SAME = op("input i: N * T", "attr N: int >= 2", "attr T: {float, int32}")
ANY = op("input i: L", "attr L: list(type) >= 1")
SUMMARY = "Op<name=Op; signature=i:T -> ; attr=T:type,allowed=[DT_FLOAT, DT_INT32]>"


# -- types and ranges -----------------------------------------------------------------------------

MIXED = op(
    "input a: float",
    "input b: N * T",
    "input c: L",
    "input d: Ref(T)",
    "output e: N * string",
    "output f: Ref(N * T)",
    "output g: T",
    "attr N: int >= 0",
    "attr T: type",
    "attr L: list(type) >= 0",
)


def mixed(n, types):
    listed = ", ".join(types)
    return node("", N=f"i: {n}", T="type: DT_INT32", L=f"list {{ type: [{listed}] }}")


def test_types_of_inputs_and_outputs():
    inputs, outputs = in_out_types_for_node(mixed(2, ["DT_BOOL", "DT_FLOAT"]), MIXED)
    assert inputs == [float32, int32, int32, bool_, float32, int32.ref]
    assert outputs == [string, string, int32.ref, int32.ref, int32]
    assert all(isinstance(dtype, DataType) for dtype in inputs + outputs)


def test_types_of_one_side():
    one = mixed(1, [])
    assert input_types_for_node(one, MIXED) == [float32, int32, int32.ref]
    assert output_types_for_node(one, MIXED) == [string, int32.ref, int32]
    assert num_outputs(one, MIXED) == 3


def test_ranges_of_names():
    inputs, outputs = name_ranges_for_node(mixed(2, ["DT_BOOL"]), MIXED)
    assert inputs == {"a": (0, 1), "b": (1, 3), "c": (3, 4), "d": (4, 5)}
    assert outputs == {"e": (0, 2), "f": (2, 4), "g": (4, 5)}
    inputs, outputs = name_ranges_for_node(mixed(0, []), MIXED)
    assert inputs == {"a": (0, 1), "b": (1, 1), "c": (1, 1), "d": (1, 2)}
    assert outputs == {"e": (0, 0), "f": (0, 0), "g": (0, 1)}


@pytest.mark.parametrize(
    ("attrs", "error", "message"),
    [
        ({"T": "type: DT_FLOAT"}, NotFoundError, "No attr named 'N' in NodeDef:"),
        ({"N": "i: 2"}, NotFoundError, "No attr named 'T' in NodeDef:\n\t [[{{node n}}]]"),
        ({"N": "f: 2", "T": "type: 1"}, InvalidArgumentError, "'float' when 'int' expected"),
        ({"N": "i: -2", "T": "type: 1"}, InvalidArgumentError, "Value for number_attr() -2 < 0"),
        (
            {"N": "i: 2147483648", "T": "type: 1"},
            InvalidArgumentError,
            "Number of outputs is too big: 2147483648",
        ),
        # TensorFlow would make a list of as many types.
        ({"N": "i: 2147483647", "T": "type: 1"}, InvalidArgumentError, "too big: 2147483647"),
    ],
)
def test_types_that_cannot_be_told(attrs, error, message):
    with pytest.raises(error) as caught:
        in_out_types_for_node(node("", **attrs), SAME)
    assert message in str(caught.value)


def test_a_list_has_a_million_tensors_at_most():
    most = 2**20
    assert len(input_types_for_node(node("", N=f"i: {most}", T="type: DT_FLOAT"), SAME)) == most
    with pytest.raises(InvalidArgumentError, match=f"too big: {most + 1}"):
        input_types_for_node(node("", N=f"i: {most + 1}", T="type: DT_FLOAT"), SAME)


def test_ranges_that_cannot_be_told():
    with pytest.raises(InvalidArgumentError) as caught:
        name_ranges_for_node(node("", N="i: 4294967296"), SAME)
    assert str(caught.value) == "Attr N has value 4294967296 out of range for an int32"
    with pytest.raises(NotFoundError, match="'N'"):
        name_ranges_for_node(node(""), SAME)


def test_an_argument_without_type():
    broken = OpDef(name="Op", input_arg=[OpDef.ArgDef(name="a")])
    with pytest.raises(InvalidArgumentError, match='No type fields in name: "a"'):
        in_out_types_for_node(node(""), broken)
    with pytest.raises(InvalidArgumentError, match="Argument 'a' incorrectly specified"):
        name_ranges_for_node(node(""), broken)
    repeated = OpDef(name="Op", input_arg=[OpDef.ArgDef(name="a", number_attr="N")])
    with pytest.raises(InvalidArgumentError, match="Missing type or type_attr field in name"):
        in_out_types_for_node(node("", N="i: 1"), repeated)


def test_a_reference_to_a_reference():
    with pytest.raises(InvalidArgumentError, match="Requested reference to a reference type"):
        in_out_types_for_node(
            node("", T="type: DT_FLOAT_REF"), op("input a: Ref(T)", "attr T: type")
        )


def test_get_node_attr():
    one = node("", N="i: 3", L="list { type: [DT_FLOAT] }")
    assert get_node_attr(one, "N", "int") == 3
    assert get_node_attr(one, "L", "list(type)") == [float32]
    with pytest.raises(NotFoundError) as caught:
        get_node_attr(one, "_internal", "int")
    assert str(caught.value) == "No attr named '_internal' in NodeDef:"
    assert set(one.attr) == {"N", "L"}


# -- validation -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("op_def", "text", "attrs"),
    [
        (IN, "input: 'a'", {"T": "type: DT_FLOAT"}),
        (IN, "input: ['a:1', '^b', '^c']", {"T": "type: DT_INT32"}),
        (IN, "input: 'a'", {"T": "type: DT_INT32", "_x": "s: 'free'", "Undeclared": "i: 1"}),
        (SAME, "input: ['a', 'b']", {"N": "i: 2", "T": "type: DT_FLOAT"}),
        (ANY, "input: ['a', 'b']", {"L": "list { type: [DT_BOOL, DT_INT32] }"}),
        (IN, "input: 'a'", {"T": "placeholder: 'T'"}),
    ],
)
def test_valid_nodes(op_def, text, attrs):
    validate_node_def(node(text, **attrs), op_def)


@pytest.mark.parametrize(
    ("op_def", "text", "attrs", "message"),
    [
        (
            IN,
            "input: 'a'",
            {},
            f"NodeDef missing attr 'T' from {SUMMARY}; NodeDef: {{{{node n}}}}",
        ),
        (SAME, "", {}, "NodeDef missing attrs 'N', 'T' from "),
        (
            IN,
            "",
            {"T": "type: DT_FLOAT"},
            (
                f"NodeDef expected inputs 'float' do not match 0 inputs specified; {SUMMARY}; "
                "NodeDef: {{node n}}"
            ),
        ),
        (
            SAME,
            "input: ['a', 'b', 'c']",
            {"N": "i: 2", "T": "type: DT_FLOAT"},
            "NodeDef expected inputs 'float, float' do not match 3 inputs specified",
        ),
        (
            IN,
            "input: 'a'",
            {"T": "s: 'x'"},
            (
                "AttrValue had value with type 'string' when 'type' expected\n\t for attr 'T'\n\t; "
                f"NodeDef: {{{{node n}}}}; {SUMMARY}"
            ),
        ),
        (
            IN,
            "input: 'a'",
            {"T": "type: DT_BOOL"},
            "Value for attr 'T' of bool is not in the list of allowed values: float, int32\n\t; ",
        ),
        (SAME, "input: 'a'", {"N": "i: 1", "T": "type: 1"}, "Value for attr 'N' of 1 must be at"),
        (ANY, "", {"L": "list {}"}, "Length for attr 'L' of 0 must be at least minimum 1"),
        (
            IN,
            "input: ['^b', 'a']",
            {"T": "type: 1"},
            "Non-control input 'a' after control input in NodeDef: {{node n}}",
        ),
        (
            IN,
            "input: ['a', '^b:0']",
            {"T": "type: 1"},
            "Control input '^b:0' must not have ':' in NodeDef: {{node n}}",
        ),
        (
            op(name="Other"),
            "",
            {},
            "NodeDef op 'Op' does not match Op<name=Other; signature= -> >; NodeDef: {{node n}}",
        ),
    ],
)
def test_invalid_nodes(op_def, text, attrs, message):
    with pytest.raises(InvalidArgumentError) as caught:
        validate_node_def(node(text, **attrs), op_def)
    assert str(caught.value).startswith(message)


def test_all_wrong_attrs_are_named():
    with pytest.raises(InvalidArgumentError) as caught:
        validate_node_def(node("", N="i: 1", T="type: DT_BOOL"), SAME)
    assert "Value for attr 'N' of 1 must" in str(caught.value)
    assert "Value for attr 'T' of bool is not" in str(caught.value)


def test_an_op_def_with_two_attrs_of_one_name():
    twice = OpDef(name="Op", attr=[OpDef.AttrDef(name="a", type="int")] * 2)
    with pytest.raises(InvalidArgumentError, match="OpDef has duplicate attr name 'a'"):
        validate_node_def(node(""), twice)


@pytest.mark.parametrize("name", ["n", "0", ".a", "a.b", "n-_/.", "scope/n_1", "a>b", "A>B>C"])
@pytest.mark.parametrize("inputs", [[], ["a", "a:0", "a/b:12", "^b", "^c>d"], ["a>b:3"]])
def test_spelling(name, inputs):
    validate_external_node_def_syntax(NodeDef(name=name, input=inputs))


@pytest.mark.parametrize("name", ["", "_n", "n:0", "n\\", "/a", "-n", "^n", "n ", "n\n", "a>", "é"])
def test_misspelled_names(name):
    with pytest.raises(InvalidArgumentError) as caught:
        validate_external_node_def_syntax(NodeDef(name=name))
    assert str(caught.value) == f"Illegal op name '{name}'\n\t [[{{{{node {name}}}}}]]"


@pytest.mark.parametrize("name", ["", "_a", "a:b", "a:", "a:00", "a:01", "^b:0", "^", "a b", "^_b"])
def test_misspelled_inputs(name):
    with pytest.raises(InvalidArgumentError) as caught:
        validate_external_node_def_syntax(NodeDef(name="n", input=[name]))
    assert str(caught.value) == f"Illegal op input name '{name}'\n\t [[{{{{node n}}}}]]"


def test_control_inputs_come_last():
    with pytest.raises(
        InvalidArgumentError, match="All control inputs must follow all data inputs"
    ):
        validate_external_node_def_syntax(NodeDef(name="n", input=["^a", "b"]))


def test_attach_def():
    error = attach_def(NotFoundError("lost"), NodeDef(name="n"))
    assert isinstance(error, NotFoundError)
    assert str(error) == "lost\n\t [[{{node n}}]]"


# -- defaults -------------------------------------------------------------------------------------


def test_defaults_are_added_and_stripped():
    op_def = op("attr a: int = 3", "attr b: string = 'x'", "attr c: int")
    one = node("", b="s: 'y'")
    add_defaults_to_node_def(one, op_def)
    assert {name: value.WhichOneof("value") for name, value in one.attr.items()} == {
        "a": "i",
        "b": "s",
    }
    assert (one.attr["a"].i, one.attr["b"].s) == (3, b"y")
    strip_defaults_from_node_def(one, op_def)
    assert one == node("", b="s: 'y'")


def test_a_default_tensor_is_stripped_however_it_is_encoded():
    op_def = op("attr t: tensor = { dtype: DT_INT32 int_val: 1 }")
    content = "tensor { dtype: DT_INT32 tensor_shape {} tensor_content: '\\001\\000\\000\\000' }"
    one = node("", t=content)
    strip_defaults_from_node_def(one, op_def)
    assert not one.attr
