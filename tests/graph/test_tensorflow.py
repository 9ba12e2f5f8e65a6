"""Graphs beside TensorFlow's own: the same order, edges, shapes; TensorFlow reads what we write."""

from pathlib import Path
from types import ModuleType

import pytest

import opkernel.runtime  # noqa: F401  # shape inference folds constants with the runtime's kernels
from opkernel.graph import Graph, load_graph

pytestmark = [pytest.mark.tensorflow, pytest.mark.shared]

MODELS = ["bert_tiny", "conv_mix", "functional_control_flow", "mlp", "mobilenet_v2"]


def tensorflow_graph(tf: ModuleType, serialized: bytes):
    graph = tf.compat.v1.Graph()
    with graph.as_default():
        graph_def = tf.compat.v1.GraphDef.FromString(serialized)
        tf.compat.v1.import_graph_def(graph_def, name="")
    return graph


def edges(graph) -> dict[str, tuple[list[str], set[str], list[list[str]]]]:
    """Of each operation: inputs, control inputs, consumers of each output."""
    return {
        op.name: (
            [tensor.name for tensor in op.inputs],
            {control.name for control in op.control_inputs},
            [sorted(user.name for user in tensor.consumers()) for tensor in op.outputs],
        )
        for op in graph.get_operations()
    }


KNOWN_HERE_ALONE = {"bert_tiny": 24}
"""How many tensors of a model have sizes that TensorFlow's refiner does not follow."""


def shapes(graph) -> dict[str, list[int | None] | None]:
    return {
        tensor.name: None if tensor.shape.rank is None else list(tensor.shape.as_list())
        for op in graph.get_operations()
        for tensor in op.outputs
    }


@pytest.fixture(params=MODELS)
def path(request: pytest.FixtureRequest, shared: Path) -> Path:
    return shared / "models" / request.param / "graph.pb"


def test_order_and_edges(tf: ModuleType, path: Path) -> None:
    own = edges(load_graph(path))
    theirs = edges(tensorflow_graph(tf, path.read_bytes()))
    assert list(own) == list(theirs)
    assert own == theirs


def test_shapes(tf: ModuleType, path: Path) -> None:
    """What TensorFlow knows is known here; sizes that follow from arithmetic are known here alone."""
    own = shapes(load_graph(path))
    theirs = shapes(tensorflow_graph(tf, path.read_bytes()))
    assert {name: own[name] for name in theirs if not tells(own[name], theirs[name])} == {}
    beyond = [name for name in theirs if own[name] != theirs[name]]
    assert len(beyond) == KNOWN_HERE_ALONE.get(path.parent.name, 0), beyond


def tells(shape: list[int | None] | None, other: list[int | None] | None) -> bool:
    """Whether a shape says all that another one says."""
    if other is None:
        return True
    return (
        shape is not None
        and len(shape) == len(other)
        and all(b in (None, a) for a, b in zip(shape, other, strict=True))
    )


def test_tensorflow_reads_what_is_written(tf: ModuleType, path: Path) -> None:
    graph = load_graph(path)
    serialized = graph.as_graph_def().SerializeToString()
    assert edges(tensorflow_graph(tf, serialized)) == edges(graph)


def test_names_and_scopes(tf: ModuleType) -> None:
    """The same calls on both graphs."""
    own, theirs = Graph(), tf.compat.v1.Graph()
    for graph in (own, theirs):
        make = graph.create_op
        first = make("NoOp", [], [], name="a")
        with graph.name_scope("A"), graph.device("/gpu:1"):
            make("NoOp", [], [], name="a")
            with graph.control_dependencies([first]), graph.device("/job:w/cpu:0"):
                second = make("NoOp", [], [])
        with graph.colocate_with(second), graph.name_scope("A/"):
            make("NoOp", [], [], name="a")
    assert wiring(own) == wiring(theirs)


def wiring(graph) -> list[tuple[str, str, list[str], str, list[bytes]]]:
    """Name, op, inputs, device and colocation groups of each node that is exported."""
    return [
        (node.name, node.op, list(node.input), node.device, list(node.attr["_class"].list.s))
        for node in graph.as_graph_def().node
    ]
