"""A session goes by the version that its graph has, whenever older GraphDefs are imported into it."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import opkernel
from opkernel.errors import UnimplementedError
from opkernel.graph import func, function_def, graph_def, node_def
from opkernel.opdef import GRAPH_DEF_VERSION
from opkernel.proto import FunctionDef, GraphDef, NodeDef, VersionDef
from opkernel.types.dtype import DataType

FLOAT = DataType.DT_FLOAT
OLD = 8
"""The last version in which the op is there."""


@pytest.fixture(autouse=True)
def deprecated_ops() -> Iterator[None]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        yield


def constant(name: str, value: object) -> NodeDef:
    return node_def(name, "Const", dtype=FLOAT, value=np.asarray(value, "f4"))


def normalization(suffix: str) -> list[NodeDef]:
    """An op of old graphs, and its inputs: it gives beta, which is 7."""
    values = [constant("t", [[[[1]]]])]
    values += [constant(*pair) for pair in (("m", [1]), ("v", [1]), ("b", [7]), ("g", [1]))]
    inputs = [value.name + suffix for value in values]
    attrs: dict[str, Any] = {"variance_epsilon": 0.0, "scale_after_normalization": False}
    return [*values, node_def("old", "BatchNormWithGlobalNormalization", inputs, T=FLOAT, **attrs)]


def plain(producer: int = OLD) -> GraphDef:
    return GraphDef(node=normalization(""), versions=VersionDef(producer=producer))


def function() -> FunctionDef:
    return function_def("OldBody", [], ["y: float"], normalization(""), ret={"y": "old"})


def calling(producer: int = OLD) -> GraphDef:
    call = node_def("old", "StatefulPartitionedCall", f=func("OldBody"), Tin=[], Tout=[FLOAT])
    made = graph_def([call], [function()])
    made.versions.producer = producer
    return made


def take(graph: opkernel.Graph, made: GraphDef) -> None:
    opkernel.import_graph_def(made, graph=graph, name="")


def with_constant() -> opkernel.Graph:
    graph = opkernel.Graph()
    with graph.as_default():
        opkernel.constant(3.0, name="c")
    return graph


HOW = [
    {},
    {"optimize": False},
    {"executor_type": "DATAFLOW"},
    {"config": opkernel.SessionConfig(operation_timeout_in_ms=60000)},
    {"config": opkernel.SessionConfig(device_count={"CPU": 2})},
]


@pytest.mark.parametrize("make", [plain, calling])
@pytest.mark.parametrize("options", HOW)
class TestOrders:
    def test_the_old_graph_comes_before_the_session(self, make, options):
        graph = with_constant()
        take(graph, make())
        with opkernel.Session(graph, **options) as session:
            assert session.run(["old:0", "c:0"]) == [[[[[7.0]]]], 3.0]

    def test_the_old_graph_comes_after_the_session(self, make, options):
        graph = opkernel.Graph()
        with opkernel.Session(graph, **options) as session:
            take(graph, make())
            assert session.run("old:0") == [[[[7.0]]]]

    def test_the_old_graph_comes_after_a_step(self, make, options):
        graph = with_constant()
        with opkernel.Session(graph, **options) as session:
            session.run("c:0")
            take(graph, make())
            assert session.make_callable("old:0")() == [[[[7.0]]]]
            assert session.run("c:0") == 3.0

    def test_a_newer_graph_comes_last(self, make, options):
        graph = opkernel.Graph()
        take(graph, make())
        with opkernel.Session(graph, **options) as session:
            session.run("old:0")
            newer = GraphDef(node=[constant("new", 5)], versions=VersionDef(producer=2000))
            take(graph, newer)
            assert session.run(["old:0", "new:0"]) == [[[[[7.0]]]], 5.0]

    def test_a_function_was_refused_before(self, make, options):
        """It is judged anew once the graph is older."""
        graph = with_constant()
        with opkernel.Session(graph, **options) as session:
            take(graph, calling(GRAPH_DEF_VERSION))
            with pytest.raises(UnimplementedError, match="BatchNormWithGlobalNormalization"):
                session.run("old:0")
            take(graph, GraphDef(versions=VersionDef(producer=OLD)))
            assert session.run("old:0") == [[[[7.0]]]]


def test_the_oldest_producer_and_the_newest_consumer_count() -> None:
    graph = opkernel.Graph()
    for producer, consumer in ((100, 10), (50, 5), (2000, 12)):
        take(graph, GraphDef(versions=VersionDef(producer=producer, min_consumer=consumer)))
    assert graph.graph_def_versions.producer == 50
    assert graph.graph_def_versions.min_consumer == 12


def test_a_direct_session_is_extended_by_an_older_graph() -> None:
    config = opkernel.SessionConfig(disable_optimize_for_static_graph=True)
    with opkernel.DirectSession(config) as session:
        first = GraphDef(node=[constant("c", 3)], versions=VersionDef(producer=GRAPH_DEF_VERSION))
        session.create(first)
        session.run([], ["c:0"])
        session.extend(plain())
        assert session.run([], ["old:0"]) == [[[[7.0]]]]
