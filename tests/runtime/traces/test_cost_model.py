"""Cost graphs: what the nodes of a graph cost, as TensorFlow tells it of the same graph."""

import numpy as np
from tests.runtime.traces.test_step_stats import X, matmul_and_split, traced

from opkernel import RunOptions, Session
from opkernel.proto import RunMetadata, StepStats
from opkernel.runtime import SessionConfig
from opkernel.runtime.traces import CostModel

CPU = "/job:localhost/replica:0/task:0/device:CPU:0"


def cost_graph():
    graph, x, z = matmul_and_split()
    operations = [graph.get_operation_by_name(n) for n in ("w", "y", "sp/split_dim", "sp", "z")]
    model = CostModel(operations, CPU)
    with Session(graph) as session:
        model.record(traced(session, z, {x: X}))
    return {node.name: node for node in model.cost_graph().node}


def test_nodes_edges_and_sizes_are_tensorflows():
    nodes = cost_graph()
    names = {node.id: name for name, node in nodes.items()}
    assert sorted(names) == list(range(len(nodes)))
    assert [names[0], names[1]] == ["_SOURCE", "_SINK"]
    told = {
        name: (
            [(names[i.preceding_node], i.preceding_port) for i in node.input_info],
            [(o.size, o.dtype, [dim.size for dim in o.shape.dim]) for o in node.output_info],
            [names[number] for number in node.control_input],
        )
        for name, node in nodes.items()
        if node.id > 1
    }
    assert told == {
        "x": ([], [(0, 1, [])], ["_SOURCE"]),
        "w": ([], [(24, 1, [3, 2])], ["_SOURCE"]),
        "y": ([("x", 0), ("w", 0)], [(40, 1, [5, 2])], []),
        "sp/split_dim": ([], [(4, 3, [])], ["_SOURCE"]),
        "sp": ([("sp/split_dim", 0), ("y", 0)], [(20, 1, [5, 1])] * 2, ["w"]),
        "z": ([("sp", 0), ("sp", 1)], [(20, 1, [5, 1])], []),
    }
    assert [names[number] for number in nodes["_SINK"].control_input] == ["_SOURCE", "z"]
    assert {node.device for node in nodes.values() if node.id > 1} == {CPU}


def test_views_are_told_as_aliases_of_their_input():
    nodes = cost_graph()
    assert [output.alias_input_port for output in nodes["sp"].output_info] == [1, 1]
    assert [output.alias_input_port for output in nodes["z"].output_info] == [-1]


def test_costs_are_the_largest_of_all_steps():
    *_, z = matmul_and_split()
    model = CostModel([z.op], CPU)
    for micros, size in ((5, 8), (9, 4), (7, 6)):
        step = StepStats()
        stats = step.dev_stats.add(device=CPU).node_stats.add(node_name="z")
        stats.op_end_rel_micros = micros
        stats.memory_stats.temp_memory_size = micros
        stats.output.add().tensor_description.allocation_description.requested_bytes = size
        model.record(step)
        elsewhere = step.dev_stats.add(device="another device").node_stats.add(node_name="z")
        elsewhere.op_end_rel_micros = 100
        model.record(step)
    node = model.cost_graph().node[-1]
    assert (node.name, node.compute_cost, node.temporary_memory_size) == ("z", 9, 9)
    assert node.output_info[0].size == 8


def test_a_session_builds_it_where_its_config_says_so():
    graph, x, z = matmul_and_split()
    with Session(graph, config=SessionConfig(build_cost_model=2)) as session:
        graphs = []
        for _ in range(4):
            metadata = RunMetadata()
            session.run(z, {x: np.ones((2, 3), np.float32)}, RunOptions(), metadata)
            graphs.append(len(metadata.cost_graph.node))
        costs = {node.name: node for node in metadata.cost_graph.node}
    assert graphs == [0, len(costs), 0, len(costs)]
    assert [dim.size for dim in costs["y"].output_info[0].shape.dim] == [2, 2]
