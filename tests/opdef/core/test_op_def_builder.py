import pytest

from opkernel.errors import InvalidArgumentError
from opkernel.opdef import OpDefBuilder, no_outputs, unknown_shape
from opkernel.proto import OpDef


def op_def_of(builder):
    return builder.finalize().op_def


def test_order_is_kept_and_attrs_may_follow_what_refers_to_them():
    builder = OpDefBuilder("Concat").input("dim: int32").input("values: N * T")
    builder.output("output: T").attr("N: int >= 2").attr("T: type")
    op_def = op_def_of(builder)
    assert op_def == OpDef(
        name="Concat",
        input_arg=[
            OpDef.ArgDef(name="dim", type=3),
            OpDef.ArgDef(name="values", type_attr="T", number_attr="N"),
        ],
        output_arg=[OpDef.ArgDef(name="output", type_attr="T")],
        attr=[
            OpDef.AttrDef(name="N", type="int", has_minimum=True, minimum=2),
            OpDef.AttrDef(name="T", type="type"),
        ],
    )


def test_flags_set_themselves_alone():
    for method, flag in (
        ("set_is_stateful", "is_stateful"),
        ("set_do_not_optimize", "is_stateful"),
        ("set_is_commutative", "is_commutative"),
        ("set_is_aggregate", "is_aggregate"),
        ("set_allows_uninitialized_input", "allows_uninitialized_input"),
        ("set_is_distributed_communication", "is_distributed_communication"),
    ):
        builder = OpDefBuilder("A")
        assert getattr(builder, method)() is builder
        expected = OpDef(name="A")
        setattr(expected, flag, True)
        assert op_def_of(builder) == expected


def test_functions_are_held_beside_the_op_def():
    def constructor(op_def):
        op_def.output_arg[0].experimental_full_type.type_id = 1

    def forward(input_types, infer_function_rets):
        return input_types[0]

    builder = OpDefBuilder("A").output("a: int32").set_shape_fn(unknown_shape)
    data = builder.set_type_constructor(constructor).set_forward_type_fn(forward).finalize()
    assert data.shape_inference_fn is unknown_shape
    assert data.type_constructor is constructor
    assert data.forward_type_fn is forward
    assert data.op_def.output_arg[0].experimental_full_type.type_id == 1
    assert not data.is_function_op


def test_a_resource_makes_the_op_stateful_but_a_type_attr_does_not():
    assert op_def_of(OpDefBuilder("A").input("a: resource")).is_stateful
    assert op_def_of(OpDefBuilder("A").output("a: N * resource").attr("N: int")).is_stateful
    generic = OpDefBuilder("A").input("a: T").attr("T: {resource} = DT_RESOURCE")
    assert not op_def_of(generic).is_stateful


def test_control_outputs():
    assert list(op_def_of(OpDefBuilder("A").control_output("c1")).control_output) == ["c1"]
    with pytest.raises(InvalidArgumentError, match="control output name '9'"):
        OpDefBuilder("A").control_output("9").finalize()


def test_deprecation():
    op_def = op_def_of(OpDefBuilder("A").deprecated(7, "Use B"))
    assert (op_def.deprecation.version, op_def.deprecation.explanation) == (7, "Use B")


def test_all_errors_are_listed_calls_first():
    builder = OpDefBuilder("A").input("x: T").attr("T:").doc("One.").doc("Two.")
    builder.deprecated(1, "a").deprecated(2, "b").set_shape_fn(no_outputs).set_shape_fn(no_outputs)
    builder.output("9: int32")
    with pytest.raises(InvalidArgumentError) as caught:
        builder.finalize()
    sentences = [line.partition(" (at ")[0] for line in str(caught.value).split("\n")]
    assert sentences == [
        "Extra call to Doc() for Op A",
        "Deprecated called twice for Op A",
        "SetShapeFn called twice for Op A",
        "Trouble parsing type string at '' from Attr(\"T:\") for Op A",
        "Reference to attr 'T' with type  that isn't type or list(type) from Input(\"x: T\") for Op A",
        "Trouble parsing 'name:' from Output(\"9: int32\") for Op A",
    ]


def test_finalize_may_be_repeated_and_leaves_the_builder_alone():
    builder = OpDefBuilder("A").attr("N: int").input("a: N * float")
    assert op_def_of(builder) == op_def_of(builder)
    assert len(op_def_of(builder.attr("M: int")).attr) == 2


DOC = """
Joins tensors.

A longer text
  with an indented line.

values: What is joined;
  each has the type `T`.

    Deeper.
output:= The result.

T: The type.

"""


def test_doc_is_split_into_its_parts():
    builder = OpDefBuilder("A").doc(DOC).attr("T: type").input("values: T").output("output: T")
    op_def = op_def_of(builder)
    assert op_def.summary == "Joins tensors."
    assert op_def.description == "A longer text\n  with an indented line."
    assert op_def.input_arg[0].description == (
        "What is joined;\neach has the type `T`.\n\n  Deeper."
    )
    assert op_def.output_arg[0].description == "= The result."
    assert op_def.attr[0].description == "The type."


@pytest.mark.parametrize(
    ("text", "summary", "description"),
    [
        ("", "", ""),
        ("\n \n", "", ""),
        ("One line.", "One line.", ""),
        ("One line.\n\n\nThen more.\n\n", "One line.", "Then more."),
        ("x: is the summary here", "x: is the summary here", ""),
    ],
)
def test_doc_without_named_parts(text, summary, description):
    op_def = op_def_of(OpDefBuilder("A").doc(text))
    assert (op_def.summary, op_def.description) == (summary, description)


def test_doc_of_something_that_is_not_there():
    with pytest.raises(InvalidArgumentError) as caught:
        OpDefBuilder("A").input("x: int32").doc("S\nnothing: is called that").finalize()
    assert str(caught.value) == (
        "No matching input/output/attr for name 'nothing' from Doc() for Op A; it has x"
    )


@pytest.mark.parametrize(
    ("method", "spec", "place"),
    [
        ("attr", "T {float}", "at character 2: a colon belongs after the name"),
        ("attr", "2T: int", "at character 1: the name of an attr begins with a letter"),
        ("attr", "T: {float, flot}", "at character 12: types are float, double"),
        ("attr", "T: {float", "at the end"),
        ("attr", "m: {same}", "at character 5: .*; strings are quoted"),
        ("attr", "m: {'a', b}", "at character 10: strings are quoted"),
        ("attr", "k: int = two", "at character 10: a default of type int is written 3"),
        ("attr", "l: list(int) = 3", r"at character 16: a default .* is written \[3\]"),
        ("attr", "f: float >= 1", "at character 10: an int or a list alone has a minimum"),
        ("attr", "k: int >= x", "at character 10"),
        ("attr", "k: number", "at character 4: an attr is a string, int"),
        ("input", "myX: float", "at character 3: names of inputs and outputs are lower case"),
        ("input", "x", "at the end: a colon belongs after the name"),
        ("input", "x: N * Q", "at character 8: .*; attrs are N"),
        ("input", "x: N", "at character 4"),
        ("output", "y: float and", "at character 10"),
    ],
)
def test_an_error_of_a_spec_tells_the_character_and_what_belongs_there(method, spec, place):
    builder = OpDefBuilder("A").attr("N: int")
    getattr(builder, method)(spec)
    with pytest.raises(InvalidArgumentError, match=rf"for Op A \({place}"):
        builder.finalize()
