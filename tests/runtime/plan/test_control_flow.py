"""Functional control flow, function calls, and switches outside loops, as plans run them."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest

import opkernel
import opkernel.types
from opkernel.errors import DeadlineExceededError, InvalidArgumentError
from opkernel.graph import Graph, Tensor, graph_to_function_def
from opkernel.proto import NameAttrList
from opkernel.types import DataType

FLOAT, INT32, BOOL = DataType.DT_FLOAT, DataType.DT_INT32, DataType.DT_BOOL
Body = Callable[..., Sequence[Tensor]]


def constant(graph: Graph, value: Any) -> Tensor:
    attrs = {"dtype": opkernel.types.as_dtype(np.asarray(value).dtype), "value": value}
    return graph.create_op("Const", [], attrs=attrs).outputs[0]


def op(graph: Graph, name: str, *inputs: Any, **attrs: Any) -> Tensor:
    return graph.create_op(name, list(inputs), attrs=attrs).outputs[0]


def define(graph: Graph, name: str, types: Sequence[DataType], body: Body) -> NameAttrList:
    """Add a function to the graph's library: `body(graph, *arguments)` makes its nodes."""
    inner = Graph(function_library=graph.function_library)
    arguments = [
        inner.create_op("Placeholder", [], name=f"a{i}", attrs={"dtype": dtype}).outputs[0]
        for i, dtype in enumerate(types)
    ]
    outputs = body(inner, *arguments)
    graph.function_library.add_function(graph_to_function_def(inner, name, arguments, outputs))
    return NameAttrList(name=name)


def placeholder(graph: Graph, name: str, dtype: DataType) -> Tensor:
    return graph.create_op("Placeholder", [], name=name, attrs={"dtype": dtype}).outputs[0]


@pytest.mark.parametrize("prefix", ["", "Stateless"])
@pytest.mark.parametrize(
    ("condition", "dtype", "expected"),
    [
        (True, BOOL, 10),
        (False, BOOL, 6),
        (3, INT32, 10),
        (0, INT32, 6),
        (b"text", DataType.DT_STRING, 10),
        (b"", DataType.DT_STRING, 6),
        (np.zeros(2, np.float32), FLOAT, 10),
        (np.zeros(0, np.float32), FLOAT, 6),
    ],
)
def test_if_takes_the_branch_that_the_condition_says(
    prefix: str, condition: Any, dtype: DataType, expected: float
) -> None:
    graph = Graph()
    double = define(graph, "double", [FLOAT], lambda g, x: [op(g, "AddV2", x, x)])
    more = define(
        graph, "more", [FLOAT], lambda g, x: [op(g, "AddV2", x, constant(g, np.float32(1)))]
    )
    c, x = placeholder(graph, "c", dtype), placeholder(graph, "x", FLOAT)
    attrs = {"then_branch": double, "else_branch": more, "Tout": [FLOAT]}
    graph.create_op(f"{prefix}If", [c, [x]], name="if", attrs=attrs)
    assert opkernel.Session(graph).run("if:0", {"c:0": condition, "x:0": 5.0}) == expected


@pytest.mark.parametrize(("index", "expected"), [(0, 10), (1, 6), (2, 6), (-1, 6)])
def test_case_takes_the_last_branch_for_an_index_out_of_range(index: int, expected: float) -> None:
    graph = Graph()
    double = define(graph, "double", [FLOAT], lambda g, x: [op(g, "AddV2", x, x)])
    more = define(
        graph, "more", [FLOAT], lambda g, x: [op(g, "AddV2", x, constant(g, np.float32(1)))]
    )
    i, x = placeholder(graph, "i", INT32), placeholder(graph, "x", FLOAT)
    graph.create_op(
        "Case", [i, [x]], name="case", attrs={"branches": [double, more], "Tout": [FLOAT]}
    )
    assert opkernel.Session(graph).run("case:0", {"i:0": index, "x:0": 5.0}) == expected


def powers_of_two(graph: Graph) -> None:
    """`loop`: i, x = n, 1; while i > 0: i, x = i - 1, 2 x."""
    condition = define(
        graph,
        "positive",
        [INT32, FLOAT],
        lambda g, i, x: [op(g, "Greater", i, constant(g, np.int32(0)))],
    )
    body = define(
        graph,
        "step",
        [INT32, FLOAT],
        lambda g, i, x: [op(g, "Sub", i, constant(g, np.int32(1))), op(g, "AddV2", x, x)],
    )
    n = placeholder(graph, "n", INT32)
    one = constant(graph, np.float32(1))
    attrs = {"cond": condition, "body": body}
    graph.create_op("StatelessWhile", [[n, one]], name="loop", attrs=attrs)


@pytest.mark.parametrize("n", [0, 1, 10])
def test_while_runs_its_body_while_the_condition_holds(n: int) -> None:
    graph = Graph()
    powers_of_two(graph)
    assert opkernel.Session(graph).run(["loop:0", "loop:1"], {"n:0": n}) == [0, 2**n]


def test_a_loop_without_end_stops_at_the_deadline_and_the_session_stays_usable() -> None:
    graph = Graph()
    always = define(graph, "always", [FLOAT], lambda g, x: [constant(g, np.bool_(True))])
    same = define(graph, "same", [FLOAT], lambda g, x: [op(g, "Neg", x)])
    x = placeholder(graph, "x", FLOAT)
    graph.create_op("While", [[x]], name="loop", attrs={"cond": always, "body": same})
    session = opkernel.Session(graph)
    with pytest.raises(DeadlineExceededError):
        session.run("loop:0", {"x:0": 1.0}, opkernel.RunOptions(timeout_in_ms=50))
    assert session.run("x:0", {"x:0": 1.0}) == 1


