"""Options of sessions and of steps, and what a step leaves in its RunMetadata."""

from __future__ import annotations

import os
import threading
import time

import numpy as np
import pytest
from tests.runtime.dataflow.kernels import WaitsForCancellation, register
from tests.runtime.dataflow.loop_builders import INT32, Builder
from tests.runtime.dataflow.test_loops import counted

import opkernel
from opkernel.errors import (
    CancelledError,
    DeadlineExceededError,
    FailedPreconditionError,
    InvalidArgumentError,
    NotFoundError,
)
from opkernel.kernel import OpKernel
from opkernel.proto import ConfigProto, RunMetadata
from opkernel.proto import RunOptions as RunOptionsProto
from opkernel.runtime.program.inter_op_pool import ThreadPoolOption

WAITS, THREAD, SEES, KEEPS = "OptionsWaits", "OptionsThread", "OptionsSees", "OptionsKeeps"
CPU = "/job:localhost/replica:0/task:0/device:CPU:{}"


class Thread(OpKernel):
    """Tells whether it runs on a thread of a pool."""

    def compute(self, ctx):
        time.sleep(0.001)  # what is quick is not worth a thread
        is_pool = threading.current_thread().name.startswith("opkernel inter-op")
        ctx.set_output(0, np.float32(is_pool))


class Sees(OpKernel):
    """Keeps what it sees of the session."""

    seen: object = None

    def compute(self, ctx):
        Sees.seen = ctx.session_metadata, ctx.device.name
        ctx.runner(lambda: ctx.set_output(0, np.float32(len(ctx.session_handle))))
        while ctx.mutable_output(0) is None:
            time.sleep(0.001)


class Keeps(OpKernel):
    """Allocates memory of its own."""

    def compute(self, ctx):
        output = ctx.allocate_output(0, ctx.input(0).shape)
        output[...] = ctx.allocate_temp(opkernel.float32, (100,)).size


@pytest.fixture(scope="module", autouse=True)
def ops():
    register(WAITS, WaitsForCancellation)
    register(THREAD, Thread)
    register(SEES, Sees)
    register(KEEPS, Keeps)


def example() -> Builder:
    """y = -x * 2"""
    b = Builder()
    b.op("Mul", b.op("Neg", b.placeholder("x"), name="minus"), b.constant(2.0), name="y")
    return b


