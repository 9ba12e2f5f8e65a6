"""Sessions on four devices of JAX's CPU; `test_devices.py` runs this where JAX has been told to make four.

Devices of type GPU stand on JAX's CPU here, so that all of a GPU's code but JAX's own is run.
"""

import json
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import jax
import numpy as np
import pytest

import opkernel
from opkernel import raw_ops as r
from opkernel.device.device_factory import register_device_factory, unregister_device_factory
from opkernel.device.local_device import AllocatorAttributes
from opkernel.errors import (
    FailedPreconditionError,
    InvalidArgumentError,
    OpError,
    ResourceExhaustedError,
)
from opkernel.ops.variables.var import Var
from opkernel.proto import RunMetadata
from opkernel.testing import check_device
from opkernel.xla import register_xla_kernel
from opkernel.xla.device import XlaDeviceFactory

STRICT = opkernel.SessionConfig(allow_soft_placement=False)


@pytest.fixture(params=["XLA_CPU", "GPU"])
def device_type(request: pytest.FixtureRequest) -> Iterator[str]:
    """A type whose devices are JAX's CPUs."""
    if request.param == "GPU":
        register_device_factory("GPU", XlaDeviceFactory("GPU", "cpu"), priority=210)
    yield request.param
    if request.param == "GPU":
        unregister_device_factory("GPU")


def placed(session: opkernel.Session, fetches: Any, feeds: Any) -> dict[str, str]:
    """The device of each node that a step runs, in short."""
    metadata, options = RunMetadata(), opkernel.RunOptions(output_partition_graphs=True)
    session.run(fetches, feeds, options, metadata)
    nodes = [node for part in metadata.partition_graphs for node in part.node]
    return {node.name: node.device.rpartition("device:")[2] for node in nodes}


def test_the_contract_of_devices(device_type):
    check_device(device_type)


def test_the_user_s_jax_stays_as_it_is(device_type):
    graph = opkernel.Graph()
    with graph.as_default(), graph.device(f"/device:{device_type}:0"):
        y = r.Neg(x=opkernel.placeholder(opkernel.float64, None, name="x"))
    with opkernel.Session(graph, config=STRICT) as session:
        assert session.run(y, {"x:0": 1e-300}) == -1e-300
    assert jax.numpy.ones(1).dtype == np.float32
    assert jax.numpy.asarray(np.float64(1)).dtype == np.float32


# Placement


def test_nodes_prefer_a_gpu_and_not_an_xla_cpu(device_type):
    graph = opkernel.Graph()
    with graph.as_default():
        x = opkernel.placeholder(opkernel.float32, [None, 2], name="x")
        y = r.Tanh(x=r.Reshape(tensor=x, shape=r.Neg(x=r.Neg(x=r.Shape(input=x)))), name="y")
        text = r.AsString(input=y, name="text")
    config = opkernel.SessionConfig(device_count={device_type: 2})
    with opkernel.Session(graph, config=config) as session:
        assert len(session.list_devices()) == 3
        found = placed(session, text, {x: np.zeros((1, 2), np.float32)})
    assert found["y"] == ("GPU:0" if device_type == "GPU" else "CPU:0")
    assert found["text"] == "CPU:0"


def test_no_more_devices_than_jax_has(device_type):
    config = opkernel.SessionConfig(device_count={device_type: 9})
    with opkernel.Session(opkernel.Graph(), config=config) as session:
        types = [one.device_type for one in session.list_devices()]
    assert types == ["CPU", *[device_type] * 4]


def test_sessions_that_ask_for_none_have_none(device_type):
    with opkernel.Session(opkernel.Graph()) as session:
        assert [one.device_type for one in session.list_devices()] == ["CPU"]


def test_a_node_without_a_kernel_goes_elsewhere_or_is_refused(device_type):
    graph = opkernel.Graph()
    with graph.as_default(), graph.device(f"/device:{device_type}:0"):
        x = opkernel.placeholder(opkernel.string, [], name="x")
        y = r.StringLength(input=x, name="y")
    with opkernel.Session(graph) as session:
        assert session.run(y, {x: "abc"}) == 3
    with (
        opkernel.Session(graph, config=STRICT) as session,
        pytest.raises(
            InvalidArgumentError, match="Could not satisfy explicit device specification"
        ),
    ):
        session.run(y, {x: "abc"})


