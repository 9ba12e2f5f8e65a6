"""Device.compute: a device that overrides it sees every kernel of its nodes, however they are run."""

from collections import Counter
from typing import Any

import numpy as np
import pytest

import opkernel
from opkernel import raw_ops
from opkernel.device.device_factory import (
    DeviceFactory,
    register_device_factory,
    unregister_device_factory,
)
from opkernel.device.local_device import LocalDevice
from opkernel.errors import PermissionDeniedError
from opkernel.kernel import AsyncOpKernel
from opkernel.types import DataType

FLOAT = DataType.DT_FLOAT


class Counting(LocalDevice):
    """Counts what it computes, by the names of nodes; refuses ops."""

    def __init__(self, *args, refused, **options):
        super().__init__(*args, **options)
        self.seen: Counter[str] = Counter()
        self.waited: Counter[str] = Counter()
        self.refused = refused

    def compute(self, op_kernel, ctx):
        assert not isinstance(op_kernel, AsyncOpKernel)
        assert ctx.op_kernel is op_kernel
        if op_kernel.type_string in self.refused:
            raise PermissionDeniedError(f"no {op_kernel.type_string} here")
        self.seen[op_kernel.name] += 1
        super().compute(op_kernel, ctx)

    def compute_async(self, op_kernel, ctx, done):
        self.waited[op_kernel.name] += 1
        super().compute_async(op_kernel, ctx, done)


class CountingFactory(DeviceFactory):
    def __init__(self):
        self.made: list[Counting] = []
        self.refused: set[str] = set()

    def create_devices(self, options):
        devices = [
            Counting("CPU", np, index, name_prefix=options.name_prefix, refused=self.refused)
            for index in range(1 if options.count is None else options.count)
        ]
        self.made += devices
        return devices

    def take(self):
        """What the devices have seen since they were last asked: synchronous and asynchronous kernels."""
        seen: Counter[str] = Counter()
        waited: Counter[str] = Counter()
        for device in self.made:
            seen += device.seen
            waited += device.waited
            device.seen.clear()
            device.waited.clear()
        return seen, waited


@pytest.fixture
def factory():
    made = CountingFactory()
    register_device_factory("CPU", made, priority=70)
    yield made
    unregister_device_factory("CPU")


def kinds_of_kernels(x):
    """Nodes of every kind of kernel, of which `x` is the only input; two of each op."""
    number = opkernel.constant(0.5, name="number")
    ufunc = raw_ops.Tanh(x=x, name="ufunc")
    operator = raw_ops.AddV2(x=ufunc, y=number, name="operator")
    takes_list = raw_ops.AddN(inputs=[operator, ufunc], name="takes_list")
    gives_list = raw_ops.Split(axis=0, value=takes_list, num_split=2, name="gives_list")
    passes_on = raw_ops.Identity(input=gives_list[1], name="passes_on")
    view = raw_ops.Reshape(tensor=passes_on, shape=[-1], name="view")
    factory = raw_ops.Sum(input=view, axis=0, name="factory")
    queue = raw_ops.FIFOQueueV2(component_types=[FLOAT], name="makes_a_resource")
    given = raw_ops.QueueEnqueueV2(handle=queue, components=[factory], name="waits_to_give")
    with x.graph.control_dependencies([given]):
        (waits,) = raw_ops.QueueDequeueV2(
            handle=queue, component_types=[FLOAT], name="waits_to_take"
        )
    return raw_ops.Neg(x=waits, name="last")


SYNCHRONOUS = [
    "ufunc",
    "operator",
    "takes_list",
    "gives_list",
    "passes_on",
    "view",
    "factory",
    "makes_a_resource",
    "last",
]
ASYNCHRONOUS = ["waits_to_give", "waits_to_take"]
X = np.linspace(-1, 1, 8, dtype=np.float32).reshape(4, 2)
EXPECTED = -(2 * np.tanh(X[2:]) + 0.5).sum()

SESSIONS: dict[str, Any] = {
    "a plan": {"executor_type": "COMPILED_PLAN"},
    "dataflow": {"executor_type": "DATAFLOW"},
    "the default executor": {},
    "the single-threaded executor": {"executor_type": "SINGLE_THREADED_EXECUTOR"},
    "side by side": {"inter_op_parallelism_threads": 4},
}
OPTIONS: dict[str, Any] = {
    "as it is": {},
    "sanitized": {"sanitize": True},
    "limited": {"memory_limit_bytes": 1 << 24},
}
RUNS = {
    "plain": None,
    "stoppable": opkernel.RunOptions(timeout_in_ms=60_000),
    "traced": opkernel.RunOptions(trace_level=opkernel.RunOptions.FULL_TRACE),
}


@pytest.mark.parametrize("run", RUNS)
@pytest.mark.parametrize("options", OPTIONS)
@pytest.mark.parametrize("session", SESSIONS)
def test_a_session_has_its_device_compute_each_kernel_once_a_step(session, options, run, factory):
    graph = opkernel.Graph()
    with graph.as_default():
        x = opkernel.placeholder(FLOAT, [4, 2], name="x")
        last = kinds_of_kernels(x)
    config = opkernel.SessionConfig(optimize=False, **SESSIONS[session])
    with opkernel.Session(graph, config=config, **OPTIONS[options]) as one:
        for _ in range(3):
            found = one.run(last, {x: X}, options=RUNS[run])
            np.testing.assert_allclose(found, EXPECTED, rtol=1e-5)
            seen, waited = factory.take()
            assert seen == Counter(SYNCHRONOUS)
            assert waited == Counter(ASYNCHRONOUS)


def double(x):
    return raw_ops.AddV2(x=x, y=x, name="double")


def called(x):
    return opkernel.function(double)(x)