class TestSessionConfig:
    def test_the_message_says_the_same(self):
        proto = ConfigProto(
            device_count={"CPU": 3},
            intra_op_parallelism_threads=2,
            inter_op_parallelism_threads=4,
            operation_timeout_in_ms=7,
            allow_soft_placement=True,
        )
        proto.session_inter_op_thread_pool.add(num_threads=1, global_name="one")
        proto.graph_options.place_pruned_graph = True
        proto.experimental.session_metadata.name = "model"
        proto.experimental.session_metadata.version = 5
        proto.experimental.executor_type = "DATAFLOW"
        assert opkernel.SessionConfig.of(proto) == opkernel.SessionConfig(
            device_count={"CPU": 3},
            intra_op_parallelism_threads=2,
            inter_op_parallelism_threads=4,
            session_inter_op_thread_pool=[ThreadPoolOption(1, "one")],
            operation_timeout_in_ms=7,
            allow_soft_placement=True,
            place_pruned_graph=True,
            session_metadata=opkernel.SessionMetadata("model", 5),
            executor_type="DATAFLOW",
        )

    def test_something_else_is_no_config(self):
        with pytest.raises(TypeError, match="config must be a SessionConfig, not a dict"):
            opkernel.Session(opkernel.Graph(), config={})  # type: ignore[arg-type]  # that is it

    def test_there_must_be_a_cpu(self):
        with pytest.raises(NotFoundError, match="No CPU devices are available"):
            opkernel.Session(opkernel.Graph(), config=ConfigProto(device_count={"CPU": 0}))

    def test_a_negative_version_is_refused(self):
        proto = ConfigProto()
        proto.experimental.session_metadata.version = -1
        with pytest.raises(InvalidArgumentError, match=r"version shouldn't be negative.*-1"):
            opkernel.Session(opkernel.Graph(), config=proto)

    def test_kernels_see_the_metadata_the_device_and_the_runner(self):
        b = Builder()
        sees = b.op(SEES, b.placeholder("x"))
        sees.op.set_device("/cpu:1")
        metadata = opkernel.SessionMetadata("model", 3)
        config = opkernel.SessionConfig(
            device_count={"CPU": 2},
            session_metadata=metadata,
            inter_op_parallelism_threads=1,
            use_per_session_threads=True,
        )
        with opkernel.Session(b.graph, config=config) as session:
            assert session.run(sees, {"x:0": 1.0}) == len(session._runtime.services.handle)
            run_metadata = RunMetadata()
            session.run(sees, {"x:0": 1.0}, run_metadata=run_metadata)
        assert Sees.seen == (metadata, CPU.format(1))
        assert run_metadata.session_metadata.name == "model"
        assert run_metadata.session_metadata.version == 3

    def test_a_node_on_a_device_that_does_not_exist_runs_unless_the_config_is_strict(self):
        b = example()
        b.graph.get_operation_by_name("minus").set_device("/device:GPU:0")
        with opkernel.Session(b.graph) as session:
            assert session.run("y:0", {"x:0": 1.0}) == -2
        with (
            opkernel.Session(b.graph, config=opkernel.SessionConfig()) as session,
            pytest.raises(InvalidArgumentError, match="Cannot assign a device for operation minus"),
        ):
            session.run("y:0", {"x:0": 1.0})

    def test_placements_and_allocations_are_logged_where_asked_for(self, caplog):
        b = Builder()
        b.op(KEEPS, b.placeholder("x"), name="keeps")
        caplog.set_level("INFO", logger="opkernel")
        with opkernel.Session(b.graph) as session:
            session.run("keeps:0", {"x:0": 1.0})
        assert not caplog.messages
        config = opkernel.SessionConfig(log_device_placement=True, log_memory=True)
        with opkernel.Session(b.graph, config=config) as session:
            session.run("keeps:0", {"x:0": 1.0})
        assert f"keeps: (OptionsKeeps): {CPU.format(0)}" in caplog.messages
        assert any("keeps" in message and "bytes from" in message for message in caplog.messages)

    def test_finalize_keeps_what_was_run(self):
        with opkernel.Session(example().graph) as session:
            assert session.run("y:0", {"x:0": 1.0}) == -2
            session.finalize()
            assert session.run("y:0", {"x:0": 2.0}) == -4
            with pytest.raises(FailedPreconditionError, match="has been finalized"):
                session.run("minus:0", {"x:0": 1.0})

    def test_reset_closes_all_sessions_and_drops_their_variables(self):
        b = Builder()
        v = b.op("VarHandleOp", dtype=opkernel.float32, shape=[])
        init = b.operation("AssignVariableOp", v, b.constant(1.0))
        sessions = [opkernel.Session(b.graph), opkernel.Session(b.graph)]
        for session in sessions:
            session.run(init)
        opkernel.Session.reset()
        for session in sessions:
            with pytest.raises(FailedPreconditionError, match="closed Session"):
                session.run(init)


class TestThreadPools:
    def pools(self, **options):
        b = Builder()
        x = b.placeholder("x")
        total = b.op("AddN", [b.op(THREAD, x) for _ in range(4)])
        return opkernel.Session(b.graph, config=opkernel.SessionConfig(**options)), total

    def test_a_step_chooses_its_pool(self):
        options = [ThreadPoolOption(1), ThreadPoolOption(2)]
        session, total = self.pools(session_inter_op_thread_pool=options)
        with session:
            for index in (0, 1):
                chosen = opkernel.RunOptions(inter_op_thread_pool=index)
                assert session.run(total, {"x:0": 1.0}, chosen) > 0
            chosen = opkernel.RunOptions(inter_op_thread_pool=-1)
            assert session.run(total, {"x:0": 1.0}, chosen) == 0

    @pytest.mark.parametrize("index", [-2, 1])
    def test_a_pool_that_does_not_exist_is_refused(self, index):
        session, total = self.pools(inter_op_parallelism_threads=1)
        with (
            session,
            pytest.raises(InvalidArgumentError, match=f"Invalid inter_op_thread_pool: {index}"),
        ):
            session.run(total, {"x:0": 1.0}, opkernel.RunOptions(inter_op_thread_pool=index))

    def test_without_pools_the_caller_computes(self):
        session, total = self.pools()
        with session:
            assert session.run(total, {"x:0": 1.0}) == 0


