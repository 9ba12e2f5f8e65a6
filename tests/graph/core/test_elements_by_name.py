"""`graph[name]`, `name in graph` and `len(graph)`."""

from typing import Any

import pytest

import opkernel
from opkernel.errors import InvalidArgumentError, NotFoundError


@pytest.fixture
def graph() -> opkernel.Graph:
    graph = opkernel.Graph()
    with graph.as_default():
        opkernel.placeholder(opkernel.float32, [2], name="scope/x") * 2.0
    return graph


def test_names_give_operations_and_tensors(graph: opkernel.Graph) -> None:
    assert graph["scope/x"] is graph.get_operation_by_name("scope/x")
    assert graph["scope/x:0"] is graph.get_tensor_by_name("scope/x:0")
    assert len(graph) == 3
    assert "scope/x" in graph
    assert "scope/x:0" in graph
    assert "scope/x:1" not in graph
    assert graph["scope/x:0"] in graph


@pytest.mark.parametrize(
    ("name", "error", "message"),
    [
        ("scope/z", NotFoundError, "not in the graph; perhaps you mean scope/x"),
        ("scope/x:1", NotFoundError, "exists but only has 1 outputs"),
        (0, InvalidArgumentError, "by name, not by 0: graph\\['x'\\] is an operation"),
    ],
)
def test_unknown_elements_are_refused(
    graph: opkernel.Graph, name: Any, error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        graph[name]
