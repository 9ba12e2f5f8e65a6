"""FunctionDefs and GraphDefs from lines like `y = Mul[T=float](x, scale) @ n`; and back."""

import re
from collections.abc import Iterable
from typing import Any

from opkernel.graph import (
    FunctionLibraryDefinition,
    Graph,
    GraphImporter,
    ImportOptions,
    Operation,
)
from opkernel.opdef import parse_attr_value
from opkernel.proto import AttrValue, FunctionDef, GraphDef, NameAttrList, NodeDef
from opkernel.types import as_dtype

_LINE = re.compile(r"(\S+) = ([\w.]+)(?:\[(.*)\])?\(([^)]*)\)(?: @ (.*))?")
_SIGNATURE = re.compile(r"(\w+)\((.*)\) -> \((.*)\)")
_ARG = re.compile(r"(\w+): (?:(\w+) \* )?([\w()]+)")


def node(line: str) -> NodeDef:
    """The node of a line; attrs are separated by semicolons, `$T` is a placeholder."""
    name, op, attrs, inputs, controls = _parts(_LINE, line.strip())
    made = NodeDef(name=name, op=op)
    for attr in (attrs or "").split(";"):
        if attr:
            key, _, value = attr.strip().partition("=")
            made.attr[key].CopyFrom(attr_value(value))
    made.input.extend([text.strip() for text in inputs.split(",") if text.strip()])
    made.input.extend([f"^{text.strip()}" for text in (controls or "").split(",") if text])
    return made


def _parts(pattern: re.Pattern[str], text: str) -> tuple[Any, ...]:
    found = pattern.fullmatch(text)
    assert found is not None, text
    return found.groups()


def attr_value(text: str) -> AttrValue:
    """`float` is a type, `5` an int, `true` a bool, `'x'` a string, `$T` a placeholder.

    `{float, int32}` is a list of types, `Name[T=float]` a function, `<dtype ...>` a tensor in text form.
    """
    if text.startswith("$"):
        return AttrValue(placeholder=text[1:])
    if text.startswith("{"):
        types = [as_dtype(one.strip()) for one in text[1:-1].split(",") if one.strip()]
        return AttrValue(list=AttrValue.ListValue(type=types))
    if text.startswith("<"):
        return parse_attr_value("tensor", text)
    if text.startswith("'"):
        return AttrValue(s=text[1:-1].encode())
    if text in ("true", "false"):
        return AttrValue(b=text == "true")
    if text.lstrip("-").isdigit():
        return AttrValue(i=int(text))
    if text[0].isupper():
        name, _, attrs = text.partition("[")
        function = NameAttrList(name=name)
        for attr in attrs.rstrip("]").split(","):
            if attr:
                key, _, value = attr.partition("=")
                function.attr[key.strip()].CopyFrom(attr_value(value))
        return AttrValue(func=function)
    return AttrValue(type=as_dtype(text))


def define(
    signature: str, lines: Iterable[str] = (), attrs: str = "", controls: str = "", **ret: str
) -> FunctionDef:
    """A function: `Name(x: T, n: N * int32) -> (y: T)`, the lines of its nodes, `y="sum:z:0"`."""
    name, inputs, outputs = _parts(_SIGNATURE, signature)
    function = FunctionDef()
    function.signature.name = name
    for text, args in (
        (inputs, function.signature.input_arg),
        (outputs, function.signature.output_arg),
    ):
        for label, number, kind in _ARG.findall(text):
            arg = args.add(name=label, number_attr=number)
            if kind.startswith("list("):
                arg.type_list_attr = kind[5:-1]
            elif kind[0].isupper():
                arg.type_attr = kind
            else:
                arg.type = as_dtype(kind)
    for label, _, kind in (attr.partition(": ") for attr in attrs.split("; ") if attr):
        function.signature.attr.add(name=label, type=kind)
    for label, _, source in (one.partition("=") for one in controls.split("; ") if one):
        function.signature.control_output.append(label)
        function.control_ret[label] = source
    function.node_def.extend([node(line) for line in lines])
    for label, source in ret.items():
        function.ret[label] = source
    return function


def library_of(*functions: FunctionDef) -> FunctionLibraryDefinition:
    """A library of functions over all ops."""
    library = FunctionLibraryDefinition()
    for function in functions:
        library.add_function(function)
    return library


def graph_of(library: FunctionLibraryDefinition, *lines: str) -> Graph:
    """A graph of nodes, those of functions among them."""
    graph = Graph(function_library=library)
    graph_def = GraphDef(versions=graph.graph_def_versions)
    graph_def.node.extend([node(line) for line in lines])
    options = ImportOptions(allow_internal_names=True, validate_nodes=False)
    importer = GraphImporter(graph, graph_def, options)
    importer.prepare()
    importer.commit()
    return graph


def shown(ops: Iterable[Operation]) -> list[str]:
    """Operations as lines without attrs, sorted."""
    return sorted(_line(op.node_def) for op in ops)


def _line(made: NodeDef) -> str:
    inputs = ", ".join(text for text in made.input if not text.startswith("^"))
    controls = ", ".join(text[1:] for text in made.input if text.startswith("^"))
    return f"{made.name} = {made.op}({inputs})" + (f" @ {controls}" if controls else "")


X_TIMES_TWO = define(
    "XTimesTwo(x: T) -> (y: T)",
    [
        "two = Const[dtype=int64; value=<dtype: DT_INT64 tensor_shape {} int64_val: 2>]()",
        "scale = Cast[SrcT=int64; DstT=$T](two:output:0)",
        "y = Mul[T=$T](x, scale:y:0)",
    ],
    "T: type",
    y="y:z:0",
)
X_TIMES_FOUR = define(
    "XTimesFour(x: T) -> (y: T)",
    ["x2 = XTimesTwo[T=$T](x)", "y = XTimesTwo[T=$T](x2:y:0)"],
    "T: type",
    y="y:y:0",
)
X_TIMES_16 = define(
    "XTimes16(x: T) -> (y: T)",
    ["x4 = XTimesFour[T=$T](x)", "y = XTimesFour[T=$T](x4:y:0)"],
    "T: type",
    y="y:y:0",
)
ADD_AND_MUL = define(
    "AddAndMul(i: float) -> (o: float)",
    ["add = Add[T=float](i, i)", "ret = Mul[T=float](i, i)"],
    controls="must_execute=add",
    o="ret:z:0",
)
"""Its node `add` has to run, though no result needs it."""
