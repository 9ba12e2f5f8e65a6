"""Shape functions say what TensorFlow's say of nodes with drawn shapes, values and attrs.

`tests/data/make_drawn_shapes.py` drew the nodes, and asked TensorFlow 2.21.
"""

import functools
import lzma
from pathlib import Path
from typing import Any

import pytest

from opkernel.errors import OpError
from opkernel.graph import Graph, import_graph_def
from opkernel.proto import GraphDef, NodeDef, TensorShapeProto

FILE = Path(__file__).parent.parent / "data" / "drawn_shapes.pb.xz"
Answer = list[list[int | None] | None] | str
"""The shapes of a node's outputs, with None for what is unknown, or `"error"`."""


def answer_of(graph_def: GraphDef) -> Answer:
    """What opkernel says of the last node of a graph."""
    with Graph().as_default() as graph:
        try:
            import_graph_def(graph_def, name="")
            outputs = graph.get_operation_by_name("n").outputs
            shapes = [tensor.shape for tensor in outputs]
        except OpError:
            return "error"
    return [None if shape.rank is None else shape.as_list() for shape in shapes]


def as_attr(answer: Answer) -> NodeDef:
    """A node with the attr that keeps an answer."""
    node = NodeDef()
    if isinstance(answer, str):
        node.attr["_refused"].b = True
        return node
    shapes = node.attr["_output_shapes"].list
    shapes.SetInParent()
    for dims in answer:
        sizes = [-1 if dim is None else dim for dim in dims or ()]
        dim = [TensorShapeProto.Dim(size=size) for size in sizes]
        shapes.shape.add(unknown_rank=dims is None, dim=dim)
    return node


def taken_answer(node: NodeDef) -> Answer:
    """The answer that a node keeps, which the node loses."""
    if "_refused" in node.attr:
        del node.attr["_refused"]
        return "error"
    kept = [*node.attr["_output_shapes"].list.shape]
    del node.attr["_output_shapes"]
    return [
        None if shape.unknown_rank else [None if dim.size < 0 else dim.size for dim in shape.dim]
        for shape in kept
    ]


@functools.cache
def graphs() -> dict[str, list[GraphDef]]:
    """Graphs of single nodes with their inputs, by the initials of ops."""
    found: dict[str, list[GraphDef]] = {}
    graph = GraphDef()
    for node in GraphDef.FromString(lzma.decompress(FILE.read_bytes())).node:
        graph.node.append(node)
        if node.name == "n":
            found.setdefault(node.op, []).append(graph)
            graph = GraphDef()
    return found


def all_ops() -> list[str]:
    return [*graphs()] if FILE.exists() else []


@pytest.mark.filterwarnings("ignore:Op .* is deprecated")
@pytest.mark.parametrize("op", all_ops())
def test_shapes_are_those_of_tensorflow(op: str) -> None:
    for kept in graphs()[op]:
        graph_def = GraphDef()
        graph_def.CopyFrom(kept)
        expected: Any = taken_answer(graph_def.node[-1])
        assert answer_of(graph_def) == expected, graph_def