class TestRunOptions:
    def test_the_message_says_the_same(self):
        proto = RunOptionsProto(
            timeout_in_ms=5, trace_level=3, inter_op_thread_pool=-1, output_partition_graphs=True
        )
        proto.experimental.use_run_handler_pool = True
        assert opkernel.RunOptions.of(proto) == opkernel.RunOptions(
            timeout_in_ms=5,
            trace_level=opkernel.RunOptions.FULL_TRACE,
            inter_op_thread_pool=-1,
            output_partition_graphs=True,
        )

    def test_something_else_is_no_option(self):
        with (
            opkernel.Session(example().graph) as session,
            pytest.raises(TypeError, match="options must be a RunOptions, not a int"),
        ):
            session.run("y:0", {"x:0": 1.0}, options=5)  # type: ignore[arg-type]  # that is it

    @pytest.mark.parametrize(
        ("config", "options"),
        [
            ({}, opkernel.RunOptions(timeout_in_ms=50)),
            ({"operation_timeout_in_ms": 50}, None),
            ({"operation_timeout_in_ms": 60_000}, RunOptionsProto(timeout_in_ms=50)),
        ],
    )
    def test_a_step_that_takes_too_long_fails_and_the_session_goes_on(self, config, options):
        b = example()
        waits = b.op(WAITS, b.graph.get_tensor_by_name("x:0"))
        with opkernel.Session(b.graph, config=opkernel.SessionConfig(**config)) as session:
            with pytest.raises(DeadlineExceededError):
                session.run(waits, {"x:0": 1.0}, options)
            in_time = opkernel.RunOptions(timeout_in_ms=600_000)
            assert session.run("y:0", {"x:0": 1.0}, in_time) == -2

    @pytest.mark.parametrize("executor", ["COMPILED_PLAN", "DATAFLOW"])
    def test_another_thread_cancels_a_step(self, executor):
        b = Builder()
        (y,) = counted(
            b, b.placeholder("n", INT32), lambda i, x: [b.op("AddV2", x, x)], [b.placeholder("x")]
        )
        waits = b.op(WAITS, b.placeholder("z"))
        manager = opkernel.CancellationManager()
        options = opkernel.RunOptions(cancellation_manager=manager)
        threading.Timer(0.05, manager.start_cancel).start()
        with opkernel.Session(b.graph, executor_type=executor) as session:
            with pytest.raises(CancelledError):
                session.run(y, {"n:0": 2**31 - 1, "x:0": 0.0}, options)
            with pytest.raises(CancelledError):  # what was cancelled stays so
                session.run(y, {"n:0": 3, "x:0": 1.0}, options)
            assert session.run(y, {"n:0": 3, "x:0": 1.0}) == 8
            manager = opkernel.CancellationManager()
            threading.Timer(0.05, manager.start_cancel).start()
            with pytest.raises(CancelledError):
                session.run(waits, {"z:0": 0.0}, opkernel.RunOptions(cancellation_manager=manager))

    def test_a_manager_that_was_not_used_holds_nothing_of_the_steps(self):
        manager = opkernel.CancellationManager()
        options = opkernel.RunOptions(cancellation_manager=manager)
        with opkernel.Session(example().graph) as session:
            call = session.make_callable("y:0", ["x:0"])
            assert session.run("y:0", {"x:0": 1.0}, options) == -2
            assert call(1.0, options=options) == -2
        assert not manager._callbacks


