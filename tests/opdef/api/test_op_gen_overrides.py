"""OpGenOverrides: the older files that change how ops are shown."""

import logging
from pathlib import Path

import pytest
from google.protobuf import text_format

from opkernel.errors import InvalidArgumentError, NotFoundError
from opkernel.opdef import OpGenOverrideMap, validate_op_def
from opkernel.proto import OpDef

OP = """
    name: "TestOp"
    input_arg { name: "a" type_attr: "T" number_attr: "N" description: "`a` of `T`" }
    output_arg { name: "b" type_list_attr: "L" description: "`b`, `a`" }
    attr { name: "T" type: "type" } attr { name: "N" type: "int" has_minimum: true minimum: 1 }
    attr { name: "L" type: "list(type)" description: "`T`" }
    summary: "`TestOp` of `a`" description: "`TestOp` and TestOp"
"""


def applied(text: str) -> OpDef:
    overrides = OpGenOverrideMap()
    overrides.load_overrides(f'op {{ name: "TestOp" {text} }}')
    op_def = text_format.Parse(OP, OpDef())
    overrides.apply_override(op_def)
    return op_def


def test_an_op_is_renamed_in_its_texts_too() -> None:
    op_def = applied('rename_to: "Better"')
    assert (op_def.name, op_def.summary) == ("Better", "`Better` of `a`")
    assert op_def.description == "`Better` and TestOp"


def test_attrs_are_renamed_where_args_refer_to_them() -> None:
    op_def = applied(
        'attr_rename { from: "T" to: "S" } attr_rename { from: "N" to: "M" } '
        'attr_rename { from: "L" to: "K" }'
    )
    assert [attr.name for attr in op_def.attr] == ["S", "M", "K"]
    arg = op_def.input_arg[0]
    assert (arg.type_attr, arg.number_attr, arg.description) == ("S", "M", "`a` of `S`")
    assert (op_def.output_arg[0].type_list_attr, op_def.attr[2].description) == ("K", "`S`")
    validate_op_def(op_def)


def test_arguments_are_renamed() -> None:
    op_def = applied('input_rename { from: "a" to: "x" } output_rename { from: "b" to: "y" }')
    assert (op_def.input_arg[0].name, op_def.output_arg[0].name) == ("x", "y")
    assert (op_def.output_arg[0].description, op_def.summary) == ("`y`, `x`", "`TestOp` of `x`")


def test_defaults_go_by_the_old_names() -> None:
    op_def = applied('attr_default { name: "N" value { i: 3 } } attr_rename { from: "N" to: "M" }')
    assert (op_def.attr[1].name, op_def.attr[1].default_value.i) == ("M", 3)


def test_the_rest_is_for_the_caller() -> None:
    overrides = OpGenOverrideMap()
    overrides.load_overrides('op { name: "TestOp" skip: true hide: true alias: "p" alias: "q" }')
    op_def = text_format.Parse(OP, OpDef())
    override = overrides.apply_override(op_def)
    assert override is not None
    assert (override.skip, override.hide, list(override.alias)) == (True, True, ["p", "q"])
    assert op_def == text_format.Parse(OP, OpDef())
    assert overrides.apply_override(OpDef(name="Other")) is None


def test_names_that_are_not_found_are_logged(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING):
        op_def = applied('attr_default { name: "Z" } input_rename { from: "b" to: "z" }')
    assert op_def == text_format.Parse(OP, OpDef())
    told = [record.getMessage() for record in caplog.records]
    assert told == ["TestOp can't find attr Z to override", "TestOp can't find input b to override"]


def test_later_files_win(tmp_path: Path) -> None:
    for name in ("one", "two"):
        (tmp_path / name).write_text(f'op {{ name: "TestOp" rename_to: "{name.title()}" }}')
    overrides = OpGenOverrideMap()
    overrides.load_file_list(f"{tmp_path / 'one'},{tmp_path / 'two'}")
    op_def = OpDef(name="TestOp")
    overrides.apply_override(op_def)
    assert op_def.name == "Two"
    overrides.load_file_list("")
    with pytest.raises(NotFoundError, match="three"):
        overrides.load_file_list(f"{tmp_path / 'one'},{tmp_path / 'three'}")


def test_a_text_that_is_none() -> None:
    with pytest.raises(InvalidArgumentError, match='OpGenOverride" has no field named "nope"'):
        applied("nope: 1")
