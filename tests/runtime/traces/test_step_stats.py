"""Step statistics: what steps tell of their nodes, by TensorFlow's names and rules."""

import itertools
import threading

import numpy as np
import pytest

from opkernel import Graph, OpKernel, RunOptions, Session, load_graph, register_kernel, register_op
from opkernel.errors import InternalError, InvalidArgumentError
from opkernel.graph import graph_to_function_def, node_def
from opkernel.kernel import AsyncOpKernel, global_kernel_registry
from opkernel.opdef import unchanged_shape
from opkernel.proto import NameAttrList, NodeExecStats, RunMetadata, StepStats
from opkernel.runtime import traces as tracing
from opkernel.runtime.traces import StepStatsCollector, step_stats_collector
from opkernel.types import DataType

FLOAT = DataType.DT_FLOAT
CPU = "/job:localhost/replica:0/task:0/device:CPU:0"
TRACED = RunOptions(trace_level=RunOptions.FULL_TRACE)
EXECUTORS = ["COMPILED_PLAN", "DATAFLOW"]
NUMBERS = itertools.count()


@pytest.fixture
def kernel_op():
    """Registers a kernel for an op of one float tensor that gives one, and names the op."""
    kernels = global_kernel_registry()
    before = kernels.registrations()

    def register(kernel, inputs=1):
        name = f"Traced{next(NUMBERS)}"
        names = [f"x{index}: float" for index in range(inputs)]
        register_op(name, inputs=names, outputs=["y: float"], shape_fn=unchanged_shape)
        register_kernel(name, device="CPU")(kernel)
        return name

    yield register
    for registration in kernels.registrations():
        if registration not in before and registration.kernel_def.op.startswith("Traced"):
            kernels.unregister(registration)


def node(graph, op, inputs=(), name=None, **attrs):
    created = graph.create_op(op, list(inputs), name=name, attrs=attrs)
    return created.outputs[0] if len(created.outputs) == 1 else created


def placeholder(graph, name="x", dtype=FLOAT):
    return node(graph, "Placeholder", name=name, dtype=dtype)


def traced(session, fetches, feeds=None, options=TRACED):
    """The statistics of a step, by node; the last where a node was run several times."""
    metadata = RunMetadata()
    session.run(fetches, feeds, options, metadata)
    return metadata.step_stats


def by_name(step_stats):
    return {
        stats.node_name: stats for device in step_stats.dev_stats for stats in device.node_stats
    }


def matmul_and_split():
    """`z = split(x w)[0] + split(x w)[1]`, of which TensorFlow's statistics are written down here."""
    graph = Graph()
    x = placeholder(graph)
    w = node(graph, "Const", name="w", dtype=FLOAT, value=np.arange(6, dtype="f4").reshape(3, 2))
    y = node(graph, "MatMul", [x, w], name="y")
    dim = node(graph, "Const", name="sp/split_dim", dtype=DataType.DT_INT32, value=np.int32(1))
    with graph.control_dependencies([w.op]):
        split = node(graph, "Split", [dim, y], name="sp", num_split=2)
    z = node(graph, "AddV2", split.outputs, name="z")
    return graph, x, z


X = np.ones((5, 3), np.float32)


@pytest.mark.parametrize("executor", EXECUTORS)
def test_nodes_have_the_labels_and_outputs_that_tensorflow_gives_them(executor):
    graph, x, z = matmul_and_split()
    with Session(graph, executor_type=executor, optimize=False) as session:
        step_stats = traced(session, z, {x: X})
    (device,) = step_stats.dev_stats
    assert device.device == CPU
    told = {
        stats.timeline_label: [
            (
                output.slot,
                output.tensor_description.dtype,
                [dim.size for dim in output.tensor_description.shape.dim],
                output.tensor_description.allocation_description.requested_bytes,
            )
            for output in stats.output
        ]
        for stats in device.node_stats
    }
    assert told == {
        "y = MatMul(x, w)": [(0, 1, [5, 2], 40)],
        "sp = Split(sp/split_dim, y, ^w)": [(0, 1, [5, 1], 20), (1, 1, [5, 1], 20)],
        "z = AddV2(sp, sp:1)": [(0, 1, [5, 1], 20)],
    }


