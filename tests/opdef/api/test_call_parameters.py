"""An op as a Python function: the rules of TensorFlow's generated functions."""

from inspect import Parameter
from typing import Any

import pytest

from opkernel.opdef import OpDefBuilder, bind_call, call_parameters, call_result, python_name
from opkernel.proto import ApiDef, OpDef

REQUIRED = Parameter.empty


def op(*specs: str, attrs: tuple[str, ...] = (), outputs: tuple[str, ...] = ()) -> OpDef:
    builder = OpDefBuilder("Test")
    for spec in specs:
        builder.input(spec)
    for spec in outputs:
        builder.output(spec)
    for spec in attrs:
        builder.attr(spec)
    return builder.finalize().op_def


def parameters(op_def: OpDef, api_def: ApiDef | None = None) -> list[tuple[str, Any]]:
    return [(one.name, one.default) for one in call_parameters(op_def, api_def)]


def test_inputs_come_first_then_attrs_without_and_with_a_default() -> None:
    made = op("x: T", "n: int32", attrs=("a: int = 1", "T: type", "b: string", "c: bool = true"))
    assert parameters(made) == [
        ("x", REQUIRED), ("n", REQUIRED), ("b", REQUIRED), ("a", 1), ("c", True)
    ]  # fmt: skip
    assert [one.is_input for one in call_parameters(made)] == [True, True, False, False, False]


@pytest.mark.parametrize(
    ("spec", "default"),
    [
        ("rate: float = 0.1", 0.1),
        ("rates: list(float) = [0.1, 2]", [0.1, 2.0]),
        ("shape: shape = { dim { size: 2 } dim { size: -1 } }", [2, None]),
        ("shape: shape = { unknown_rank: true }", None),
        ("text: string = 'a'", "a"),
    ],
)
def test_defaults_are_as_one_would_write_them(spec: str, default: object) -> None:
    assert parameters(op(attrs=(spec,)))[0][1] == default


def test_words_of_python_and_the_name_of_the_node_take_an_underscore() -> None:
    assert [python_name(name) for name in ("in", "name", "names", "x")] == [
        "in_", "name_", "names", "x"
    ]  # fmt: skip


def test_an_api_def_renames_parameters() -> None:
    api_def = ApiDef(
        in_arg=[ApiDef.Arg(name="x", rename_to="logits"), ApiDef.Arg(name="y")],
        attr=[ApiDef.Attr(name="a", rename_to="axis")],
    )
    made = op("x: float", "y: float", attrs=("a: int = 1",))
    assert parameters(made, api_def) == [("logits", REQUIRED), ("y", REQUIRED), ("axis", 1)]
    found = call_parameters(made, api_def)
    assert bind_call(made, found, {"logits": 1, "y": 2, "axis": 3}) == ({"x": 1, "y": 2}, {"a": 3})
    assert bind_call(made, found, {"x": 1, "y": 2, "a": 3}) == ({"x": 1, "y": 2}, {"a": 3})


OP = op("in: T", "y: float", attrs=("T: type", "mode: string", "size: int = 2"))


def bound(**arguments: Any) -> tuple[dict[str, Any], dict[str, Any]]:
    return bind_call(OP, call_parameters(OP), arguments)


def test_arguments_are_bound_by_the_names_of_the_op() -> None:
    expected = {"in": 1, "y": 2}, {"mode": "a", "size": 3}
    assert bound(in_=1, y=2, mode="a", size=3) == expected
    assert bound(**{"in": 1}, y_=2, mode_="a", size=3) == expected


def test_none_leaves_out_an_attr_with_a_default_and_nothing_else() -> None:
    assert bound(in_=None, y=2, mode=None, size=None) == ({"in": None, "y": 2}, {"mode": None})
    assert bound(in_=1, y=2, mode="a") == ({"in": 1, "y": 2}, {"mode": "a"})


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"y": 2, "mode": "a"}, r"^Test\(\) is missing its argument for input 'in_'$"),
        ({"in_": 1, "y": 2}, r"^Test\(\) is missing its argument for attr 'mode'$"),
        ({"in_": 1}, r"^Test\(\) is missing its argument for input 'y'$"),
        (
            {"in_": 1, "y": 2, "mode": "a", "T": "float"},
            r"^Test\(\) infers attr 'T'; it should not be specified$",
        ),
        (
            {"in_": 1, "y": 2, "mod": "a", "extra": 2},
            r"unexpected keyword arguments: extra, mod.*; it takes in_, y, mode, size$",
        ),
        ({"y": 2, "sizes": 3}, r"unexpected keyword arguments: sizes; perhaps you mean size;"),
    ],
)
def test_arguments_that_do_not_fit(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(TypeError, match=message):
        bound(**arguments)


def test_an_op_without_parameters_takes_none() -> None:
    with pytest.raises(TypeError, match=r"it takes none$"):
        bind_call(op(), [], {"x": 1})


def test_results() -> None:
    assert call_result(op(), []) is None
    assert call_result(op(outputs=("y: float",)), [3]) == 3
    two = call_result(op(outputs=("values: float", "in: int32")), [3, 4])
    assert (two.values, two.in_, two[1], type(two).__name__) == (3, 4, 4, "Test")


def test_outputs_whose_names_no_named_tuple_has_go_by_their_place() -> None:
    found = call_result(op(outputs=("count: float", "class: float")), [3, 4])
    assert (found.count, found.class_) == (3, 4)
    assert call_result(OpDef(name="A>B", output_arg=[OpDef.ArgDef(name="_x")] * 2), [3, 4])._0 == 3
