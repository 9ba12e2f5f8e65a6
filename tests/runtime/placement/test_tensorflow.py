"""TensorFlow on several CPUs gives the same values, and puts explicit nodes on the same devices."""

import random

import numpy as np
import pytest
from tests.runtime.placement.test_partitions import SAMPLES, X, for_resources_together, sample

import opkernel
from opkernel.graph import import_graph_def
from opkernel.proto import GraphDef, RunMetadata

pytestmark = pytest.mark.tensorflow
DEVICES = [f"/device:CPU:{n}" for n in range(3)]


def placements(partition_graphs, names):
    """The devices of nodes that a step ran, where TensorFlow has left them in the graph."""
    nodes = [node for graph in partition_graphs for node in graph.node]
    return {node.name: node.device for node in nodes if node.name in names}


@pytest.mark.parametrize("build", SAMPLES)
def test_values_and_explicit_placements_are_tensorflows(tf, build):
    graph_def, fetches = sample(build)
    for seed in range(3):
        dice = random.Random(seed)
        given = GraphDef.FromString(graph_def.SerializeToString())
        for node in given.node:
            node.device = dice.choice(DEVICES)
        graph = opkernel.Graph()
        with graph.as_default():
            import_graph_def(given, name="")
        for_resources_together(graph)
        scattered = graph.as_graph_def().SerializeToString()
        asked = {node.name for node in GraphDef.FromString(scattered).node if node.device}
        values, placed = ours(graph, fetches)
        expected, theirs = tensorflows(tf, scattered, fetches)
        for value, one in zip(values, expected, strict=True):
            np.testing.assert_allclose(value, one, rtol=1e-6)
        found = placements(placed, asked)
        where = placements(theirs, asked & found.keys())
        assert where == {name: found[name] for name in where}
        assert where


def ours(graph, fetches):
    config = opkernel.SessionConfig(device_count={"CPU": 3}, optimize=False)
    metadata, options = RunMetadata(), opkernel.RunOptions(output_partition_graphs=True)
    with opkernel.Session(graph, config=config) as session:
        return session.run(fetches, {"x:0": X}, options, metadata), metadata.partition_graphs


def tensorflows(tf, graph_def, fetches):
    v1 = tf.compat.v1
    graph = tf.Graph()
    with graph.as_default():
        tf.import_graph_def(v1.GraphDef.FromString(graph_def), name="")
    config = v1.ConfigProto(device_count={"CPU": 3})
    config.graph_options.rewrite_options.disable_meta_optimizer = True
    config.graph_options.optimizer_options.opt_level = -1
    metadata, options = v1.RunMetadata(), v1.RunOptions(output_partition_graphs=True)
    with v1.Session(graph=graph, config=config) as session:
        return session.run(fetches, {"x:0": X}, options, metadata), metadata.partition_graphs
