"""The documentation of an op as a function: its text, the types of its arguments, its results."""

import pytest

from opkernel.opdef import OpDefBuilder, op_docstring
from opkernel.proto import ApiDef


def test_types_and_defaults_are_told() -> None:
    builder = (
        OpDefBuilder("Doc").input("a: N * T").input("b: int32").input("c: Ref(T)").output("d: T")
        .output("e: out").attr("T: {float, int32}").attr("N: int >= 1").attr("out: type")
        .attr("mode: {'A', 'B'} = 'A'").attr("sizes: list(int) >= 2 = [1, 2]")
        .doc("Does it.\n\nAt length,\n  indented.\n\na: What to do.\n  All of it.\nd: Done.")
    )  # fmt: skip
    assert op_docstring(builder.finalize().op_def) == (
        "Does it.\n\n"
        "At length,\n  indented.\n\n"
        "Args:\n"
        "    a: A list of tensors of one of the types `float32`, `int32`. What to do.\n"
        "        All of it.\n"
        "    b: An `int32` tensor.\n"
        "    c: A mutable tensor of the type of `a`.\n"
        "    out: A type.\n"
        '    mode: A string, one of "A", "B". Defaults to \'A\'.\n'
        "    sizes: A list of ints of length 2 or more. Defaults to [1, 2].\n"
        "    name: A name for the node in a graph.\n\n"
        "Returns:\n"
        "    A named tuple.\n\n"
        "    d: A tensor of the type of `a`. Done.\n"
        "    e: A tensor of the type `out`.\n"
    )


def test_an_api_def_tells_other_things_of_an_op() -> None:
    op_def = OpDefBuilder("Doc").input("a: float").doc("Old.").finalize().op_def
    api_def = ApiDef(summary="New.", in_arg=[ApiDef.Arg(name="a", description="Told anew.")])
    assert op_docstring(op_def, api_def) == (
        "New.\n\nArgs:\n    a: A `float32` tensor. Told anew.\n"
        "    name: A name for the node in a graph.\n\n"
        "Returns:\n    Nothing; in a graph, the operation.\n"
    )


@pytest.mark.parametrize(
    ("inputs", "outputs", "attrs", "lines"),
    [
        (["x: T"], [], ["T: type"], ["x: A tensor of any type."]),
        (["x: L"], [], ["L: list(type)"], ["x: A list of tensors of any types."]),
        (["x: L", "y: L"], [], ["L: list({float, int32})"],
         ["x: A list of tensors of one of the types `float32`, `int32`.",
          "y: A list of tensors of the types of `x`."]),
        (["n: int64", "s: string", "r: resource"], [], [],
         ["n: An `int64` tensor.", "s: A `string` tensor.", "r: A `resource` tensor."]),
        (["r: Ref(int32)", "s: Ref(float)"], [], [],
         ["r: A mutable `int32` tensor.", "s: A mutable `float32` tensor."]),
        (["x: 2 * float"], [], [], ["x: A list of `float32` tensors."]),
        (["in: T", "y: T"], ["z: T"], ["T: type"],
         ["in_: A tensor of any type.", "y: A tensor of the type of `in_`.",
          "A tensor of the type of `in_`."]),
        ([], ["y: L"], ["L: list(type)"], ["L: A list of types of length 1 or more.", "A list of tensors of the types `L`."]),
        ([], ["y: is"], ["is: type"], ["is_: A type.", "A tensor of the type `is_`."]),
        ([], [], ["t: tensor", "f: func", "i: int >= 3", "b: bool = false", "s: shape = {}"],
         ["t: A tensor value.", "f: A function.", "i: An int, 3 or more.",
          "b: A bool. Defaults to False.", "s: A shape. Defaults to []."]),
        ([], [], ["l: list(int) >= 2", "t: list(type) = [DT_INT32, DT_FLOAT]"],
         ["l: A list of ints of length 2 or more.",
          "t: A list of types. Defaults to [int32, float32]."]),
        ([], [], ["T: {float, int8} = DT_INT8"],
         ["T: A type, one of `float32`, `int8`. Defaults to int8."]),
    ],
)  # fmt: skip
def test_the_types_of_arguments_and_results(
    inputs: list[str], outputs: list[str], attrs: list[str], lines: list[str]
) -> None:
    builder = OpDefBuilder("Doc")
    for spec in inputs:
        builder.input(spec.replace("2 *", "N *"))
    for spec in outputs:
        builder.output(spec)
    for spec in attrs + (["N: int"] if "2 *" in "".join(inputs) else []):
        builder.attr(spec)
    told = [line.strip() for line in op_docstring(builder.finalize().op_def).splitlines()]
    assert [line for line in told if line in lines] == lines


def test_an_op_without_documentation_is_named() -> None:
    op_def = OpDefBuilder("Doc").output("y: float").finalize().op_def
    assert op_docstring(op_def) == (
        "The op `Doc`.\n\nArgs:\n    name: A name for the node in a graph.\n\n"
        "Returns:\n    A `float32` tensor.\n"
    )


def test_paragraphs_of_a_description_stay_apart() -> None:
    op_def = OpDefBuilder("Doc").input("a: float").output("y: float").finalize().op_def
    told = op_docstring(op_def, ApiDef(
        in_arg=[ApiDef.Arg(name="a", description="One.\n\nTwo.")],
        out_arg=[ApiDef.Arg(name="y", description="Three.\n\nFour.")],
    ))  # fmt: skip
    assert "    a: A `float32` tensor. One.\n\n        Two.\n    name: " in told
    assert told.endswith("Returns:\n    A `float32` tensor. Three.\n\n    Four.\n")
