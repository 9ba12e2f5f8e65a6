"""ApiDefs: what an OpDef gives, and what files change in it."""

from pathlib import Path

import pytest
from google.protobuf import text_format

from opkernel.errors import FailedPreconditionError, InvalidArgumentError, NotFoundError
from opkernel.opdef import ApiDefMap
from opkernel.proto import ApiDef, OpDef, OpList

OP = """
    name: "TestOp"
    input_arg { name: "a" type: DT_FLOAT description: "`a`, `b`, `x`, `TestOp`" }
    input_arg { name: "b" type: DT_FLOAT }
    output_arg { name: "c" type: DT_FLOAT description: "`c`" }
    attr { name: "x" type: "int" default_value { i: 2 } has_minimum: true minimum: 1 }
    summary: "Sums `a`." description: "See `TestOp`."
"""


@pytest.fixture
def api_defs() -> ApiDefMap:
    return ApiDefMap(OpList(op=[text_format.Parse(OP, OpDef())]))


def found(api_defs: ApiDefMap) -> ApiDef:
    api_def = api_defs.get_api_def("TestOp")
    assert api_def is not None
    return api_def


def load(api_defs: ApiDefMap, text: str) -> ApiDef:
    api_defs.load_api_def(f'op {{ graph_op_name: "TestOp" {text} }}')
    return found(api_defs)


def test_an_op_is_shown_as_it_is_declared(api_defs: ApiDefMap) -> None:
    expected = """
        graph_op_name: "TestOp" visibility: VISIBLE endpoint { name: "TestOp" }
        in_arg { name: "a" rename_to: "a" description: "`a`, `b`, `x`, `TestOp`" }
        in_arg { name: "b" rename_to: "b" }
        out_arg { name: "c" rename_to: "c" description: "`c`" }
        attr { name: "x" rename_to: "x" default_value { i: 2 } }
        summary: "Sums `a`." description: "See `TestOp`." arg_order: "a" arg_order: "b"
    """
    assert found(api_defs) == text_format.Parse(expected, ApiDef())
    assert api_defs.get_api_def("Other") is None


def test_visibility_and_endpoints_are_replaced(api_defs: ApiDefMap) -> None:
    assert load(api_defs, "visibility: HIDDEN").visibility == ApiDef.HIDDEN
    shown = load(api_defs, 'endpoint { name: "p" } endpoint { name: "q" deprecated: true }')
    assert [endpoint.name for endpoint in shown.endpoint] == ["p", "q"]
    assert shown.visibility == ApiDef.HIDDEN


def test_args_and_attrs_are_merged_by_name(api_defs: ApiDefMap) -> None:
    shown = load(
        api_defs,
        'in_arg { name: "b" rename_to: "bb" } out_arg { name: "c" description: "new" } '
        'attr { name: "x" default_value { i: 5 } } arg_order: "b" arg_order: "a"',
    )
    assert (shown.in_arg[1].rename_to, shown.in_arg[0].rename_to) == ("bb", "a")
    assert (shown.out_arg[0].description, shown.out_arg[0].rename_to) == ("new", "c")
    assert shown.attr[0].default_value.i == 5
    assert list(shown.arg_order) == ["b", "a"]


def test_descriptions_grow_at_both_ends(api_defs: ApiDefMap) -> None:
    shown = load(api_defs, 'description_prefix: "Before." description_suffix: "After."')
    assert shown.description == "Before.\nSee `TestOp`.\nAfter."
    shown = load(api_defs, 'description: "New." description_prefix: "P" summary: "S"')
    assert (shown.description, shown.summary) == ("P\nNew.", "S")
    assert shown.description_prefix == shown.description_suffix == ""


def test_new_names_are_put_into_the_texts(api_defs: ApiDefMap) -> None:
    load(
        api_defs,
        'endpoint { name: "shown" } in_arg { name: "a" rename_to: "aa" } '
        'attr { name: "x" rename_to: "xx" } out_arg { name: "c" rename_to: "cc" }',
    )
    assert found(api_defs).summary == "Sums `a`."
    api_defs.update_docs()
    shown = found(api_defs)
    assert shown.in_arg[0].description == "`aa`, `b`, `xx`, `shown`"
    assert (shown.out_arg[0].description, shown.summary) == ("`cc`", "Sums `aa`.")
    assert shown.description == "See `shown`."


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('in_arg { name: "zzz" }', "Argument zzz not defined in base api for TestOp"),
        ('out_arg { name: "a" }', "Argument a not defined in base api for TestOp"),
        ('attr { name: "T" }', "Attribute T not defined in base api for TestOp"),
        ('arg_order: "a"', "Invalid number of arguments 1 for TestOp. Expected: 2"),
        ('arg_order: "a" arg_order: "a"', r"Invalid arg_order: a, a for TestOp.*: a, b"),
    ],
)
def test_overrides_of_what_the_op_lacks(api_defs: ApiDefMap, text: str, message: str) -> None:
    with pytest.raises(FailedPreconditionError, match=message):
        load(api_defs, text)


def test_ops_that_are_not_in_the_list_do_not_count(api_defs: ApiDefMap) -> None:
    before = found(api_defs).SerializeToString()
    api_defs.load_api_def('op { graph_op_name: "Other" in_arg { name: "zzz" } }')
    assert found(api_defs).SerializeToString() == before
    assert api_defs.get_api_def("Other") is None


def test_a_text_that_is_none(api_defs: ApiDefMap) -> None:
    with pytest.raises(InvalidArgumentError, match='ApiDef" has no field named "nope"'):
        load(api_defs, "nope: 1")


def test_files_are_loaded_one_after_the_other(api_defs: ApiDefMap, tmp_path: Path) -> None:
    for name in ("one", "two"):
        text = f'op {{\n graph_op_name: "TestOp"\n summary: <<END\n{name}\nEND\n}}\n'
        (tmp_path / name).write_text(text)
    api_defs.load_file_list([tmp_path / "one", "", tmp_path / "two"])
    assert found(api_defs).summary == "two"
    with pytest.raises(NotFoundError, match="three"):
        api_defs.load_file(tmp_path / "three")
