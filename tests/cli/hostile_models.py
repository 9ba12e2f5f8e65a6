"""A model with text in every place that programs have text of, and texts that would be code."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from tests.graph.function_builders import define, node

from opkernel import Graph
from opkernel.graph import import_graph_def
from opkernel.proto import FunctionDef, GraphDef, NodeDef

CODE = "__import__('os').mkdir('touched')"
"""What no program may run."""

HOSTILE = [
    f"a={CODE},b",
    f"x)\n{CODE}\n(x",
    f'"""\n{CODE}\n"""',
    f"'''\n{CODE}\n'''",
    f"'); {CODE}; ('",
    f'"); {CODE}; ("',
    f"'] = {CODE}; y = ['",
    f"{{{CODE}}}",
    f"a  # b\r\n{CODE}",
    f"\x0c{CODE}",
    f"\u2028{CODE}\u0085",
    f"\\' + {CODE} + \\'",
    f"{CODE}\\",
    f"{CODE} " * 20,
    "__import__",
    "\uff3f\uff3fimport\uff3f\uff3f",  # Python reads `__import__`
    "\ufb01\u00e9\u540d",
    "lambda",
]

FEEDS: dict[str, Any] = {
    "x": np.array([[1, 2], [3, 5]], np.float32),
    "p": np.bool_(True),
    "n": np.int32(3),
}
CONSTANT = "dtype: {} tensor_shape {{}} {}_val: {}"
ONE, TWO, FIFTY = (
    f"Const[dtype=float; value=<{CONSTANT.format('DT_FLOAT', 'float', value)}>]()"
    for value in (1, 2, 50)
)
MANY = "<dtype: DT_FLOAT tensor_shape { dim { size: 2 } dim { size: 9 } } float_val: 3>"
AXES = "<dtype: DT_INT32 tensor_shape { dim { size: 2 } } int_val: 0 int_val: 1>"
CALL = "Tin={float}; Tout={float}"
FRAME = "T=float; frame_name='frame'; parallel_iterations=10; is_constant"
NODES = [
    "x = Placeholder[dtype=float]()",
    "p = Placeholder[dtype=bool]()",
    "n = Placeholder[dtype=int32]()",
    "softmax = Softmax[T=float](x)",
    "checked = CheckNumerics[T=float; message='not a number'](softmax)",
    f"called = PartitionedCall[{CALL}; f=F](checked)",
    "direct = F(called)",
    f"chosen = StatelessIf[Tcond=bool; {CALL}; then_branch=F; else_branch=F](p, direct)",
    "looped = StatelessWhile[T={int32,float}; cond=Goes; body=Turn](n, chosen)",
    f"weights = Const[dtype=float; value={MANY}]()",
    "product = MatMul[T=float; transpose_a=false; transpose_b=false](looped:1, weights)",
    f"axes = Const[dtype=int32; value={AXES}]()",
    "total = Sum[T=float; Tidx=int32; keep_dims=false](product, axes)",
    f"limit = {FIFTY}",
    f"enter = Enter[{FRAME}=false](total)",
    f"limited = Enter[{FRAME}=true](limit)",
    "merge = Merge[T=float; N=2](enter, next)",
    "less = Less[T=float](merge, limited)",
    "cond = LoopCond(less)",
    "switch = Switch[T=float](merge, cond)",
    "turn = AddV2[T=float](switch:1, switch:1)",
    "next = NextIteration[T=float](turn)",
    "exit = Exit[T=float](switch)",
    "side = Switch[T=float](exit, p)",
]
FETCHES = ["exit:0", "side:1", "looped:1"]


def model() -> GraphDef:
    """Functions, conditionals and loops of both kinds, constants, attrs."""
    made = GraphDef()
    made.versions.producer = 1000
    made.node.extend(map(node, NODES))
    counted = "one = Const[dtype=int32; value=<dtype: DT_INT32 tensor_shape {} int_val: 1>]()"
    made.library.function.extend(
        [
            define(
                "F(a: float) -> (r: float)",
                [
                    f"two = {TWO}",
                    "inner = Softmax[T=float](a)",
                    "sum = AddV2[T=float](inner:softmax:0, two:output:0)",
                ],
                r="sum:z:0",
            ),
            define(
                "Goes(i: int32, y: float) -> (r: bool)",
                [counted, "goes = Greater[T=int32](i, one:output:0)"],
                r="goes:z:0",
            ),
            define(
                "Turn(i: int32, y: float) -> (i1: int32, y1: float)",
                [counted, "less = Sub[T=int32](i, one:output:0)", "twice = AddV2[T=float](y, y)"],
                i1="less:z:0", y1="twice:z:0",
            ),
        ]
    )  # fmt: skip
    for function in made.library.function:
        function.attr["_noinline"].b = True
    return made


def imported(made: GraphDef) -> Graph:
    graph = Graph()
    with graph.as_default():
        import_graph_def(made, name="")
    return graph


def rename_nodes(made: GraphDef, names: Mapping[str, str]) -> None:
    """Give nodes other names, wherever they are inputs too."""
    for one in made.node:
        one.name = names.get(one.name, one.name)
        sources = [source.partition(":") for source in one.input]
        one.input[:] = ["".join([names.get(name, name), *index]) for name, *index in sources]


def rename_functions(made: GraphDef, names: Mapping[str, str]) -> None:
    """Give functions other names, wherever they are called too."""
    for function in made.library.function:
        function.signature.name = names.get(function.signature.name, function.signature.name)
    for one in made.node:
        one.op = names.get(one.op, one.op)
        for value in one.attr.values():
            if value.HasField("func"):
                value.func.name = names.get(value.func.name, value.func.name)


def _node(made: GraphDef, name: str) -> NodeDef:
    return next(one for one in made.node if one.name == name)


def _function(made: GraphDef) -> FunctionDef:
    return made.library.function[0]


def _attr_of(name: str) -> Callable[[GraphDef, str], None]:
    def change(made: GraphDef, text: str) -> None:
        _node(made, name).attr[text].s = text.encode()

    return change


def _attr_of_inner(made: GraphDef, text: str) -> None:
    _function(made).node_def[1].attr[text].s = text.encode()


def _attr_of_call(made: GraphDef, text: str) -> None:
    _node(made, "called").attr["f"].func.attr[text].s = text.encode()


def _attr_of_function(made: GraphDef, text: str) -> None:
    _function(made).attr[text].s = text.encode()


def _attr_of_argument(made: GraphDef, text: str) -> None:
    _function(made).arg_attr[0].attr[text].s = text.encode()


def _value(name: str, attr: str) -> Callable[[GraphDef, str], None]:
    def change(made: GraphDef, text: str) -> None:
        _node(made, name).attr[attr].s = text.encode()

    return change


def _frame(made: GraphDef, text: str) -> None:
    for name in ("enter", "limited"):
        _node(made, name).attr["frame_name"].s = text.encode()


def _device(made: GraphDef, text: str) -> None:
    _node(made, "softmax").device = text


def _debug_info(made: GraphDef, text: str) -> None:
    info = _node(made, "softmax").experimental_debug_info
    info.original_node_names.append(text)
    info.original_func_names.append(text)


def _documentation(made: GraphDef, text: str) -> None:
    signature = _function(made).signature
    signature.summary = signature.description = text
    signature.input_arg[0].description = text


def _argument(made: GraphDef, text: str) -> None:
    function = _function(made)
    function.signature.input_arg[0].name = function.node_def[1].input[0] = text


def _result(made: GraphDef, text: str) -> None:
    function = _function(made)
    function.signature.output_arg[0].name = text
    function.ret[text] = function.ret.pop("r")


def _inner_node(made: GraphDef, text: str) -> None:
    function = _function(made)
    function.node_def[1].name = text
    function.node_def[2].input[0] = f"{text}:softmax:0"


def _control_output(made: GraphDef, text: str) -> None:
    _function(made).signature.control_output.append(text)
    _function(made).control_ret[text] = "inner"


def _of_node(name: str) -> Callable[[GraphDef, str], None]:
    return lambda made, text: rename_nodes(made, {name: text})


def _of_function(name: str, number: int) -> Callable[[GraphDef, str], None]:
    return lambda made, text: rename_functions(made, {name: f"{text}{number or ''}"})


NODE_NAMES = [line.partition(" = ")[0] for line in NODES]
FUNCTION_NAMES = ["F", "Goes", "Turn"]

_WITH_ATTRS = ("softmax", "checked", "called", "direct", "chosen", "looped", "weights", "enter")
ANY_TEXT: list[Callable[[GraphDef, str], None]] = [
    *map(_attr_of, _WITH_ATTRS),
    _attr_of_inner,
    _attr_of_call,
    _attr_of_function,
    _attr_of_argument,
    _value("checked", "message"),
    _value("softmax", "_note"),
    _frame,
    _device,
    _debug_info,
    _documentation,
    _control_output,
    *(_of_function(name, number) for number, name in enumerate(FUNCTION_NAMES)),
]
"""What puts text where a model may have any text."""

NAMES: list[Callable[[GraphDef, str], None]] = [
    *map(_of_node, NODE_NAMES),
    _argument,
    _result,
    _inner_node,
]
"""What puts text where only names of nodes may stand."""