@pytest.mark.parametrize("executor", EXECUTORS)
def test_times_are_in_order_and_micros_are_nanos(executor):
    graph, x, z = matmul_and_split()
    with Session(graph, executor_type=executor) as session:
        for stats in by_name(traced(session, z, {x: X})).values():
            start = stats.all_start_nanos
            assert 0 < stats.scheduled_nanos <= start
            relative = [stats.op_start_rel_nanos, stats.op_end_rel_nanos, stats.all_end_rel_nanos]
            assert 0 <= relative[0] < relative[1] <= relative[2] < 1e9
            assert stats.scheduled_micros == stats.scheduled_nanos // 1000
            assert stats.all_start_micros == start // 1000
            micros = [stats.op_start_rel_micros, stats.op_end_rel_micros, stats.all_end_rel_micros]
            assert micros == [(start + nanos) // 1000 - start // 1000 for nanos in relative]


def test_without_a_trace_level_nothing_is_recorded():
    graph, x, z = matmul_and_split()
    with Session(graph) as session:
        assert not traced(session, z, {x: X}, RunOptions()).dev_stats
        assert traced(session, z, {x: X}).dev_stats
        assert not traced(session, z, {x: X}, RunOptions()).dev_stats


def test_nodes_of_threads_name_their_thread():
    graph, x, z = matmul_and_split()
    with Session(graph) as session:
        (device,) = traced(session, z, {x: X}).dev_stats
    assert dict(device.thread_names) == {threading.get_native_id(): "MainThread"}
    assert {stats.thread_id for stats in device.node_stats} == {threading.get_native_id()}


def test_types_are_those_that_the_node_declares():
    graph = Graph()
    x = placeholder(graph)
    cast = node(graph, "Cast", [x], DstT=DataType.DT_INT8)
    quantized = node(graph, "Bitcast", [cast], name="q", type=DataType.DT_QINT8)
    text = node(graph, "AsString", [x], name="text")
    with Session(graph) as session:
        told = by_name(traced(session, [quantized, text], {x: X}))
    assert told["q"].output[0].tensor_description.dtype == DataType.DT_QINT8
    assert told["text"].output[0].tensor_description.dtype == DataType.DT_STRING


# Functions


def graph_with_loop():
    """`while i < n: i = square(i) + 1`, where `square` is a function of its own."""
    graph = Graph()
    inner = Graph()
    i = placeholder(inner, "i")
    graph.function_library.add_function(
        graph_to_function_def(inner, "square", [i], [node(inner, "Mul", [i, i], "mul")])
    )
    condition, body = Graph(), Graph()
    i, n = placeholder(condition, "i"), placeholder(condition, "n")
    less = node(condition, "Less", [i, n], "less")
    graph.function_library.add_function(
        graph_to_function_def(condition, "condition", [i, n], [less])
    )
    i, n = placeholder(body, "i"), placeholder(body, "n")
    squared = body.create_op(
        "PartitionedCall",
        [[i]],
        name="call",
        attrs={"f": NameAttrList(name="square"), "Tin": [FLOAT], "Tout": [FLOAT]},
    ).outputs[0]
    one = node(body, "Const", name="one", dtype=FLOAT, value=np.float32(1))
    added = node(body, "AddV2", [squared, one], "added")
    graph.function_library.add_function(graph_to_function_def(body, "body", [i, n], [added, n]))
    x, n = placeholder(graph), placeholder(graph, "n")
    loop = graph.create_op(
        "While",
        [[x, n]],
        name="loop",
        attrs={
            "cond": NameAttrList(name="condition"),
            "body": NameAttrList(name="body"),
            "T": [FLOAT, FLOAT],
        },
    )
    return graph, {x: np.float32(1), n: np.float32(20)}, loop.outputs[0]


@pytest.mark.parametrize("executor", EXECUTORS)
def test_nodes_of_functions_are_named_after_their_calls_and_run_within_them(executor):
    graph, feeds, result = graph_with_loop()
    with Session(graph, executor_type=executor, optimize=False) as session:
        (device,) = traced(session, result, feeds).dev_stats
    names = [stats.node_name.removesuffix("_0") for stats in device.node_stats]
    turn = ["loop/less", "loop/call/mul", "loop/call", "loop/added"]
    assert names == [*turn * 3, "loop/less", "loop"]  # 1, 2, 5, 26
    *inner, loop = device.node_stats
    for stats in inner:
        assert loop.all_start_nanos <= stats.all_start_nanos
        assert end(stats) <= end(loop)
    assert inner[1].timeline_label.endswith("= Mul(loop/call/i, loop/call/i)")


def end(stats):
    return stats.all_start_nanos + stats.all_end_rel_nanos


def test_traced_and_other_steps_share_the_state_of_functions():
    graph, body = Graph(), Graph()
    v = node(body, "VarHandleOp", name="v", dtype=FLOAT, shape=[])
    one = node(body, "Const", name="one", dtype=FLOAT, value=np.float32(1))
    added = body.create_op("AssignAddVariableOp", [v, one], name="add", attrs={"dtype": FLOAT})
    with body.control_dependencies([added]):
        read = node(body, "ReadVariableOp", [v], "read", dtype=FLOAT)
    graph.function_library.add_function(graph_to_function_def(body, "count", [], [read]))
    v = node(graph, "VarHandleOp", name="v", dtype=FLOAT, shape=[])
    zero = node(graph, "Const", name="zero", dtype=FLOAT, value=np.float32(0))
    init = graph.create_op("AssignVariableOp", [v, zero], name="init", attrs={"dtype": FLOAT})
    call = graph.create_op("count", [], name="call")
    with Session(graph) as session:
        session.run(init)
        counts = [session.run(call.outputs[0], None, TRACED if i % 2 else None) for i in range(4)]
    assert counts == [1, 2, 3, 4]


# What runs side by side


def test_asynchronous_kernels_overlap_and_are_of_no_thread(kernel_op):
    both = threading.Barrier(2, timeout=300)

    class Meets(AsyncOpKernel):
        def compute_async(self, ctx, done):
            def finish():
                both.wait()
                ctx.set_output(0, ctx.input(0) + 1)
                done()

            threading.Thread(target=finish).start()

    op = kernel_op(Meets)
    graph = Graph()
    x = placeholder(graph)
    meeting = [node(graph, op, [x], name) for name in "ab"]
    total = node(graph, "AddV2", meeting, "total")
    with Session(graph, optimize=False) as session:
        told = by_name(traced(session, total, {x: X}))
    a, b = told["a"], told["b"]
    assert max(a.all_start_nanos, b.all_start_nanos) < min(end(a), end(b))
    assert (a.thread_id, b.thread_id) == (0, 0) != (told["total"].thread_id, 0)
    assert told["total"].scheduled_nanos >= max(end(a), end(b)) - 1
    assert a.memory[0].total_bytes == X.nbytes


def test_nodes_on_threads_of_the_pool_are_told_with_the_thread(kernel_op):
    both = threading.Barrier(2, timeout=300)

    def meets(x):
        both.wait()
        return x + 1

    op = kernel_op(meets)
    graph = Graph()
    x = placeholder(graph)
    total = node(graph, "AddV2", [node(graph, op, [x], name) for name in "ab"], "total")
    with Session(graph, inter_op_threads=2, optimize=False) as session:
        step_stats = traced(session, total, {x: X})
    a, b = (by_name(step_stats)[name] for name in "ab")
    assert a.thread_id != b.thread_id
    names = step_stats.dev_stats[0].thread_names
    assert "inter-op" in names[a.thread_id] + names[b.thread_id]
    assert max(a.all_start_nanos, b.all_start_nanos) < min(end(a), end(b))


# Memory


def memory_of(stats):
    (memory,) = stats.memory or [None]
    return memory


@pytest.mark.parametrize("executor", EXECUTORS)
def test_memory_is_that_of_new_arrays_until_they_are_collected(executor):
    graph = Graph()
    x = placeholder(graph)
    square = node(graph, "Square", [x], "square")  # 60 bytes, new
    shape = node(graph, "Const", dtype=DataType.DT_INT32, value=np.array([15], np.int32))
    flat = node(graph, "Reshape", [square, shape], "flat")  # the same memory
    fed = node(graph, "Reshape", [x, shape], "fed")  # memory of the feed
    result = node(graph, "Neg", [flat], "result")  # 60 bytes, fetched
    with Session(graph, executor_type=executor) as session:
        told = by_name(traced(session, [result, fed], {x: X}))
    assert not told["flat"].memory
    assert not told["fed"].memory
    square, result = memory_of(told["square"]), memory_of(told["result"])
    assert (square.allocator_name, square.total_bytes, square.peak_bytes) == ("cpu", 60, 60)
    assert [record.alloc_bytes for record in square.allocation_records] == [60, -60]
    times = [record.alloc_micros for record in square.allocation_records]
    assert told["square"].all_start_micros <= times[0] <= times[1]
    assert [record.alloc_bytes for record in result.allocation_records] == [60]
    ids = [
        told[name].output[0].tensor_description.allocation_description.allocation_id
        for name in ("square", "flat", "fed", "result")
    ]
    assert ids[0] == ids[1] != ids[2]
    assert len(set(ids)) == 3


def test_what_a_variable_holds_is_no_memory_of_who_reads_it():
    graph = Graph()
    x = placeholder(graph)
    v = node(graph, "VarHandleOp", name="v", dtype=FLOAT, shape=[5, 3])
    init = graph.create_op("AssignVariableOp", [v, x], name="init", attrs={"dtype": FLOAT})
    read = node(graph, "ReadVariableOp", [v], "read", dtype=FLOAT)
    result = node(graph, "Neg", [read], "result")
    with Session(graph, optimize=False) as session:
        session.run(init, {x: X})
        told = by_name(traced(session, result))
    assert not told["read"].memory
    assert told["read"].output[0].tensor_description.allocation_description.requested_bytes == 60


def test_temporary_and_persistent_memory_of_kernels(kernel_op):
    class Allocates(OpKernel):
        def compute(self, ctx):
            ctx.allocate_temp(FLOAT, [100])
            ctx.allocate_persistent(FLOAT, [10])
            ctx.allocate_output(0, [5, 3])[:] = 0

    graph = Graph()
    x = placeholder(graph)
    y = node(graph, kernel_op(Allocates), [x], "y")
    with Session(graph) as session:
        stats = by_name(traced(session, y, {x: X}))["y"]
    assert stats.memory_stats.temp_memory_size == 400
    assert stats.memory_stats.persistent_memory_size == 40
    memory = memory_of(stats)
    assert (memory.total_bytes, memory.live_bytes) == (460, 60)


def test_a_kernel_takes_over_buffers_when_traced_too():
    graph = Graph()
    x = placeholder(graph)
    v = node(graph, "VarHandleOp", name="v", dtype=FLOAT, shape=[5, 3])
    doubled = node(graph, "AddV2", [x, x], "doubled")
    assign = graph.create_op("AssignVariableOp", [v, doubled], attrs={"dtype": FLOAT})
    for executor in EXECUTORS:
        with Session(graph, executor_type=executor) as session:
            told = by_name(traced(session, assign, {x: X}))
        records = memory_of(told["doubled"]).allocation_records
        assert [record.alloc_bytes for record in records] == [60]  # it lives on in the variable


# Other kernels, and other watchers


def test_a_failing_step_leaves_the_session_usable(kernel_op):
    def fails(x):
        raise InvalidArgumentError("no")

    graph = Graph()
    x = placeholder(graph)
    wrong, right = node(graph, kernel_op(fails), [x], "wrong"), node(graph, "Neg", [x], "right")
    for executor in EXECUTORS:
        with Session(graph, executor_type=executor) as session:
            with pytest.raises(InvalidArgumentError, match="node 'wrong'"):
                traced(session, wrong, {x: X})
            assert list(by_name(traced(session, right, {x: X}))) == ["right"]


def test_the_sanitizer_watches_traced_kernels(kernel_op):
    def writes(x):
        x[0] = 1
        return x

    graph = Graph()
    x = placeholder(graph)
    wrong, right = node(graph, kernel_op(writes), [x], "wrong"), node(graph, "Neg", [x], "right")
    with Session(graph, sanitize=True) as session:
        with pytest.raises(InternalError, match=r"sanitizer: .*node 'wrong'"):
            traced(session, wrong, {x: X})
        assert list(by_name(traced(session, right, {x: X}))) == ["right"]


def test_kernels_may_tell_the_collector_of_parts_of_their_work(kernel_op):
    class Tells(OpKernel):
        def compute(self, ctx):
            if ctx.stats_collector is not None:
                stats = ctx.stats_collector.create_node_exec_stats(node_def("part", "Part"))
                stats.record_executor_started()
                stats.record_executor_ended()
                stats.done(ctx.device.name)
            ctx.set_output(0, ctx.input(0))

    graph = Graph()
    x = placeholder(graph)
    y = node(graph, kernel_op(Tells), [x], "y")
    with Session(graph) as session:
        session.run(y, {x: X})
        told = by_name(traced(session, y, {x: X}))
    assert list(told) == ["part", "y"]
    assert told["part"].timeline_label == "part = Part()"


# The collector


def saved(collector, *names, device=CPU):
    for name in names:
        stats = collector.create_node_exec_stats(node_def(name, "Op"))
        stats.record_executor_started()
        stats.record_executor_ended()
        stats.done(device)


def test_statistics_are_grouped_by_device_and_written_once():
    step_stats = StepStats()
    collector = StepStatsCollector(step_stats)
    saved(collector, "a")
    saved(collector, "b", device="other")
    collector.save(CPU, NodeExecStats(node_name="c"))
    collector.save_thread_name(CPU, 7, "a thread")
    assert not step_stats.dev_stats
    collector.finalize()
    collector.finalize()
    told = {d.device: [stats.node_name for stats in d.node_stats] for d in step_stats.dev_stats}
    assert told == {CPU: ["a", "c"], "other": ["b"]}
    assert step_stats.dev_stats[0].thread_names[7] == "a thread"


def test_what_is_saved_after_the_end_is_not_collected(caplog):
    step_stats = StepStats()
    collector = StepStatsCollector(step_stats)
    collector.finalize()
    saved(collector, "late")
    assert not step_stats.dev_stats
    assert "after finalize" in caplog.text


def test_the_number_of_nodes_is_limited(monkeypatch):
    assert step_stats_collector._MAX_COLLECTED_NODES == 2**20
    monkeypatch.setattr(step_stats_collector, "_MAX_COLLECTED_NODES", 2)
    step_stats = StepStats()
    collector = StepStatsCollector(step_stats)
    saved(collector, "a", "b", "c")
    collector.finalize()
    assert [stats.node_name for stats in step_stats.dev_stats[0].node_stats] == ["a", "b"]


def test_finalize_and_swap_exchanges_what_was_there():
    ours, theirs = StepStats(), StepStats()
    theirs.dev_stats.add(device="before")
    collector = StepStatsCollector(ours)
    saved(collector, "a")
    collector.finalize_and_swap(theirs)
    assert [device.device for device in theirs.dev_stats] == [CPU]
    assert [device.device for device in ours.dev_stats] == ["before"]


def test_transfers_are_labelled_with_the_other_device():
    step_stats = StepStats()
    collector = StepStatsCollector(step_stats)
    for op in ("_Send", "_Recv"):
        ends = {"recv_device": "/cpu:1", "send_device": "/cpu:0"}
        transfer = node_def("n", op, tensor_name="t", **ends)
        stats = collector.create_node_exec_stats(transfer)
        stats.record_executor_started()
        stats.done(CPU)
    collector.finalize()
    labels = [stats.timeline_label for stats in step_stats.dev_stats[0].node_stats]
    assert labels == ["n = _Send(t @/cpu:1)", "n = _Recv(t @/cpu:0)"]


def test_much_memory_stands_before_the_label():
    graph = Graph()
    x = placeholder(graph)
    y = node(graph, "Neg", [x], "y")
    with Session(graph) as session:
        told = by_name(traced(session, y, {x: np.ones(2**18, np.float32)}))
    assert told["y"].timeline_label == "[cpu 1.0MB 1.0MB] y = Neg(x)"


def test_who_holds_the_memory_is_told_where_it_ran_out():
    graph, collector = Graph(), StepStatsCollector(StepStats())
    x = placeholder(graph)
    y = node(graph, "Neg", [x], "y")
    stats = collector.create_node_exec_stats(y.op.node_def)
    arrays = [np.ones(100, np.float32)]
    stats.set_outputs(arrays)
    stats.done(CPU)
    assert "400 bytes from y" in collector.report_allocs_on_resource_exhausted("OOM when ...")
    assert collector.report_allocs_on_resource_exhausted("something else") == ""


def test_the_room_exports_what_it_names():
    assert all(hasattr(tracing, name) for name in tracing.__all__)


@pytest.mark.shared
def test_a_model_gives_the_same_when_traced(shared):
    model = shared / "models" / "functional_control_flow"
    with np.load(model / "case.npz") as stored:
        case = dict(stored)
    feeds = {key[5:]: case[key] for key in case if key.startswith("feed:")}
    fetches = [key[6:] for key in case if key.startswith("fetch:")]
    counts = set()
    for executor in EXECUTORS:
        graph = load_graph(model / "graph.pb")
        with Session(graph, executor_type=executor, optimize=False) as session:
            plain = session.run(fetches, feeds)
            metadata = RunMetadata()
            for value, expected in zip(
                session.run(fetches, feeds, TRACED, metadata), plain, strict=True
            ):
                np.testing.assert_array_equal(value, expected)
            counts.add(sum(len(device.node_stats) for device in metadata.step_stats.dev_stats))
    assert counts == {252}
