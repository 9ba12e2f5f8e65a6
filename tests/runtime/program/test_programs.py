"""The builder of programs: the same nodes for all who ask, and passes at their stages."""

import logging
from collections import Counter
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pytest
from tests.runtime.dataflow.loop_builders import FLOAT, Builder

import opkernel
from opkernel import raw_ops as r
from opkernel.device.local_device import LocalDevice
from opkernel.errors import InvalidArgumentError
from opkernel.graph import get_default_graph
from opkernel.kernel import FunctionRunOptions, intra_op_threads, register_kernel
from opkernel.opdef import register_op, unchanged_shape
from opkernel.optimization import Grouping, optimization_passes
from opkernel.proto import RunMetadata
from opkernel.runtime import FunctionLibraryRuntime
from opkernel.runtime.program import builder, executors

CPU_1 = "/job:localhost/replica:0/task:0/device:CPU:1"
TWO_CPUS = opkernel.SessionConfig(device_count={"CPU": 2}, log_device_placement=True)


@pytest.fixture
def built(monkeypatch):
    """The operations of each program that is built, in order."""
    found = []

    def recording(name, args):
        found.append(list(args.order))
        return executors.new_executor(name, args)

    monkeypatch.setattr(builder, "new_executor", recording)
    return found


@pytest.fixture
def add_pass():
    """What registers a pass for the time of a test."""
    registry = optimization_passes()
    names: list[str] = []

    def add(grouping, run):
        if run.__name__ in names:
            registry.unregister(run.__name__)
            names.remove(run.__name__)
        registry.register(grouping, 1000, run)
        names.append(run.__name__)

    yield add
    for name in names:
        registry.unregister(name)


# What is computed, of float32 [1, 4, 4, 2], and how many nodes that takes beside constants.


def convolution(x):
    filters = np.ones((3, 3, 2, 2), "f4")
    y = r.Conv2D(input=x, filter=filters, strides=[1, 1, 1, 1], padding="SAME")
    return r.Relu(features=r.BiasAdd(value=y, bias=np.array([-20, 1], "f4")))


def constants(x):
    two = opkernel.constant(2.0)
    return x + two * opkernel.constant(3.0)


def repetition(x):
    return r.Mul(x=r.Exp(x=x), y=r.Exp(x=x))


def identities(x):
    return r.Neg(x=r.Identity(input=r.Identity(input=x)))


def dead_branch(x):
    return opkernel.cond(opkernel.constant(True), lambda: r.Neg(x=x), lambda: r.Exp(x=x))


def sizes(x):
    return r.Reshape(tensor=r.Neg(x=x), shape=r.Shape(input=x))


COMPUTED = {
    convolution: 1,
    constants: 1,
    repetition: 2,
    identities: 1,
    dead_branch: 1,
    sizes: 1,
}
X = np.arange(32, dtype="f4").reshape(1, 4, 4, 2) / 8


def graph_of(compute):
    graph = opkernel.Graph()
    with graph.as_default():
        x = r.Placeholder(dtype=FLOAT, shape=X.shape, name="x")
        return graph, x, compute(x)


def in_session(compute, **options):
    graph, x, y = graph_of(compute)
    with opkernel.Session(graph, **options) as session:
        return session.run(y, {x: X})


def in_traced_step(compute):
    graph, x, y = graph_of(compute)
    options = opkernel.RunOptions(trace_level=opkernel.RunOptions.FULL_TRACE)
    with opkernel.Session(graph) as session:
        return session.run(y, {x: X}, options, RunMetadata())


def in_direct_session(compute):
    graph, x, y = graph_of(compute)
    with opkernel.DirectSession() as session:
        session.create(graph.as_graph_def())
        return session.run({x.name: X}, [y.name])[0]


def in_function(compute):
    return opkernel.function(compute)(X)


def in_function_of_session(compute):
    return in_session(opkernel.function(compute))


