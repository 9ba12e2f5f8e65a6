"""Typing stubs of ops, line by line; what a type checker makes of them stands in tests/cli."""

import ast

import pytest

from opkernel.opdef import OpDefBuilder, stub_text
from opkernel.proto import ApiDef, OpDef


def op(
    name: str = "Test",
    inputs: tuple[str, ...] = (),
    outputs: tuple[str, ...] = (),
    attrs: tuple[str, ...] = (),
    doc: str = "",
) -> OpDef:
    builder = OpDefBuilder(name).doc(doc)
    for spec in inputs:
        builder.input(spec)
    for spec in outputs:
        builder.output(spec)
    for spec in attrs:
        builder.attr(spec)
    return builder.finalize().op_def


def declared(name: str = "Test", **parts: list[str]) -> OpDef:
    """An op with any names, also such as no builder takes."""
    made = OpDef(name=name)
    for input_name in parts.get("inputs", []):
        made.input_arg.add(name=input_name, type=1)
    for output_name in parts.get("outputs", []):
        made.output_arg.add(name=output_name, type=1)
    for attr_name in parts.get("attrs", []):
        made.attr.add(name=attr_name, type="int")
    return made


def functions(*ops: OpDef) -> str:
    """The part of a stub behind its header."""
    text = stub_text(ops, "Ops")
    ast.parse(text)
    return text.partition("NameAttrList\n")[2].partition("\n# What else")[0].strip("\n")


def names(*ops: OpDef) -> list[str]:
    return [n.name for n in ast.parse(functions(*ops)).body if isinstance(n, ast.FunctionDef)]


def test_inputs_outputs_and_attrs() -> None:
    made = op(
        inputs=("x: T", "values: N * T", "in: int32"),
        outputs=("y: T", "rest: N * T"),
        attrs=(
            "T: type", "N: int", "out: type", "names: list(string)", "rate: float = 0.1",
            "size: int = -1", "flag: bool = true", "mode: {'A', 'B'} = 'B'", "shape: shape = {}",
            "dtype: type = DT_INT32", "f: func", "t: tensor", "parts: list({'C', 'D'}) = ['C']",
        ),
    )  # fmt: skip
    assert (
        functions(made)
        == """\
class _TestOutputs(typing.NamedTuple):
    y: _Tensor
    rest: list[_Tensor]

def Test(
    *,
    x: _Input,
    values: collections.abc.Sequence[_Input],
    in_: _Input,
    out: _Type,
    names: collections.abc.Sequence[str | bytes],
    f: _Func,
    t: npt.ArrayLike | opkernel.proto.TensorProto,
    rate: float = 0.1,
    size: int = -1,
    flag: bool = True,
    mode: typing.Literal['A', 'B'] = 'B',
    shape: _Shape = ...,
    dtype: _Type = ...,
    parts: collections.abc.Sequence[typing.Literal['C', 'D']] = ...,
    name: str | None = None,
) -> _TestOutputs: ..."""
    )


@pytest.mark.parametrize(
    ("outputs", "result"),
    [
        ((), "opkernel.graph.Operation | None"),
        (("y: float",), "_Tensor"),
        (("y: 2 * float",), "list[_Tensor]"),
    ],
)
def test_the_result_of_an_op_of_one_output_or_none(outputs: tuple[str, ...], result: str) -> None:
    made = declared()
    for spec in outputs:
        arg = made.output_arg.add(name="y", type=1)
        if "*" in spec:
            arg.number_attr = "N"
    assert functions(made).endswith(f") -> {result}: ...")


def test_what_an_op_does_stands_in_its_function() -> None:
    assert functions(op(doc='Says "it" \\ twice.')).endswith(
        '| None:\n    """Says \\"it\\" \\\\ twice."""'
    )


def test_a_default_that_is_no_literal_of_python_is_left_open() -> None:
    made = op(attrs=("high: float = inf", "low: float = -inf", "odd: float = nan"))
    assert [line.split(" = ")[1] for line in functions(made).splitlines()[2:5]] == ["...,"] * 3


def test_functions_go_by_name_and_the_last_of_a_name_counts() -> None:
    first, last = op("B", inputs=("x: float",)), op("B", inputs=("y: float",))
    assert names(first, op("C"), last, op("A")) == ["A", "B", "C"]
    assert "    y: _Input," in functions(first, last)


def test_parameters_have_the_names_of_an_api_def() -> None:
    api_def = ApiDef(in_arg=[ApiDef.Arg(name="x", rename_to="logits")])
    text = stub_text([op(inputs=("x: float",))], "Ops", {"Test": api_def}.get)
    assert "    logits: _Input,\n" in text


@pytest.mark.parametrize(
    "left_out",
    [
        declared("_Internal"),
        declared("A>B"),
        declared("class"),
        declared("bool"),
        declared("typing"),
        declared("ﬁt"),  # Python reads it as `fit`
        declared(inputs=["no name"]),
        declared(inputs=["__debug__"]),
        declared(attrs=["1st"]),
        declared(inputs=["x", "x"]),
        declared(inputs=["in", "in_"]),
        declared(inputs=["name", "name_"]),
        declared(outputs=["no name", "y"]),
        declared(outputs=["_x", "y"]),
        declared(outputs=["x", "x"]),
        declared(outputs=["str", "y"]),
    ],
)
def test_what_python_has_no_name_for_is_left_out(left_out: OpDef) -> None:
    assert names(left_out, declared("Other")) == ["Other"]


@pytest.mark.parametrize(
    "kept",
    [
        declared(outputs=["no name"]),
        declared(outputs=["_x"]),
        declared(outputs=["str"]),
        declared(inputs=["str", "name"]),
        declared(inputs=["_x"]),
        declared("Any"),
        declared("Größe"),
    ],
)
def test_names_that_stand_nowhere_or_harm_nothing_are_taken(kept: OpDef) -> None:
    assert names(kept) == [kept.name]


def test_fields_that_hide_methods_of_tuples_are_of_any_type() -> None:
    made = declared(outputs=["count", "index", "y"])
    for arg in made.output_arg:
        arg.number_attr = "N"
    assert functions(made).splitlines()[1:4] == [
        "    count: _Tensor", "    index: _Tensor", "    y: list[_Tensor]"
    ]  # fmt: skip


def test_the_first_line_is_the_title() -> None:
    assert stub_text([], 'Ops of "a"').startswith('"""Ops of \\"a\\"; do not edit."""\n\nimport ')


def test_a_module_with_more_than_ops_says_so() -> None:
    more = "def __getattr__(name: str) -> typing.Any: ...\n"
    assert stub_text([op()], "Ops").endswith(more)
    assert more not in stub_text([op()], "Ops", is_all=True)