def chosen(x):
    return opkernel.cond(raw_ops.Less(x=x[0], y=9.0, name="less"), lambda: double(x), lambda: x)


def turned(x):
    return opkernel.while_loop(
        lambda i, y: raw_ops.Less(x=i, y=3, name="less"),
        lambda i, y: (i + 1, double(y)),
        (opkernel.constant(0), x),
    )[1]


def grouped(x):
    """Enough element-wise nodes, on enough elements, to be computed together, tile by tile."""
    big = raw_ops.Tile(input=x, multiples=[200_000])
    return raw_ops.Sqrt(x=raw_ops.Exp(x=double(raw_ops.Square(x=big)))[:2])


@pytest.mark.parametrize("executor", ["COMPILED_PLAN", "DATAFLOW"])
@pytest.mark.parametrize(("build", "times"), [(called, 1), (chosen, 1), (turned, 3), (grouped, 1)])
def test_kernels_of_functions_branches_loops_and_groups_are_the_device_s(
    build, times, executor, factory
):
    graph = opkernel.Graph()
    with graph.as_default():
        x = opkernel.placeholder(FLOAT, [2], name="x")
        y = build(x)
    values = np.array([1, 2], np.float32)
    with opkernel.Session(graph, executor_type=executor, optimize=False) as session:
        session.run(y, {x: values})
        factory.take()
        session.run(y, {x: values})
        seen, _ = factory.take()
        assert sum(seen[name] for name in seen if "double" in name) == times


def test_passes_have_the_device_compute_what_is_constant(factory):
    graph = opkernel.Graph()
    with graph.as_default():
        x = opkernel.placeholder(FLOAT, [2], name="x")
        y = x * raw_ops.Exp(x=opkernel.constant([0.0, 1.0]), name="constant")
    with opkernel.Session(graph) as session:
        for times in (1, 0, 0):
            session.run(y, {x: [1, 1]})
            assert factory.take()[0]["constant"] == times


def test_what_passes_make_of_several_devices_is_computed_by_each_device(factory):
    graph = opkernel.Graph()
    with graph.as_default():
        x = opkernel.placeholder(FLOAT, [2], name="x")
        with graph.device("/cpu:1"):
            two = raw_ops.Exp(x=opkernel.constant([0.0, 1.0]), name="folded")
            there = raw_ops.Mul(x=x, y=two, name="there")
        here = raw_ops.Neg(x=there, name="here")
    config = opkernel.SessionConfig(device_count={"CPU": 2})
    with opkernel.Session(graph, config=config) as session:
        session.run(here, {x: [1, 1]})
        first, second = factory.made[-2:]
        assert first.seen["here"] == second.seen["there"] == second.seen["folded"] == 1
        assert not {"there", "folded"} & first.seen.keys()
        assert "here" not in second.seen


def test_eager_calls_are_computed_by_the_device_of_the_factory(factory):
    assert raw_ops.Tanh(x=0.0) == 0
    assert raw_ops.Split(axis=0, value=[1.0, 2.0], num_split=2)[1].tolist() == [2.0]
    queue = raw_ops.FIFOQueueV2(component_types=[FLOAT], shared_name="eager")
    raw_ops.QueueEnqueueV2(handle=queue, components=[1.0])
    assert raw_ops.QueueDequeueV2(handle=queue, component_types=[FLOAT]) == [1.0]
    seen, waited = factory.take()
    assert seen == Counter(["Tanh", "Split", "FIFOQueueV2"])
    assert waited == Counter(["QueueEnqueueV2", "QueueDequeueV2"])


def test_traced_functions_are_computed_by_the_device_of_the_factory(factory):
    assert opkernel.function(double)(np.float32(2)) == 4
    assert factory.take()[0]["double"] == 1


def test_once_the_factory_is_gone_eager_calls_are_computed_without_it():
    made = CountingFactory()
    register_device_factory("CPU", made, priority=70)
    assert raw_ops.Tanh(x=0.0) == 0
    unregister_device_factory("CPU")
    made.take()
    assert raw_ops.Tanh(x=0.0) == 0
    assert made.take() == (Counter(), Counter())


@pytest.mark.parametrize("executor", ["COMPILED_PLAN", "DATAFLOW"])
def test_what_the_device_raises_is_the_error_of_the_node(executor, factory):
    factory.refused.add("Tanh")
    graph = opkernel.Graph()
    with graph.as_default():
        x = opkernel.placeholder(FLOAT, [2], name="x")
        y = raw_ops.Tanh(x=x, name="refused")
    with opkernel.Session(graph, executor_type=executor) as session:
        with pytest.raises(PermissionDeniedError, match="no Tanh here") as raised:
            session.run(y, {x: [1, 1]})
        assert raised.value.node == "refused"
    with pytest.raises(PermissionDeniedError, match="no Tanh here"):
        raw_ops.Tanh(x=0.0)


def test_a_constant_that_the_device_refuses_is_refused_where_the_node_runs(factory):
    factory.refused.add("Tanh")
    graph = opkernel.Graph()
    with graph.as_default():
        y = raw_ops.Tanh(x=opkernel.constant(1.0), name="refused")
    with opkernel.Session(graph) as session, pytest.raises(PermissionDeniedError) as raised:
        session.run(y)
    assert raised.value.node == "refused"


def test_a_device_that_does_not_override_compute_has_kernels_called_directly():
    graph = opkernel.Graph()
    with graph.as_default():
        x = opkernel.placeholder(FLOAT, [2], name="x")
        y = raw_ops.Tanh(x=x, name="y")
    with opkernel.Session(graph) as session:
        session.run(y, {x: [1, 1]})
        assert "y = tanh(x)" in session.plan(y, [x]).source