def test_calls_of_functions_run_on_the_device_of_the_call(device_type):
    @opkernel.function
    def f(x: Any) -> Any:
        return r.Relu(features=r.BiasAdd(value=r.MatMul(a=x, b=x), bias=np.ones(2, np.float32)))

    graph, value = opkernel.Graph(), np.array([[1, -2], [0, 1]], np.float32)
    with graph.as_default():
        x = opkernel.placeholder(opkernel.float32, [2, 2], name="x")
        with graph.device(f"/device:{device_type}:1"):
            y = f(x)
    with opkernel.Session(graph, config=STRICT) as session:
        np.testing.assert_allclose(session.run(y, {x: value}), np.maximum(value @ value + 1, 0))
        devices = {
            where for name, where in placed(session, y, {x: value}).items() if "Relu" in name
        }
    assert devices >= {f"{device_type}:1"}


# Values

UNARY = ["Neg", "Tanh", "Abs", "Square", "Relu", "Softmax", "Sigmoid"]
BINARY = ["AddV2", "Mul", "Sub", "Maximum", "MatMul", "SquaredDifference"]


def random_graph(rng: np.random.Generator, devices: list[str]) -> tuple[opkernel.Graph, Any]:
    """Tensors of shape [3, 3], each from some before it, on devices drawn at random."""
    graph = opkernel.Graph()
    with graph.as_default():
        tensors = [opkernel.placeholder(opkernel.float32, [3, 3], name="x")]
        for index in range(14):
            a, b = (tensors[i] for i in rng.integers(0, len(tensors), 2))
            with graph.device(devices[rng.integers(len(devices))]):
                tensors.append(drawn(int(rng.integers(0, 8)), rng, a, b, index))
    return graph, tensors[-4:]


def drawn(kind: int, rng: np.random.Generator, a: Any, b: Any, index: int) -> Any:
    name = f"n{index}"
    if kind == 0:
        return r.Tanh(x=r.Transpose(x=a, perm=[1, 0]), name=name)
    if kind == 1:
        shape = r.Shape(input=b)
        return r.Tanh(x=r.Reshape(tensor=r.Reshape(tensor=a, shape=[-1]), shape=shape), name=name)
    if kind == 2:
        parts = r.Split(axis=0, value=a, num_split=3)
        return r.ConcatV2(values=[parts[2], parts[0], parts[1]], axis=0, name=name)
    if kind == 3:
        return r.SelectV2(condition=r.Greater(x=a, y=b), t=a, e=r.Sign(x=b), name=name)
    if kind == 4:
        total = r.Sum(input=r.Cast(x=r.Greater(x=a, y=0.0), DstT=opkernel.int32), axis=[0])
        return r.Mul(x=a, y=r.Cast(x=total, DstT=opkernel.float32) / 8.0, name=name)
    if kind == 5:
        a = r.Tanh(x=a)
        return r.MatMul(a=a, b=b, transpose_a=True, name=name)
    ops = UNARY if kind == 6 else BINARY
    op = ops[rng.integers(len(ops))]
    inputs = [a] if kind == 6 else [r.Tanh(x=a), r.Tanh(x=b)]
    return a.op.graph.create_op(op, inputs, name=name).outputs[0]


@pytest.mark.parametrize("seed", range(12))
def test_graphs_give_the_values_of_one_cpu_wherever_their_nodes_are(seed):
    everywhere = ["/cpu:0", *[f"/device:XLA_CPU:{i}" for i in range(4)]]
    value = np.random.default_rng(seed).normal(size=(3, 3)).astype(np.float32)
    found = []
    for devices in (everywhere, ["/cpu:0"] * len(everywhere)):
        graph, fetches = random_graph(np.random.default_rng(seed), devices)
        with opkernel.Session(graph, config=STRICT) as session:
            found.append(session.run(fetches, {"x:0": value}))
    for there, here in zip(*found, strict=True):
        assert there.dtype == here.dtype
        np.testing.assert_allclose(there, here, rtol=1e-4, atol=1e-5)


@pytest.mark.shared
@pytest.mark.parametrize(
    "name", ["mlp", "conv_mix", "bert_tiny", "mobilenet_v2", "v1_control_flow"]
)
def test_a_model_gives_the_answers_of_tensorflow(shared, name):
    folder = shared / "models" / name
    manifest = json.loads((folder / "manifest.json").read_text())
    graph = opkernel.load_graph(folder / "graph.pb")
    for op in graph.get_operations():
        op.set_device("/device:XLA_CPU:0")
    with np.load(folder / "case.npz") as stored, opkernel.Session(graph) as session:
        feeds = {one: stored[f"feed:{one}"] for one in manifest["feeds"]}
        answers = session.run(manifest["fetches"], feeds)
        for fetch, answer in zip(manifest["fetches"], answers, strict=True):
            expected = stored[f"fetch:{fetch}"]
            assert answer.dtype == expected.dtype
            np.testing.assert_allclose(answer, expected, rtol=1e-4, atol=1e-4)


