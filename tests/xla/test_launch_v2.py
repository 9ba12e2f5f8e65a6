"""XlaLaunchV2: a function whose constants and variables attrs number; results are TensorFlow's."""

from typing import Any

import numpy as np
import pytest

import opkernel
from opkernel.graph import Graph, func, function_def, graph_def, import_graph_def, node_def

FLOAT, INT, RESOURCE = opkernel.float32, opkernel.int32, opkernel.resource

FUNCTION = function_def(
    "ReadAndFill",
    ["r: resource", "x: float", "s: int32"],
    ["y: float", "filled: float", "same: resource"],
    [
        node_def("read", "ReadVariableOp", ["r"], dtype=FLOAT),
        node_def("sum", "AddV2", ["read:value:0", "x"], T=FLOAT),
        node_def("fill", "Fill", ["s", "x"], T=FLOAT, index_type=INT),
        node_def("assign", "AssignAddVariableOp", ["r", "x", "^read"], dtype=FLOAT),
    ],
    ret={"y": "sum:z:0", "filled": "fill:output:0", "same": "r"},
)


def graph_with(constants, resources):
    called: dict[str, Any] = {"Targs": [RESOURCE, FLOAT, INT], "Tresults": [FLOAT, FLOAT, RESOURCE]}
    called |= {"constants": constants, "resources": resources, "function": func("ReadAndFill")}
    nodes = [
        node_def("x", "Placeholder", dtype=FLOAT),
        node_def("s", "Placeholder", dtype=INT),
        node_def("h", "VarHandleOp", dtype=FLOAT, shape=opkernel.TensorShape([]), shared_name="v"),
        node_def("init", "AssignVariableOp", ["h", "x"], dtype=FLOAT),
        node_def("launch", "XlaLaunchV2", ["h", "x", "s"], **called),
        node_def("after", "ReadVariableOp", ["launch:2"], dtype=FLOAT),
    ]
    graph = Graph()
    with graph.as_default():
        import_graph_def(graph_def(nodes, [FUNCTION]), name="")
    return graph


@pytest.mark.parametrize("compiles", [pytest.param(True, marks=pytest.mark.jax), False])
@pytest.mark.parametrize(("constants", "resources"), [([2], [0]), ([1, 2], []), ([2, 9], [0, 7])])
def test_arguments_keep_the_order_of_the_function(constants, resources, compiles, monkeypatch):
    if not compiles:
        monkeypatch.setenv("OPKERNEL_JIT", "never")
    with opkernel.Session(graph_with(constants, resources)) as session:
        session.run("init", {"x:0": 5.0})
        y, filled, after = session.run(
            ["launch:0", "launch:1", "after:0"], {"x:0": 2.0, "s:0": [3]}
        )
    assert (y, after) == (7, 7)
    np.testing.assert_array_equal(filled, np.full(3, 2, np.float32))
