"""Nodes that older optimisers wrote load with what held at their time."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import opkernel
from opkernel.graph import load_graph
from opkernel.proto import GraphDef

ATTRS = """
  attr { key: "T" value { type: DT_FLOAT } }
  attr { key: "num_args" value { i: 1 } }
  attr { key: "fused_ops" value { list { s: "BiasAdd" s: "Relu" } } }
  attr { key: "strides" value { list { i: 1 i: 1 i: 1 i: 1 } } }
  attr { key: "padding" value { s: "SAME" } }
"""
INPUTS = "".join(
    f'node {{ name: "{name}" op: "Placeholder" attr {{ key: "dtype" value {{ type: DT_FLOAT }} }} }}\n'
    for name in ("x", "w", "b")
)
CONVOLUTION = (
    INPUTS + f'node {{ name: "y" op: "_FusedConv2D" input: "x" input: "w" input: "b" {ATTRS} }}\n'
)
IN_A_FUNCTION = (
    INPUTS
    + """
node { name: "y" op: "convolve" input: "x" input: "w" input: "b" }
library { function {
  signature { name: "convolve" input_arg { name: "x" type: DT_FLOAT } input_arg { name: "w" type: DT_FLOAT }
    input_arg { name: "b" type: DT_FLOAT } output_arg { name: "y" type: DT_FLOAT } }
  node_def { name: "z" op: "_FusedConv2D" input: "x" input: "w" input: "b" """
    + ATTRS
    + """ }
  ret { key: "y" value: "z:output:0" }
} }
"""
)


@pytest.mark.parametrize(
    "text", [CONVOLUTION, IN_A_FUNCTION], ids=["in the graph", "in a function"]
)
def test_a_fused_convolution_without_the_types_of_its_arguments(tmp_path: Path, text: str) -> None:
    path = tmp_path / "graph.pbtxt"
    path.write_text(text)
    graph = load_graph(path)
    x = np.array([[[[1.0], [-2.0]]]], np.float32)
    feeds = {
        "x:0": x,
        "w:0": np.full((1, 1, 1, 2), 3, np.float32),
        "b:0": np.array([1, -1], np.float32),
    }
    with opkernel.Session(graph) as session:
        found = session.run("y:0", feeds)
    assert found.tolist() == [[[[4, 2], [0, 0]]]]


def test_what_it_lacks_is_written_with_it(tmp_path: Path) -> None:
    """A graph that is saved here loads in TensorFlow."""
    path = tmp_path / "graph.pbtxt"
    path.write_text(CONVOLUTION)
    saved: GraphDef = load_graph(path).as_graph_def()
    (node,) = [one for one in saved.node if one.op == "_FusedConv2D"]
    assert [*node.attr["TArgs"].list.type] == [1]
    assert node.attr["num_host_args"].i == 0