class TestPartitionGraphs:
    def test_the_pruned_graph_is_one_graph_with_arguments_and_results(self):
        b = example()
        metadata = RunMetadata(partition_graphs=[{}])
        with opkernel.Session(b.graph) as session:
            options = opkernel.RunOptions(output_partition_graphs=True)
            session.run("y:0", {"minus:0": 1.0}, options, metadata)
        (graph_def,) = metadata.partition_graphs
        nodes = {node.name: node for node in graph_def.node}
        assert set(nodes) == {"_arg_minus_0_0", "Const", "y", "_retval_y_0_0"}
        assert list(nodes["y"].input) == ["_arg_minus_0_0", "Const"]
        assert list(nodes["_retval_y_0_0"].input) == ["y"]
        assert nodes["_retval_y_0_0"].attr["index"].i == 0
        assert {node.device for node in graph_def.node} == {CPU.format(0)}

    def test_edges_between_devices_are_sends_and_receives(self):
        b = example()
        minus, y = map(b.graph.get_operation_by_name, ("minus", "y"))
        minus.set_device("/cpu:1")
        y.add_control_input(minus)
        metadata = RunMetadata()
        config = opkernel.SessionConfig(device_count={"CPU": 2}, optimize=False)
        with opkernel.Session(b.graph, config=config) as session:
            options = RunOptionsProto(output_partition_graphs=True)
            assert session.run("y:0", {"x:0": 1.0}, options, metadata) == -2
        graphs = {graph.node[0].device: graph for graph in metadata.partition_graphs}
        ops = {d: sorted(node.op for node in graph.node) for d, graph in graphs.items()}
        assert ops == {
            CPU.format(0): ["Const", "Mul", "_Arg", "_Recv", "_Recv", "_Retval", "_Send"],
            CPU.format(1): ["Const", "Neg", "_Recv", "_Send", "_Send"],
        }
        names = [
            sorted(
                node.attr["tensor_name"].s
                for graph in graphs.values()
                for node in graph.node
                if node.op == op
            )
            for op in ("_Send", "_Recv")
        ]
        assert names[0] == names[1]

    def test_a_session_may_refuse_to_give_them(self):
        config = opkernel.SessionConfig(disable_output_partition_graphs=True)
        with (
            opkernel.Session(example().graph, config=config) as session,
            pytest.raises(InvalidArgumentError, match="disable_output_partition_graphs"),
        ):
            session.run("y:0", {"x:0": 1.0}, RunOptionsProto(output_partition_graphs=True))


class TestStepStats:
    def names(self, metadata: RunMetadata) -> dict[str, set[str]]:
        stats = metadata.step_stats.dev_stats
        return {one.device: {node.node_name for node in one.node_stats} for one in stats}

    def test_a_traced_step_tells_its_nodes_by_device(self):
        b = example()
        b.graph.get_operation_by_name("minus").set_device("/cpu:1")
        config = opkernel.SessionConfig(device_count={"CPU": 2})
        metadata = RunMetadata()
        with opkernel.Session(b.graph, config=config) as session:
            options = opkernel.RunOptions(trace_level=opkernel.RunOptions.SOFTWARE_TRACE)
            assert session.run("y:0", {"x:0": 1.0}, options, metadata) == -2
            names = self.names(metadata)
            assert "minus" in names[CPU.format(1)]
            assert "y" in names[CPU.format(0)]
            call = session.make_callable("minus:0", ["x:0"])
            assert call(2.0, options=options, run_metadata=metadata) == -2
            assert "minus" in self.names(metadata)[CPU.format(1)]
            session.run("y:0", {"x:0": 1.0}, run_metadata=metadata)
            assert not self.names(metadata)

    def test_a_traced_step_tells_what_kernels_allocate(self):
        b = Builder()
        b.op(KEEPS, b.placeholder("x"), name="keeps")
        metadata = RunMetadata()
        with opkernel.Session(b.graph) as session:
            options = RunOptionsProto(report_tensor_allocations_upon_oom=True)
            session.run("keeps:0", {"x:0": 1.0}, options, metadata)
        (device,) = metadata.step_stats.dev_stats
        (keeps,) = [node for node in device.node_stats if node.node_name == "keeps"]
        assert keeps.memory_stats.temp_memory_size >= 400

    def test_the_cost_graph_comes_as_often_as_the_config_says(self):
        config = opkernel.SessionConfig(build_cost_model=2, build_cost_model_after=1)
        counts = []
        with opkernel.Session(example().graph, config=config) as session:
            for _ in range(5):
                metadata = RunMetadata()
                session.run("y:0", {"x:0": 1.0}, run_metadata=metadata)
                counts.append({"y", "minus"} <= {node.name for node in metadata.cost_graph.node})
        assert counts == [False, False, True, False, True]


def test_no_thread_of_a_session_outlives_it():
    before = set(threading.enumerate())
    b = example()
    with opkernel.Session(b.graph, inter_op_threads=2) as session:
        session.run("y:0", {"x:0": 1.0})
    for thread in set(threading.enumerate()) - before:
        thread.join(300)
    assert set(threading.enumerate()) <= before, os.getpid()
