"""Programs cut between devices compute what they compute on one, and pass each tensor on once."""

import random
from collections import Counter
from pathlib import Path

import numpy as np
import pytest

import opkernel
from opkernel import raw_ops as r
from opkernel.graph import get_default_graph, import_graph_def
from opkernel.proto import GraphDef, RunMetadata

ROOT = Path(__file__).resolve().parents[3]
MODELS = ["mlp", "conv_mix", "functional_control_flow", "v1_control_flow", "lstm_lowered"]
FLOAT = opkernel.float32


def scattered(graph_def, seed, devices):
    """The graph with most of its nodes on devices that the dice choose, groups of nodes left together."""
    dice = random.Random(seed)
    for node in graph_def.node:
        node.attr.pop("_class", None)
        if dice.random() < 0.7:
            node.device = dice.choice(devices)
    graph = opkernel.Graph()
    with graph.as_default():
        import_graph_def(graph_def, name="")
    return graph


def run(graph, fetches, feeds, count=3, **options):
    """The fetches, twice, and the graphs of the devices."""
    config = opkernel.SessionConfig(device_count={"CPU": count}, allow_soft_placement=True)
    metadata = RunMetadata()
    with opkernel.Session(graph, config=config, **options) as session:
        session.run(fetches, feeds)
        asked = opkernel.RunOptions(output_partition_graphs=True, timeout_in_ms=600_000)
        return session.run(fetches, feeds, asked, metadata), list(metadata.partition_graphs)


def check_transfers(graphs):
    """Each tensor goes once to each device and memory, from where it is, and is received there."""
    nodes = [node for graph in graphs for node in graph.node]
    sends, receives = (
        {node.attr["tensor_name"].s: node for node in nodes if node.op in ops}
        for ops in (("_Send", "_HostSend"), ("_Recv", "_HostRecv"))
    )
    assert sends.keys() == receives.keys()
    passed_on = Counter[tuple[str, ...]]()
    for name, send in sends.items():
        receive = receives[name]
        for node in (send, receive):
            assert node.attr["send_device"].s.decode() == send.device
            assert node.attr["recv_device"].s.decode() == receive.device
        passed_on[send.input[0], send.device, receive.device, receive.op] += 1
        if send.device == receive.device:  # from one of its memories to the other
            assert {send.op, receive.op} in ({"_Send", "_HostRecv"}, {"_HostSend", "_Recv"})
    assert set(passed_on.values()) <= {1}, passed_on.most_common(3)


@pytest.mark.shared
@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("name", MODELS)
def test_models_give_the_same_on_any_placement(shared, name, seed):
    if name == "lstm_lowered" and seed:
        pytest.skip("it has thousands of transfers: once is enough")
    case = np.load(shared / f"models/{name}/case.npz")
    graph_def = GraphDef.FromString((shared / f"models/{name}/graph.pb").read_bytes())
    graph = scattered(graph_def, seed, [f"/device:CPU:{n}" for n in range(3)])
    feeds = {key.removeprefix("feed:"): case[key] for key in case if key.startswith("feed:")}
    fetches = [key.removeprefix("fetch:") for key in case if key.startswith("fetch:")]
    values, graphs = run(graph, fetches, feeds)
    assert len(graphs) > 1
    check_transfers(graphs)
    for fetch, value in zip(fetches, values, strict=True):
        expected = case[f"fetch:{fetch}"]
        if value.dtype.kind in "fc":
            np.testing.assert_allclose(value, expected, rtol=1e-4, atol=1e-5)
        else:
            np.testing.assert_array_equal(value, expected)


def straight(x):
    y = r.Exp(x=r.Neg(x=r.Relu(features=x)))
    return [y, r.Sum(input=y, axis=np.array([0], "i4")), r.Shape(input=y)]


def constant(value, beside):
    """A constant of the loop and branch that a tensor is in: a Switch itself is on both branches."""
    with get_default_graph().control_dependencies([r.Identity(input=beside)]):
        return r.Identity(input=value)


def conditional(x):
    axes = constant(np.array([0], "i4"), x)
    positive = r.Greater(x=r.Sum(input=x, axis=axes), y=constant(np.float32(0), x))
    true, false = (r.Switch(data=x, pred=positive)[i] for i in (1, 0))
    return [r.Merge(inputs=[r.Exp(x=false), r.Neg(x=r.Neg(x=true))])[0]]