def test_sixteen_threads(device_type):
    graph = opkernel.Graph()
    with graph.as_default():
        x = opkernel.placeholder(opkernel.float32, [None, 3], name="x")
        with graph.device(f"/device:{device_type}:0"):
            y = r.Sum(input=r.MatMul(a=x, b=np.eye(3, dtype=np.float32)), axis=[0])
        with graph.device(f"/device:{device_type}:1"):
            z = r.Neg(x=y)

    def step(number: int) -> None:
        value = np.full((1 + number % 3, 3), number, np.float32)
        np.testing.assert_array_equal(session.run(z, {x: value}), -value.sum(0))

    with opkernel.Session(graph) as session, ThreadPoolExecutor(16) as pool:
        for future in [pool.submit(step, number) for number in range(160)]:
            future.result()


def test_values_that_must_be_known_come_from_the_host_and_may_change(device_type):
    """More of them than have programs kept."""
    graph = opkernel.Graph()
    with graph.as_default():
        begin = opkernel.placeholder(opkernel.int32, [1], name="begin")
        with graph.device(f"/device:{device_type}:0"):
            x = r.Tanh(x=np.linspace(0, 1, 100))
            y = r.Slice(input=x, begin=begin, size=[2])
    with opkernel.Session(graph) as session:
        for start in range(70):
            expected = np.tanh(np.linspace(0, 1, 100)[start : start + 2])
            np.testing.assert_allclose(session.run(y, {begin: [start]}), expected, rtol=1e-12)


# Variables


def network(device: str) -> tuple[opkernel.Graph, Any]:
    """A small network with its variables on a device; and what initialises, trains and tells the loss."""
    graph, rng = opkernel.Graph(), np.random.default_rng(0)
    inputs = rng.normal(size=(16, 4)).astype(np.float32)
    with graph.as_default(), graph.device(device):
        handles, first = [], []
        for name, shape in (("w", (4, 8)), ("b", (8,)), ("v", (8, 1))):
            value = rng.normal(size=shape).astype(np.float32)
            handle = r.VarHandleOp(dtype="float", shape=shape, shared_name=name, name=name)
            handles.append(handle)
            first.append(r.AssignVariableOp(resource=handle, value=value))
        w, b, v = (r.ReadVariableOp(resource=one, dtype="float") for one in handles)
        hidden = r.Tanh(x=r.BiasAdd(value=r.MatMul(a=inputs, b=w), bias=b))
        error = r.MatMul(a=hidden, b=v) - inputs[:, :1] * inputs[:, 1:2]
        loss = r.Mean(input=r.Square(x=error), axis=[0, 1], name="loss")
        gradients = opkernel.gradients([loss], [w, b, v])
        train = [
            r.ResourceApplyGradientDescent(var=handle, alpha=np.float32(0.1), delta=gradient)
            for handle, gradient in zip(handles, gradients, strict=True)
        ]
    return graph, (first, train, loss, handles)


def losses(device: str) -> tuple[list[float], Any]:
    graph, (first, train, loss, _) = network(device)
    with opkernel.Session(graph, config=STRICT) as session:
        session.run(first)
        found = [float(session.run([loss, *train])[0]) for _ in range(30)]
        managers = {one.name: one.resource_manager for one in session._devices.mgr.all}
        values = [
            variable.tensor_ref.tensor
            for name, manager in managers.items()
            if device in name
            for variable in manager.lookup_many([("localhost", n) for n in "wbv"], Var)
            if variable is not None
        ]
    return found, values


def test_a_network_learns_with_its_variables_on_the_device(device_type):
    there, values = losses(f"/device:{device_type}:2")
    here, _ = losses("/device:CPU:0")
    assert there[-1] < there[0] / 2
    assert len(values) == 3
    np.testing.assert_allclose(there, here, rtol=1e-3)
    assert all(
        isinstance(one, jax.Array) and {d.id for d in one.devices()} == {2} for one in values
    )


