"""Graphs of calls of functions that take or give other tensors than the node that calls says."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from tests.graph.function_builders import define, node

from opkernel import Graph
from opkernel.errors import InternalError, InvalidArgumentError, OpError
from opkernel.graph import import_graph_def
from opkernel.proto import FunctionDef, GraphDef, NameAttrList, NodeDef
from opkernel.types import DataType, as_dtype, tensor_to_proto

RIGHT = ["float", "float"]
WRONG = {
    "another argument": (["int32", "float"], RIGHT),
    "fewer arguments": (["float"], RIGHT),
    "more arguments": (["float"] * 3, RIGHT),
    "another result": (RIGHT, ["int32", "float"]),
    "fewer results": (RIGHT, ["float"]),
    "more results": (RIGHT, ["float"] * 3),
}
"""What a function takes and gives that is called with, and for, two floats."""

RESULTS_OF_CONDITION = {
    "another result": ["float"],
    "fewer results": [],
    "more results": ["bool"] * 2,
}
VALUES: dict[str, Any] = {
    "x": np.float32(1.5),
    "y": np.float32(2),
    "yes": np.bool_(True),
    "no": np.bool_(False),
    "zero": np.int32(0),
    "two": np.int32(2),
    "device": np.array(b"/cpu:0", object),
}


def call(
    op: str,
    *inputs: str,
    takes: Sequence[str] = RIGHT,
    gives: Sequence[str] = RIGHT,
    **functions: str,
) -> NodeDef:
    """A node that calls functions with, and for, tensors of some types."""
    made = node(f"call = {op}({', '.join(inputs)})")
    lists = {"T": takes} if "While" in op else {"Tin": takes, "Tout": gives}
    for attr, types in lists.items():
        made.attr[attr].list.type.extend(map(as_dtype, types))
    for attr, names in functions.items():
        references = [NameAttrList(name=name) for name in names.split()]
        if attr == "branches":
            made.attr[attr].list.func.extend(references)
        else:
            made.attr[attr].func.CopyFrom(references[0])
    if "If" in op:
        made.attr["Tcond"].type = DataType.DT_BOOL
    return made


def calls() -> dict[str, NodeDef]:
    """A node for each op and each of its functions; that one is `Wrong`."""
    made = {}
    for op in ("PartitionedCall", "StatefulPartitionedCall"):
        made[op] = call(op, "x", "y", f="Wrong")
    for prefix in ("", "Stateless"):
        op = f"{prefix}If"
        made[f"{op} then"] = call(op, "yes", "x", "y", then_branch="Wrong", else_branch="Right")
        made[f"{op} else"] = call(op, "no", "x", "y", then_branch="Right", else_branch="Wrong")
        op = f"{prefix}Case"
        made[f"{op} 0"] = call(op, "zero", "x", "y", branches="Wrong Right")
        made[f"{op} 2"] = call(op, "two", "x", "y", branches="Right Right Wrong")
        op = f"{prefix}While"
        made[f"{op} cond"] = call(op, "x", "y", cond="Wrong", body="Right")
        made[f"{op} body"] = call(op, "x", "y", cond="Holds", body="Wrong")
    made["RemoteCall"] = call("RemoteCall", "device", "x", "y", f="Wrong")
    return made


CALLS = calls()


def gradient_call(wrong: str) -> NodeDef:
    """A node that takes the gradient of `Right` for it to have other arguments or results."""
    takes, gives = WRONG.get(wrong, (RIGHT, RIGHT))
    inputs = ["zero" if dtype == "int32" else "x" for dtype in takes]
    takes = [*takes, *RIGHT]
    return call("SymbolicGradient", *inputs, "x", "y", takes=takes, gives=gives, f="Right")


def code_of(called: str, wrong: str) -> type[OpError]:
    """The status code of TensorFlow 2.21."""
    if "argument" in wrong or called.endswith(("cond", "body")):
        return InvalidArgumentError
    if called == "SymbolicGradient" and wrong != "another result":
        return InvalidArgumentError
    return InternalError


def may_be(called: str, wrong: str) -> bool:
    """Whether that is not wrong: the condition of a loop may be of any type."""
    return called.endswith("cond") and wrong == "another result"


def constant(name: str, dtype: str) -> str:
    """A line for a zero."""
    value = tensor_to_proto(np.zeros((), as_dtype(dtype).numpy_dtype))
    return f"{name} = Const[dtype={dtype}; value=<{' '.join(str(value).split())}>]()"


def function(name: str, takes: Sequence[str], gives: Sequence[str], kind: str) -> FunctionDef:
    """A function whose results are zero, or the negative of its first argument.

    Those of a condition say whether this is positive.
    """
    lines, returned = [], {}
    for index, dtype in enumerate(gives):
        if kind == "constant":
            lines.append(constant(f"y{index}", dtype))
            returned[f"y{index}"] = f"y{index}:output:0"
        else:
            is_condition = kind == "condition"
            source, of = ("holds:z", "bool") if is_condition else ("negative:y", takes[0])
            lines.append(f"y{index} = Cast[SrcT={of}; DstT={dtype}]({source}:0)")
            returned[f"y{index}"] = f"y{index}:y:0"
    lines += [
        constant("zero", takes[0]),
        f"holds = Greater[T={takes[0]}](x0, zero:output:0)",
        f"negative = Neg[T={takes[0]}](x0)",
    ]
    arguments, results = (
        ", ".join(f"{letter}{i}: {dtype}" for i, dtype in enumerate(types))
        for letter, types in (("x", takes), ("y", gives))
    )
    return define(f"{name}({arguments}) -> ({results})", lines, **returned)


def model(called: str, wrong: str, kind: str = "computed", *, is_fed: bool = True) -> GraphDef:
    """The graph of a call, with its inputs fed or constant."""
    takes, gives = WRONG.get(wrong, (RIGHT, RIGHT))
    if called.endswith("cond"):
        gives, kind = RESULTS_OF_CONDITION.get(wrong, ["bool"]), "condition"
    calling = CALLS[called] if called in CALLS else gradient_call(wrong)
    made = GraphDef()
    made.versions.producer = 1000
    made.library.function.extend(
        [
            function("Wrong", takes, gives, kind),
            function("Right", RIGHT, RIGHT, "computed"),
            function("Holds", RIGHT, ["bool"], "condition"),
        ]
    )
    for name in dict.fromkeys(calling.input):
        value = VALUES[name]
        placed = made.node.add(name=name, op="Placeholder" if is_fed else "Const")
        placed.attr["dtype"].type = as_dtype(value.dtype)
        if is_fed:
            placed.attr["shape"].shape.SetInParent()
        else:
            placed.attr["value"].tensor.CopyFrom(tensor_to_proto(value))
    made.node.append(calling)
    return made


def within(made: GraphDef, caller: NodeDef) -> GraphDef:
    """The call in a function `Outer`, which a node calls."""
    *inputs, inner = made.node
    types = {one.name: DataType(one.attr["dtype"].type).string for one in inputs}
    arguments = ", ".join(f"{name}: {dtype}" for name, dtype in types.items())
    result = inner.attr["T" if "While" in inner.op else "Tout"].list.type[0]
    outer = define(f"Outer({arguments}) -> (y: {DataType(result).string})", y="call:output:0")
    outer.node_def.append(inner)
    made.library.function.append(outer)
    caller.input.extend(types)
    made.node.pop()
    made.node.append(caller)
    return made


def imported(made: GraphDef) -> Graph:
    """A GraphDef as a graph."""
    graph = Graph()
    with graph.as_default():
        import_graph_def(made, name="")
    return graph


def feeds_of(made: GraphDef) -> dict[str, Any]:
    """A value for each placeholder."""
    return {f"{one.name}:0": VALUES[one.name] for one in made.node if one.op == "Placeholder"}