def lowered_loop(x, turns=4, inner=None):
    """A loop of TensorFlow 1 that halves its value, or does what `inner` does to it in each turn."""
    frame = f"loop{turns}"
    limit, step, start = (constant(v, x) for v in (np.int32(turns), np.float32(0.5), np.int32(0)))
    limit, step = (r.Enter(data=t, frame_name=frame, is_constant=True) for t in (limit, step))
    merges = [
        r.Merge(inputs=[entered, entered])
        for entered in (r.Enter(data=t, frame_name=frame) for t in (start, x))
    ]
    goes_on = r.LoopCond(input=r.Less(x=merges[0][0], y=limit))
    exits = [r.Switch(data=merge[0], pred=goes_on) for merge in merges]
    counter = r.AddV2(x=exits[0][1], y=constant(np.int32(1), exits[0][1]))
    value = r.Mul(x=exits[1][1], y=step) if inner is None else inner(exits[1][1])
    for merge, following in zip(merges, (counter, value), strict=True):
        merge[0].op.update_input(1, r.NextIteration(data=following))
    return [r.Exit(data=exits[1][0])]


def nested_loops(x):
    return lowered_loop(x, 3, lambda value: lowered_loop(value, 2)[0])


def conditional_in_loop(x):
    return lowered_loop(x, 3, lambda value: conditional(value)[0])


def loop_of_functions(x):
    return list(
        opkernel.while_loop(lambda i, v: i < 3, lambda i, v: (i + 1, v * 2.0), [np.int32(0), x])
    )


def tensor_arrays(x):
    array = r.TensorArrayV3(size=np.int32(2), dtype="float")
    first = r.TensorArrayWriteV3(handle=array[0], index=np.int32(0), value=x, flow_in=array[1])
    second = r.TensorArrayWriteV3(
        handle=array[0], index=np.int32(1), value=r.Neg(x=x), flow_in=first
    )
    return [r.TensorArrayReadV3(handle=array[0], index=np.int32(1), flow_in=second, dtype="float")]


def queues(x):
    queue = r.FIFOQueueV2(component_types=["float"], shapes=[[3]], capacity=3)
    enqueued = r.QueueEnqueueV2(handle=queue, components=[r.Neg(x=x)])
    with get_default_graph().control_dependencies([enqueued]):
        return list(r.QueueDequeueV2(handle=queue, component_types=["float"]))


def variables(x):
    variable = r.VarHandleOp(dtype="float", shape=[3], shared_name="v")
    written = r.AssignVariableOp(resource=variable, value=x)
    with get_default_graph().control_dependencies([written]):
        added = r.AssignAddVariableOp(resource=variable, value=r.Neg(x=r.Exp(x=x)))
    with get_default_graph().control_dependencies([added]):
        return [r.ReadVariableOp(resource=variable, dtype="float")]


def effects(x):
    """Control edges alone say in which order a variable changes."""
    variable = r.VarHandleOp(dtype="float", shape=[3], shared_name="v")
    graph, before = get_default_graph(), r.AssignVariableOp(resource=variable, value=x)
    for factor in (2.0, -3.0, 0.5):
        with graph.control_dependencies([before]):
            elsewhere = r.NoOp()
        with graph.control_dependencies([elsewhere]):
            read = r.ReadVariableOp(resource=variable, dtype="float")
        product = r.AddV2(x=r.Mul(x=read, y=np.float32(factor)), y=np.float32(1))
        before = r.AssignVariableOp(resource=variable, value=product)
    with graph.control_dependencies([before]):
        return [r.ReadVariableOp(resource=variable, dtype="float")]


SAMPLES = [
    straight,
    conditional,
    lowered_loop,
    nested_loops,
    conditional_in_loop,
    loop_of_functions,
    tensor_arrays,
    queues,
    variables,
    effects,
]
X = np.array([1.5, -2, 0.25], "f4")


def sample(build):
    """A graph as a message, and the names of what it computes."""
    graph = opkernel.Graph()
    with graph.as_default():
        fetches = build(opkernel.placeholder(FLOAT, [3], name="x"))
    return graph.as_graph_def(), [tensor.name for tensor in fetches]


def on_one(graph_def, fetches, feeds=None):
    graph = opkernel.Graph()
    with graph.as_default():
        import_graph_def(graph_def, name="")
    with opkernel.Session(graph, optimize=False) as session:
        return session.run(fetches, feeds or {"x:0": X})


