"""Graphs as collections of operations, their copies, and graphs in pickles."""

from __future__ import annotations

import copy
import pickle
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from opkernel import (
    Graph,
    Session,
    cond,
    float32,
    function,
    load_graph,
    raw_ops,
    register_op,
    while_loop,
)
from opkernel.errors import FailedPreconditionError
from opkernel.opdef import OpDefBuilder, OpRegistry, global_op_registry, unknown_shape

ROOT = Path(__file__).resolve().parents[3]
SAMPLE = ROOT / "tests" / "data" / "graph_with_functions.pb"
WAYS: dict[str, Callable[[Any], Any]] = {
    "copy": copy.copy,
    "deepcopy": copy.deepcopy,
    "pickle": lambda value: pickle.loads(pickle.dumps(value)),
}


@pytest.fixture(params=WAYS)
def again(request: pytest.FixtureRequest) -> Callable[[Any], Any]:
    """A way to have a graph once more."""
    return WAYS[request.param]


def network() -> Graph:
    """A graph with a constant, a call of a function, a conditional and a loop; y = f(x)."""

    @function
    def twice(x):
        return raw_ops.AddV2(x=x, y=x)

    with Graph().as_default() as graph:
        x = raw_ops.Placeholder(dtype=float32, shape=[None], name="x")
        total = raw_ops.Sum(input=twice(x), axis=[0])
        chosen = cond(total > 3.0, lambda: total * 2.0, lambda: total + 1.0)
        y = while_loop(lambda one: one < 50.0, lambda one: one * 3.0, [chosen])
        raw_ops.Identity(input=y[0] if isinstance(y, list | tuple) else y, name="y")
    return graph


class TestCollection:
    def test_length_and_iteration(self) -> None:
        graph = load_graph(SAMPLE)
        assert len(graph) == len(graph.get_operations()) > 0
        assert list(graph) == graph.get_operations()

    def test_a_graph_without_operations_is_true(self) -> None:
        assert len(Graph()) == 0
        assert Graph()

    def test_in(self) -> None:
        graph, other = network(), network()
        x = graph.get_tensor_by_name("x:0")
        own: list[object] = ["x", "x:0", x, x.op]
        assert [element in graph for element in own] == [True] * 4
        foreign: list[object] = ["z", "x:1", "", "^x", 3, None, other.get_tensor_by_name("x:0")]
        assert [element in graph for element in foreign] == [False] * 7


class TestCopies:
    def test_it_computes_the_same(self, again: Callable[[Any], Any]) -> None:
        graph = network()
        made = again(graph)
        assert made is not graph
        assert made.as_graph_def() == graph.as_graph_def()
        assert len(made.function_library) == len(graph.function_library) > 0
        for value in ([1.0, 2.0], [0.25]):
            with Session(graph) as one, Session(made) as other:
                wanted = one.run("y:0", {"x:0": np.array(value, np.float32)})
                found = other.run("y:0", {"x:0": np.array(value, np.float32)})
            assert found == wanted

    def test_it_is_changed_by_itself(self, again: Callable[[Any], Any]) -> None:
        graph = network()
        count, made = len(graph), again(graph)
        with made.as_default():
            raw_ops.NoOp(name="x")
        assert [op.name for op in made][-1] == "x_1"
        assert len(graph) == count

    def test_versions_and_collections_and_finalized(self, again: Callable[[Any], Any]) -> None:
        graph = network()
        graph.graph_def_versions.producer = 1000
        graph.graph_def_versions.bad_consumers.append(7)
        graph.add_to_collection("outputs", graph.get_tensor_by_name("y:0"))
        graph.finalize()
        made = again(graph)
        assert made.graph_def_versions == graph.graph_def_versions
        (output,) = made.get_collection("outputs")
        assert output is made.get_tensor_by_name("y:0")
        with pytest.raises(FailedPreconditionError, match="finalized"), made.as_default():
            raw_ops.NoOp()

    def test_tensors_and_operations_go_with_their_graph(self) -> None:
        graph = network()
        held = {"graph": graph, "x": graph.get_tensor_by_name("x:0"), "y": graph.by_name["y"]}
        for way in ("deepcopy", "pickle"):
            made = WAYS[way](held)
            assert made["x"] is made["graph"].get_tensor_by_name("x:0")
            assert made["y"] is made["graph"].get_operation_by_name("y")
            assert made["graph"] is not graph
        assert copy.copy(held["x"]) is held["x"]

    def test_names_that_functions_alone_may_have(self, again: Callable[[Any], Any]) -> None:
        @function
        def square(x):
            return x * x

        body = square.get_concrete_function(np.float32(2)).graph
        made = again(body)
        assert type(made) is Graph
        assert [op.name for op in made] == [op.name for op in body]

    def test_unknown_ops_stay_unknown(self, again: Callable[[Any], Any], tmp_path: Path) -> None:
        file = tmp_path / "model.pbtxt"
        file.write_text('node { name: "a" op: "Nobody" } versions { producer: 1000 }')
        graph = load_graph(file, allow_unregistered=True)
        assert [op.type for op in again(graph)] == ["Nobody"]

    def test_ops_of_a_registry_of_its_own(self) -> None:
        registry = OpRegistry()
        registry.register(OpDefBuilder("Mine").output("y: float").set_shape_fn(unknown_shape))
        graph = Graph(registry)
        graph.create_op("Mine", name="mine")
        assert copy.deepcopy(graph).op_registry is registry
        found = pickle.loads(pickle.dumps(graph))
        assert found.get_tensor_by_name("mine:0").dtype is float32
        assert found.op_registry.look_up_op_def("Mine") == registry.look_up_op_def("Mine")

    def test_ops_that_the_other_process_lacks(self, tmp_path: Path) -> None:
        (tmp_path / "graph.pickle").write_bytes(_pickle_with_a_registered_op())
        code = """
import pickle, sys
graph = pickle.load(open(sys.argv[1], "rb"))
print(repr(graph), [t.dtype.tf_name for op in graph for t in op.outputs])
"""
        done = subprocess.run(
            [sys.executable, "-c", code, str(tmp_path / "graph.pickle")],
            env={"PYTHONPATH": str(ROOT / "src")},
            capture_output=True,
            text=True,
            check=True,
        )
        assert done.stdout == "<opkernel.Graph of 2 operations> ['int32', 'float32']\n"


def _pickle_with_a_registered_op() -> bytes:
    register_op("OfThisTest", inputs=["x: int32"], outputs=["y: float"], shape_fn=unknown_shape)
    try:
        with Graph().as_default() as graph:
            graph.create_op("OfThisTest", [raw_ops.Const(value=1, dtype="int32")])
        return pickle.dumps(graph)
    finally:
        global_op_registry().unregister("OfThisTest")