def in_library(compute):
    traced = opkernel.function(compute).get_concrete_function(opkernel.TensorSpec(X.shape, FLOAT))
    graph = opkernel.Graph()
    traced.graph.add_to(graph)
    runtime = FunctionLibraryRuntime(graph.function_library, optimize=True)
    handle = runtime.instantiate(traced.name)
    (y,) = runtime.run(FunctionRunOptions(), handle, [X])
    return y


KINDS: dict[str, Callable[..., Any]] = {
    "session": in_session,
    "stoppable": partial(in_session, config=opkernel.SessionConfig(operation_timeout_in_ms=60_000)),
    "dataflow": partial(in_session, executor_type="DATAFLOW"),
    "traced step": in_traced_step,
    "direct session": in_direct_session,
    "function": in_function,
    "function of a session": in_function_of_session,
}


@pytest.mark.parametrize("compute", COMPUTED, ids=lambda compute: compute.__name__)
@pytest.mark.parametrize("kind", KINDS)
def test_all_run_the_same_nodes_of_one_graph(built, compute, kind):
    expected = in_session(compute, optimize=False)
    built.clear()
    np.testing.assert_array_equal(KINDS[kind](compute), expected)
    operations = built[-1]  # others compute constants
    nodes = [op.type for op in operations if op.type not in ("Const", "Identity", "Placeholder")]
    assert len(nodes) == COMPUTED[compute], nodes


@pytest.mark.parametrize("compute", [constants, repetition, identities])
def test_functions_of_a_library_trust_no_shapes_and_do_the_same(built, compute):
    expected = in_session(compute, optimize=False)
    built.clear()
    np.testing.assert_array_equal(in_library(compute), expected)
    (operations,) = built
    nodes = Counter(op.type for op in operations)
    assert sum(nodes.values()) - nodes["Const"] - nodes["Identity"] == COMPUTED[compute], nodes


def test_partial_runs_run_the_graph_as_it_is(built):
    graph, x, y = graph_of(convolution)
    with opkernel.Session(graph) as session:
        handle = session.partial_run_setup(y, [x])
        expected = in_session(convolution, optimize=False)
        np.testing.assert_array_equal(session.partial_run(handle, y, {x: X}), expected)
    assert {"Conv2D", "BiasAdd", "Relu"} <= {op.type for op in built[0]}


def test_a_traced_function_has_programs_for_shapes_that_repeat(built):
    seen = []
    op = register_op(
        "ProgramSees", inputs=["x: int32"], outputs=["y: int32"], shape_fn=unchanged_shape
    )

    @register_kernel(op, device="CPU")
    def see(x):
        seen.append(x.tolist())
        return np.array(x)

    @opkernel.function(input_signature=[opkernel.TensorSpec([None, None], FLOAT)])
    def rows_and_columns(x):
        b = get_default_graph()
        sees = b.create_op("ProgramSees", [r.Shape(input=x)]).outputs[0]
        total = r.Sum(input=sees, axis=np.array([0], "i4"))
        return r.AddV2(x=x, y=r.Cast(x=total, DstT=FLOAT))

    looked = []
    for shape in [(2, 3)] * 5 + [(4, 3), (2, 3)]:
        seen.clear()
        assert np.array_equal(rows_and_columns(np.zeros(shape, "f4")), np.full(shape, sum(shape)))
        looked.append(bool(seen))
    assert looked[:2] + looked[3:] == [True, True, False, False, True, False]  # the third compiles


def on_two_devices():
    """A graph with a node on the second CPU, of which it is asked for in part."""
    b = Builder()
    minus = b.op("Neg", b.placeholder("x"), name="minus")
    minus.op.set_device("/cpu:1")
    return b, b.op("Exp", minus, name="y")


