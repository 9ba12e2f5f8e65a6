"""Graphs of very many nodes are compiled piece by piece."""

import asyncio
import re
from typing import Any

import numpy as np
import pytest

import opkernel
from opkernel.errors import InvalidArgumentError
from opkernel.graph import Graph
from opkernel.kernel import register_kernel
from opkernel.opdef import register_op, unchanged_shape
from opkernel.runtime.dataflow.run import DataflowExecutor

LATER = register_op(
    "LaterInLongGraph", inputs=["x: float"], outputs=["y: float"], shape_fn=unchanged_shape
)


@register_kernel(LATER, device="CPU")
async def later(x: Any) -> Any:
    await asyncio.sleep(0)
    return x


def long_graph() -> Graph:
    """4,500 additions of 1 to x, and a check that the sum is finite."""
    graph = Graph()
    with graph.as_default():
        tensor = opkernel.placeholder(opkernel.float32, name="x")
        one = opkernel.constant(np.float32(1), name="one")
        for number in range(4500):
            tensor = graph.create_op("AddV2", [tensor, one], name=f"n{number}").outputs[0]
        graph.create_op("CheckNumerics", [tensor], name="checked", attrs={"message": "too much"})
    return graph


def test_a_long_graph_is_cut_into_functions_and_gives_the_same() -> None:
    session = opkernel.Session(long_graph())
    assert session.run("n4499:0", {"x:0": 0.5}) == 4500.5
    assert session.run(["n4499:0", "n10:0", "one:0", "x:0"], {"x:0": 0.5}) == [4500.5, 11.5, 1, 0.5]
    assert session.run(["n4499:0", "n10:0"], {"x:0": 0.5, "n2000:0": 1.0}) == [2500, 11.5]
    assert session.plan("n4499:0", ["x:0"]).source.count("def ") == 10


def test_nodes_may_be_called_as_the_functions_that_a_plan_is_cut_into() -> None:
    graph = Graph()
    with graph.as_default():
        first = tensor = opkernel.placeholder(opkernel.float32, name="part_1")
        one = opkernel.constant(np.float32(1), name="part_0")
        for number in range(2500):
            tensor = graph.create_op("AddV2", [tensor, one], name=f"n{number}").outputs[0]
        graph.create_op("AddV2", [tensor, first], name="part_2")
    session = opkernel.Session(graph, optimize=False)
    assert session.run("part_2:0", {"part_1:0": 0.5}) == 2501
    source = session.plan("part_2:0", ["part_1:0"]).source
    functions = re.findall(r"^def (\w+)", source, re.MULTILINE)
    assert len(functions) > 2
    assert not {"part_0", "part_1", "part_2"} & {*functions}


def test_an_error_in_a_long_graph_names_its_node() -> None:
    session = opkernel.Session(long_graph())
    with pytest.raises(InvalidArgumentError, match=r"too much : Tensor had Inf(?s:.)*'checked'"):
        session.run("checked:0", {"x:0": np.inf})
    assert session.run("checked:0", {"x:0": 1.0}) == 4501


def test_a_long_graph_with_kernels_that_wait_is_run_by_dataflow() -> None:
    graph = long_graph()
    with graph.as_default():
        end = graph.get_tensor_by_name("n4499:0")
        graph.create_op(LATER.name, [end], name="later")
    session = opkernel.Session(graph)
    assert session.run("later:0", {"x:0": 1.0}) == 4501
    assert isinstance(session.plan("later:0", ["x:0"]), DataflowExecutor)