def test_a_variable(device_type):
    graph = opkernel.Graph()
    with graph.as_default(), graph.device(f"/device:{device_type}:0"):
        x = opkernel.placeholder(opkernel.float32, None, name="x")
        v = r.VarHandleOp(dtype="float", shape=None, shared_name="v", name="v")
        there = r.VarIsInitializedOp(resource=v)
        read, shape = r.ReadVariableOp(resource=v, dtype="float"), r.VariableShape(input=v)
        assign = r.AssignVariableOp(resource=v, value=x)
        more = r.AssignAddVariableOp(resource=v, value=x, name="more")
        gone = r.DestroyResourceOp(resource=v)
    with opkernel.Session(graph, config=STRICT) as session:
        assert not session.run(there)
        with pytest.raises(FailedPreconditionError, match="Could not find variable v"):
            session.run(read)
        session.run(assign, {x: [1.0, 2.0]})
        for _ in range(5):  # the session looks for values that stay
            np.testing.assert_array_equal(session.run(read), [1, 2])
        session.run(more, {x: [1.0, 1.0]})
        value, is_there, sizes = session.run([read, there, shape])
        assert (value.tolist(), is_there, sizes.tolist()) == ([2, 3], True, [2])
        with pytest.raises(InvalidArgumentError, match="node 'more'"):
            session.run(more, {x: [1.0, 1.0, 1.0]})
        session.run(gone)
        assert not session.run(there)


# Errors and memory


@pytest.mark.parametrize(("op", "inputs"), [("MatMul", "ab"), ("AddV2", "ab")])
def test_an_error_names_the_node(device_type, op, inputs):
    graph = opkernel.Graph()
    with graph.as_default(), graph.device(f"/device:{device_type}:0"):
        tensors = [opkernel.placeholder(opkernel.float32, None, name=name) for name in inputs]
        bad = graph.create_op(op, tensors, name="bad").outputs[0]
    feeds = {"a:0": np.ones((2, 3), np.float32), "b:0": np.ones((2, 4), np.float32)}
    with opkernel.Session(graph, config=STRICT) as session:
        with pytest.raises(InvalidArgumentError, match="node 'bad'") as caught:
            session.run(bad, feeds)
        assert caught.value.node == "bad"


def test_jax_s_errors_have_their_status_code(monkeypatch):
    from opkernel.xla.device_programs import Programs

    def exhausted(*_: Any) -> Any:
        raise jax.errors.JaxRuntimeError("RESOURCE_EXHAUSTED: Out of memory allocating 9 bytes")

    graph = opkernel.Graph()
    with graph.as_default(), graph.device("/device:XLA_CPU:0"):
        y = r.Sinh(x=opkernel.placeholder(opkernel.float32, None, name="x"))
    monkeypatch.setattr(Programs, "_made", exhausted)
    with (
        opkernel.Session(graph) as session,
        pytest.raises(
            ResourceExhaustedError, match=r"Out of memory allocating 9 bytes \(node 'Sinh'"
        ),
    ):
        session.run(y, {"x:0": 1.0})


def test_the_counts_of_memory_are_jax_s():
    class Counted:
        def memory_stats(self) -> dict[str, int]:
            return {"bytes_in_use": 3, "peak_bytes_in_use": 5, "bytes_limit": 9, "pool_bytes": 7}

    from opkernel.xla.device import XlaAllocator

    stats = XlaAllocator(Counted()).get_stats()
    assert stats is not None
    assert (stats.bytes_in_use, stats.peak_bytes_in_use, stats.bytes_limit) == (3, 5, 9)
    config = opkernel.SessionConfig(device_count={"XLA_CPU": 1})
    with opkernel.Session(opkernel.Graph(), config=config) as session:
        device = session._devices.mgr.look_up("XLA_CPU:0")
        assert (
            device.get_allocator(AllocatorAttributes()).get_stats() is None
        )  # the CPU counts nothing
        made = device.get_allocator(AllocatorAttributes()).allocate([2], opkernel.float64)
        assert (made.shape, made.dtype) == ((2,), np.float64)


def test_a_kernel_that_comes_later(device_type):
    op = f"Thrice{device_type.title().replace('_', '')}"
    opkernel.register_op(
        op, inputs=["x: float"], outputs=["y: float"], shape_fn=opkernel.opdef.unknown_shape
    )
    graph = opkernel.Graph()
    with graph.as_default(), graph.device(f"/device:{device_type}:0"):
        y = graph.create_op(op, [opkernel.placeholder(opkernel.float32, None, name="x")]).outputs[0]
    with opkernel.Session(graph, config=STRICT) as session, pytest.raises(OpError):
        session.run(y, {"x:0": 2.0})
    register_xla_kernel(op)(lambda x: 3 * x)
    with opkernel.Session(graph, config=STRICT) as session:
        assert session.run(y, {"x:0": 2.0}) == 6
