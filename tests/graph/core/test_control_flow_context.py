"""What builds control flow of TensorFlow 1 by hand is told of the operations made in it."""

import threading

import pytest

from opkernel.graph import Graph, Operation, import_graph_def
from opkernel.proto import GraphDef, NodeDef


class Context:
    def __init__(self) -> None:
        self.names: list[str] = []

    def AddOp(self, op: Operation) -> None:  # TensorFlow's name
        assert op.graph.get_operation_by_name(op.name) is op
        self.names.append(op.name)


@pytest.fixture
def context(graph: Graph) -> Context:
    context = Context()
    graph._set_control_flow_context(context)
    return context


def test_operations_are_in_the_context_that_they_were_made_in(graph: Graph) -> None:
    before = graph.create_op("NoOp", name="before")
    context = Context()
    graph._set_control_flow_context(context)
    inside = graph.create_op("NoOp", name="inside")
    graph._set_control_flow_context(None)
    after = graph.create_op("NoOp", name="after")
    assert inside._get_control_flow_context() is inside._control_flow_context is context
    assert before._get_control_flow_context() is None
    assert after._get_control_flow_context() is None
    assert context.names == ["inside"]


def test_so_are_imported_ones(graph: Graph, context: Context) -> None:
    with graph.as_default():
        import_graph_def(GraphDef(node=[NodeDef(name="n", op="NoOp")]), name="i")
    assert context.names == ["i/n"]
    assert graph.get_operation_by_name("i/n")._get_control_flow_context() is context


def test_no_control_dependencies_means_no_context(graph: Graph, context: Context) -> None:
    with graph.control_dependencies(None):
        free = graph.create_op("NoOp", name="free")
        assert graph._get_control_flow_context() is None
    assert free._get_control_flow_context() is None
    assert graph._get_control_flow_context() is context
    with graph.control_dependencies([free]):
        graph.create_op("NoOp", name="bound")
    assert context.names == ["bound"]


def test_an_operation_may_be_put_into_another_context(graph: Graph, context: Context) -> None:
    op, other = graph.create_op("NoOp"), Context()
    op._set_control_flow_context(other)
    assert op._get_control_flow_context() is other
    op._set_control_flow_context(None)
    assert op._get_control_flow_context() is None
    op._control_flow_context = context
    assert op._get_control_flow_context() is context
    assert other.names == []


def test_another_thread_builds_outside_of_it(graph: Graph, context: Context) -> None:
    found: list[object] = []

    def build() -> None:
        found.append(graph.create_op("NoOp")._get_control_flow_context())

    thread = threading.Thread(target=build)
    thread.start()
    thread.join()
    assert found == [None]
    assert graph._control_flow_context is context
