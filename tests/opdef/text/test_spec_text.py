"""OpDefs as the C++ that registers them: TensorFlow's REGISTER_OP."""

import pytest
from tests.hostile_names import HOSTILE_TEXT

from opkernel.opdef import OpDefBuilder, global_op_registry
from opkernel.proto import OpDef


def test_each_part_has_a_line() -> None:
    builder = (
        OpDefBuilder("Test").input("x: N * T").input("r: Ref(float)").output("y: T")
        .output("l: L").control_output("done").attr("T: {float, int32} = DT_FLOAT")
        .attr("N: int >= 2").attr("L: list(type) >= 0").attr("mode: {'A', 'B'}")
        .attr("text: string = 'a\"b'").set_is_stateful().set_is_commutative()
        .deprecated(9, 'Use "Other".').doc("Left out.")
    )  # fmt: skip
    assert (
        repr(builder.finalize().op_def)
        == r"""REGISTER_OP("Test")
    .Input("x: N * T")
    .Input("r: Ref(float)")
    .Output("y: T")
    .Output("l: L")
    .ControlOutput("done")
    .Attr("T: {float, int32} = DT_FLOAT")
    .Attr("N: int >= 2")
    .Attr("L: list(type) >= 0")
    .Attr("mode: {'A', 'B'}")
    .Attr("text: string = \"a\\\"b\"")
    .SetIsCommutative()
    .SetIsStateful()
    .Deprecated(9, "Use \"Other\".")"""
    )


@pytest.mark.parametrize(
    ("flag", "line"),
    [
        ("is_aggregate", ".SetIsAggregate()"),
        ("is_commutative", ".SetIsCommutative()"),
        ("is_stateful", ".SetIsStateful()"),
        ("allows_uninitialized_input", ".SetAllowsUninitializedInput()"),
        ("is_distributed_communication", ".SetIsDistributedCommunication()"),
    ],
)
def test_flags(flag: str, line: str) -> None:
    op_def = OpDef(name="Test")
    setattr(op_def, flag, True)
    assert repr(op_def) == f'REGISTER_OP("Test")\n    {line}'


def test_strings_keep_single_quotes_where_they_can_and_escape_the_rest() -> None:
    op_def = OpDef(name="It's")
    op_def.attr.add(name="a", type="string").default_value.s = b"plain"
    op_def.attr.add(name="b", type="string").default_value.s = b"it's"
    op_def.attr.add(name="c", type="string").default_value.s = b"\n"
    assert repr(op_def).splitlines() == [
        """REGISTER_OP("It's")""",
        """    .Attr("a: string = 'plain'")""",
        r"""    .Attr("b: string = \"it\\'s\"")""",
        r"""    .Attr("c: string = \"\\n\"")""",
    ]


def test_an_op_of_tensorflow() -> None:
    op_def = global_op_registry().look_up_op_def("MaxPool")
    lines = repr(op_def).splitlines()
    assert lines[:3] == [
        'REGISTER_OP("MaxPool")',
        '    .Input("input: T")',
        '    .Output("output: T")',
    ]
    assert lines[3].startswith('    .Attr("T: {half, bfloat16, float, ')
    assert lines[3].endswith(', qint8} = DT_FLOAT")')
    assert lines[4] == '    .Attr("ksize: list(int) >= 4")'
    assert "    .Attr(\"padding: {'SAME', 'VALID', 'EXPLICIT'}\")" in lines
    assert ".SetIsStateful()" in repr(global_op_registry().look_up_op_def("VarHandleOp"))


@pytest.mark.parametrize("text", [t for t in HOSTILE_TEXT if t.isascii() or "\u2028" in t])
def test_any_op_def_can_be_shown(text: str) -> None:
    op_def = OpDef(name=text, control_output=[text])
    op_def.input_arg.add(name=text, type_attr=text)
    op_def.attr.add(name=text, type=text).default_value.s = text.encode()
    op_def.deprecation.explanation = text
    assert repr(op_def).startswith("REGISTER_OP(")
    assert all(character.isprintable() or character == "\n" for character in repr(op_def))
    assert repr(OpDef()) == 'REGISTER_OP("")'