@pytest.mark.parametrize("call", ["PartitionedCall", "StatefulPartitionedCall", "double"])
def test_functions_are_called_by_attr_or_by_the_name_of_the_op(call: str) -> None:
    graph = Graph()
    double = define(graph, "double", [FLOAT], lambda g, x: [op(g, "AddV2", x, x)])
    x = placeholder(graph, "x", FLOAT)
    if call == "double":
        graph.create_op(call, [x], name="call")
    else:
        graph.create_op(call, [[x]], name="call", attrs={"f": double, "Tout": [FLOAT]})
    assert opkernel.Session(graph).run("call:0", {"x:0": 4.0}) == 8


def test_a_function_may_call_itself() -> None:
    graph = Graph()
    factorial = NameAttrList(name="factorial")
    define(graph, "one", [INT32], lambda g, n: [constant(g, np.int32(1))])

    def recurse(g: Graph, n: Tensor) -> Sequence[Tensor]:
        less = op(g, "Sub", n, constant(g, np.int32(1)))
        inner = g.create_op("PartitionedCall", [[less]], attrs={"f": factorial, "Tout": [INT32]})
        return [op(g, "Mul", n, inner.outputs[0])]

    define(graph, "recurse", [INT32], recurse)

    def body(g: Graph, n: Tensor) -> Sequence[Tensor]:
        attrs = {
            "then_branch": NameAttrList(name="recurse"),
            "else_branch": NameAttrList(name="one"),
            "Tout": [INT32],
        }
        positive = op(g, "Greater", n, constant(g, np.int32(0)))
        return [g.create_op("StatelessIf", [positive, [n]], attrs=attrs).outputs[0]]

    define(graph, "factorial", [INT32], body)
    n = placeholder(graph, "n", INT32)
    graph.create_op("PartitionedCall", [[n]], name="f", attrs={"f": factorial, "Tout": [INT32]})
    assert opkernel.Session(graph).run("f:0", {"n:0": 6}) == 720


def test_an_error_inside_a_function_names_the_node_in_it() -> None:
    graph = Graph()
    product = define(graph, "product", [FLOAT, FLOAT], lambda g, a, b: [op(g, "MatMul", a, b)])
    a, b = placeholder(graph, "a", FLOAT), placeholder(graph, "b", FLOAT)
    attrs = {"f": product, "Tout": [FLOAT]}
    graph.create_op("PartitionedCall", [[a, b]], name="call", attrs=attrs)
    feed = {"a:0": np.ones((1, 2)), "b:0": np.ones((3, 1))}
    with pytest.raises(InvalidArgumentError, match="Matrix size-incompatible") as caught:
        opkernel.Session(graph, optimize=False).run("call:0", feed)
    assert (caught.value.op, caught.value.node) == ("MatMul", "MatMul")


def switched(graph: Graph) -> None:
    """merged = 2 x if p else -x, by Switch and Merge; only_true is dead where p does not hold."""
    p, x = placeholder(graph, "p", BOOL), placeholder(graph, "x", FLOAT)
    off, on = graph.create_op("Switch", [x, p], name="switch").outputs
    doubled = op(graph, "AddV2", on, on)
    negated = op(graph, "Neg", off)
    graph.create_op("Merge", [[negated, doubled]], name="merged")
    graph.create_op("Identity", [doubled], name="only_true")
    pivot = graph.create_op("Identity", [off], name="pivot")
    attrs = {"dtype": FLOAT, "value": np.float32(7)}
    graph.create_op("Const", [], name="only_false", attrs=attrs, control_inputs=[pivot])


@pytest.mark.parametrize(("p", "expected", "index"), [(True, 6, 1), (False, -3, 0)])
def test_merge_passes_on_the_branch_that_was_taken(p: bool, expected: float, index: int) -> None:
    graph = Graph()
    switched(graph)
    values = opkernel.Session(graph).run(["merged:0", "merged:1"], {"p:0": p, "x:0": 3.0})
    assert values == [expected, index]


def test_identity_n_passes_on_all_its_inputs_or_none() -> None:
    graph = Graph()
    switched(graph)
    x, doubled = (graph.get_tensor_by_name(name) for name in ("x:0", "only_true:0"))
    graph.create_op("IdentityN", [[x, x]], name="alive")
    graph.create_op("IdentityN", [[x, doubled]], name="on_branch")
    session = opkernel.Session(graph)
    assert session.run(["alive:0", "alive:1"], {"x:0": 3.0}) == [3, 3]
    assert session.run(["on_branch:0", "on_branch:1"], {"p:0": True, "x:0": 3.0}) == [3, 6]
    with pytest.raises(InvalidArgumentError, match="on_branch:0"):
        session.run("on_branch:0", {"p:0": False, "x:0": 3.0})


def test_fetching_a_dead_tensor_is_an_error() -> None:
    graph = Graph()
    switched(graph)
    session = opkernel.Session(graph)
    assert session.run("only_true:0", {"p:0": True, "x:0": 3.0}) == 6
    with pytest.raises(InvalidArgumentError, match="only_true:0"):
        session.run("only_true:0", {"p:0": False, "x:0": 3.0})
    assert session.run("only_false:0", {"p:0": False, "x:0": 3.0}) == 7
    with pytest.raises(InvalidArgumentError, match="only_false:0"):
        session.run("only_false:0", {"p:0": True, "x:0": 3.0})