@pytest.mark.parametrize("executor", ["", "DATAFLOW"])
@pytest.mark.parametrize("build", SAMPLES)
def test_any_placement_gives_what_one_device_gives(build, executor):
    graph_def, fetches = sample(build)
    expected = on_one(graph_def, fetches)
    seen = set()
    for seed in range(8):
        devices = [f"/device:CPU:{n}" for n in range(3)]
        graph = scattered(GraphDef.FromString(graph_def.SerializeToString()), seed, devices)
        for_resources_together(graph)
        values, graphs = run(graph, fetches, {"x:0": X}, executor_type=executor)
        check_transfers(graphs)
        seen.add(len(graphs))
        for value, one in zip(values, expected, strict=True):
            np.testing.assert_allclose(value, one, rtol=1e-6)
    assert max(seen) > 1


@pytest.mark.parametrize("build", SAMPLES)
def test_any_placement_on_a_type_with_memory_of_its_own(build, toy):
    graph_def, fetches = sample(build)
    expected = on_one(graph_def, fetches)
    for seed in range(8):
        devices = ["/device:TOY:0", "/device:TOY:1", "/device:CPU:0"]
        graph = scattered(GraphDef.FromString(graph_def.SerializeToString()), seed, devices)
        for_resources_together(graph)
        config = opkernel.SessionConfig(
            device_count={"CPU": 1, "TOY": 2}, allow_soft_placement=True
        )
        metadata = RunMetadata()
        options = opkernel.RunOptions(output_partition_graphs=True, timeout_in_ms=600_000)
        with opkernel.Session(graph, config=config) as session:
            values = session.run(fetches, {"x:0": X}, options, metadata)
        check_transfers(metadata.partition_graphs)
        for value, one in zip(values, expected, strict=True):
            assert type(value) is type(one)
            np.testing.assert_allclose(value, one, rtol=1e-6)


@pytest.mark.parametrize("build", SAMPLES)
def test_a_partial_run_on_any_placement_gives_what_one_device_gives(build, toy):
    """What the second part computes needs results of the first, on whichever device they are."""

    def with_more(x):
        results, y = build(x), opkernel.placeholder(FLOAT, [3], name="y")
        scale = r.Sum(input=r.Cast(x=results[-1], DstT=FLOAT), axis=np.array([0], "i4"))
        return [*results, r.Mul(x=r.Exp(x=y), y=scale)]

    graph_def, fetches = sample(with_more)
    expected = on_one(graph_def, fetches, {"x:0": X, "y:0": X})
    config = opkernel.SessionConfig(device_count={"CPU": 2, "TOY": 1}, allow_soft_placement=True)
    for seed in range(8):
        devices = ["/device:TOY:0", "/device:CPU:1", "/device:CPU:0"]
        graph = scattered(GraphDef.FromString(graph_def.SerializeToString()), seed, devices)
        for_resources_together(graph)
        with opkernel.Session(graph, config=config) as session:
            handle = session.partial_run_setup(fetches, ["x:0", "y:0"])
            values = session.partial_run(handle, fetches[:-1], {"x:0": X})
            values.append(session.partial_run(handle, fetches[-1], {"y:0": X}))
        for value, one in zip(values, expected, strict=True):
            np.testing.assert_allclose(value, one, rtol=1e-6)


def for_resources_together(graph):
    """Leave to the placer what uses resources: two devices asked for in one group are refused."""
    for op in graph.get_operations():
        types = {tensor.dtype for tensor in (*op.inputs, *op.outputs)}
        if opkernel.resource in types:
            op.set_device("")


def test_int32_of_the_host_goes_to_the_host(toy):
    graph = opkernel.Graph()
    with graph.as_default():
        x = opkernel.placeholder(FLOAT, [None], name="x")
        with graph.device("/device:TOY:0"):
            shape = r.Shape(input=r.Neg(x=x))
        total = r.AddV2(x=shape, y=np.array([1], "i4"))
    config = opkernel.SessionConfig()
    metadata, options = RunMetadata(), opkernel.RunOptions(output_partition_graphs=True)
    with opkernel.Session(graph, config=config) as session:
        assert session.run(total, {x: X}, options, metadata) == [4]
    ops = Counter(node.op for graph in metadata.partition_graphs for node in graph.node)
    assert (ops["_HostSend"], ops["_Send"], ops["_Recv"], ops["_HostRecv"]) == (1, 1, 2, 0)
