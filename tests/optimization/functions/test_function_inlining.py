"""Calls whose bodies take their places, by the options that they carry."""

from typing import Any

import numpy as np
import pytest

import opkernel
from opkernel import Graph, Session
from opkernel.errors import OpError
from opkernel.graph import func, function_def, graph_def, node_def
from opkernel.proto import ConfigProto

FLOAT = opkernel.float32
TWICE = function_def(
    "Twice", ["x: float"], ["y: float"], [node_def("y", "AddV2", ["x", "x"], T=FLOAT)],
    ret={"y": "y:z:0"},
)  # fmt: skip
USUAL = ConfigProto(device_count={"CPU": 1, "GPU": 0}, allow_soft_placement=True)


def called(**options: bytes) -> Graph:
    """A graph that calls a function, with options as TensorFlow writes them."""
    x = node_def("x", "Placeholder", dtype=FLOAT, shape=opkernel.PartialTensorShape(None))
    attrs: dict[str, Any] = {"Tin": [FLOAT], "Tout": [FLOAT], "f": func("Twice"), **options}
    twice = node_def("y", "PartitionedCall", ["x"], **attrs)
    graph = Graph()
    opkernel.import_graph_def(graph_def([x, twice], [TWICE]), graph=graph, name="")
    return graph


@pytest.mark.parametrize(
    "options", [{}, {"config_proto": USUAL.SerializeToString()}, {"config": b"anything"}]
)
def test_a_call_with_a_usual_configuration_is_inlined(options: dict[str, bytes]) -> None:
    with Session(called(**options)) as session:
        assert "Twice" not in session.plan("y:0", ["x:0"]).source
        assert session.run("y:0", {"x:0": np.float32(3)}) == 6


def test_a_call_with_another_executor_is_not_inlined() -> None:
    with Session(called(executor_type=b"DATAFLOW")) as session:
        assert "Twice" in session.plan("y:0", ["x:0"]).source
        assert session.run("y:0", {"x:0": np.float32(3)}) == 6


@pytest.mark.parametrize(
    "options",
    [{"config_proto": b"\xff"}, {"config": b"a", "config_proto": USUAL.SerializeToString()}],
)
def test_a_wrong_configuration_is_refused_by_the_call(options: dict[str, bytes]) -> None:
    with Session(called(**options)) as session, pytest.raises(OpError, match="config_proto"):
        session.run("y:0", {"x:0": np.float32(3)})