def test_passes_run_at_their_stages(add_pass, caplog):
    events: list[tuple[str, str | None]] = []

    def looking(grouping):
        def look(editor):
            devices = {op.name: op.device for op in editor.operations()}
            events.append((grouping.name, devices.get("minus")))

        look.__name__ = f"look_{grouping.name}"
        return look

    for grouping in Grouping:
        add_pass(grouping, looking(grouping))

    class Placed(logging.Handler):
        def emit(self, record):
            if record.getMessage().startswith("minus"):
                events.append(("placement", record.getMessage().rpartition(" ")[2]))

    logger, handler = logging.getLogger("opkernel.placement"), Placed()
    caplog.set_level("INFO", logger=logger.name)
    logger.addHandler(handler)
    try:
        b, y = on_two_devices()
        with opkernel.Session(b.graph, config=TWO_CPUS) as session:
            assert session.run(y, {"x:0": 0.0}) == 1
    finally:
        logger.removeHandler(handler)
    assert events == [
        ("placement", CPU_1),  # of the whole graph, whatever of it a step needs
        ("PRE_PLACEMENT", CPU_1),
        ("POST_PLACEMENT", CPU_1),
        ("POST_REWRITE_FOR_EXEC", CPU_1),
        ("POST_PARTITIONING", None),  # that of the caller's device, where the node is not
        ("POST_PARTITIONING", CPU_1),
    ]
    assert b.graph.get_operation_by_name("minus").device == "/cpu:1"


@pytest.mark.parametrize("run", [in_session, in_function])
def test_a_pass_after_partitioning_has_its_say(add_pass, run):
    def negate_no_more(editor):
        """Turn each Neg into an Identity."""
        for op in editor.operations():
            if op.type == "Neg":
                editor.become(op, "Identity", op.inputs, {"T": FLOAT})

    def fails(editor):
        """Fail."""
        raise InvalidArgumentError("it failed")

    add_pass(Grouping.POST_PARTITIONING, negate_no_more)
    np.testing.assert_array_equal(run(lambda x: r.Neg(x=x)), X)
    add_pass(Grouping.POST_PARTITIONING, fails)
    np.testing.assert_array_equal(run(lambda x: r.Neg(x=x)), -X)
    add_pass(Grouping.PRE_PLACEMENT, fails)
    np.testing.assert_array_equal(run(lambda x: r.Neg(x=x)), X)


def test_what_a_pass_adds_beside_a_node_is_on_its_device(add_pass):
    def split_up(editor):
        """Put another node between Neg and who takes it."""
        for op in editor.operations():
            if op.type == "Neg":
                attrs = {"T": FLOAT}
                added = editor.add("Snapshot", [op.outputs[0]], "added", attrs, op.device)
                editor.redirect(op.outputs[0], added.outputs[0])

    add_pass(Grouping.POST_PLACEMENT, split_up)
    b, y = on_two_devices()
    metadata = RunMetadata()
    with opkernel.Session(b.graph, config=TWO_CPUS) as session:
        options = opkernel.RunOptions(output_partition_graphs=True)
        assert session.run(y, {"x:0": 0.0}, options, metadata) == 1
    devices = {node.name: node.device for g in metadata.partition_graphs for node in g.node}
    assert devices["added"] == CPU_1


def test_what_no_pass_leaves_needs_a_device_too():
    b = Builder()
    x = b.placeholder("x")
    same = b.op("Identity", x, name="same")
    same.op.set_device("/device:GPU:0")
    y = b.op("Neg", same)
    with (
        opkernel.Session(b.graph, config=opkernel.SessionConfig()) as session,
        pytest.raises(InvalidArgumentError, match="Cannot assign a device for operation same"),
    ):
        session.run(y, {x: 1.0})


def test_a_function_keeps_to_the_threads_of_its_device():
    op = register_op(
        "ProgramThreads", inputs=["x: float"], outputs=["y: float"], shape_fn=unchanged_shape
    )

    @register_kernel(op, device="CPU")
    def threads(x):
        return x + np.float32(intra_op_threads())

    traced = opkernel.function(
        lambda x: get_default_graph().create_op("ProgramThreads", [x]).outputs[0]
    ).get_concrete_function(opkernel.TensorSpec([], FLOAT))
    graph = opkernel.Graph()
    traced.graph.add_to(graph)
    device = LocalDevice("CPU", np, intra_op_threads=7)
    runtime = FunctionLibraryRuntime(graph.function_library, device=device)
    handle = runtime.instantiate(traced.name)
    assert runtime.run(FunctionRunOptions(), handle, [np.float32(0)]) == [7]
