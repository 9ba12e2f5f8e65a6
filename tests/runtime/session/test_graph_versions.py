"""A session goes by the version that its graph has, whenever older GraphDefs are imported into it."""

from __future__ import annotations

import warnings
from collections.abc import Iterator

import numpy as np
import pytest

import opkernel
from opkernel.errors import UnimplementedError
from opkernel.opdef import GRAPH_DEF_VERSION
from opkernel.proto import FunctionDef, GraphDef, NodeDef, OpDef, VersionDef
from opkernel.types.dtype import DataType
from opkernel.types.tensor import tensor_to_proto

FLOAT = DataType.DT_FLOAT
OLD = 8
"""The last version in which the op is there."""


@pytest.fixture(autouse=True)
def deprecated_ops() -> Iterator[None]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        yield


def constant(name: str, value: object) -> NodeDef:
    node = NodeDef(name=name, op="Const")
    node.attr["dtype"].type = FLOAT
    node.attr["value"].tensor.CopyFrom(tensor_to_proto(np.asarray(value, "f4")))
    return node


def normalization(suffix: str) -> list[NodeDef]:
    """An op of old graphs, and its inputs: it gives beta, which is 7."""
    values = [constant("t", [[[[1]]]])]
    values += [constant(*pair) for pair in (("m", [1]), ("v", [1]), ("b", [7]), ("g", [1]))]
    node = NodeDef(name="old", op="BatchNormWithGlobalNormalization")
    node.input.extend([value.name + suffix for value in values])
    node.attr["T"].type = FLOAT
    node.attr["variance_epsilon"].f = 0.0
    node.attr["scale_after_normalization"].b = False
    return [*values, node]


def plain(producer: int = OLD) -> GraphDef:
    return GraphDef(node=normalization(""), versions=VersionDef(producer=producer))


def function() -> FunctionDef:
    signature = OpDef(name="OldBody", output_arg=[OpDef.ArgDef(name="y", type=FLOAT)])
    nodes = normalization(":output:0")
    return FunctionDef(signature=signature, node_def=nodes, ret={"y": "old:result:0"})


def calling(producer: int = OLD) -> GraphDef:
    call = NodeDef(name="old", op="StatefulPartitionedCall")
    call.attr["f"].func.name = "OldBody"
    call.attr["Tin"].list.SetInParent()
    call.attr["Tout"].list.type.append(FLOAT)
    graph_def = GraphDef(node=[call], versions=VersionDef(producer=producer))
    graph_def.library.function.append(function())
    return graph_def


def take(graph: opkernel.Graph, graph_def: GraphDef) -> None:
    opkernel.import_graph_def(graph_def, graph=graph, name="")


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
