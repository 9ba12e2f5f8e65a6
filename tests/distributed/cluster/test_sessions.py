"""Sessions on the tasks of a cluster: values, state, what is refused, how steps end."""

from __future__ import annotations

import gc
import threading
from collections.abc import Callable, Iterator

import numpy as np
import pytest
from tests.distributed.cluster.placed_graphs import PS, WORKER, chain, parameter_server

import opkernel
from opkernel.distributed import ClusterSpec, LocalCluster, TaskName
from opkernel.distributed.cluster import worker
from opkernel.errors import (
    AbortedError,
    CancelledError,
    DeadlineExceededError,
    FailedPreconditionError,
    InvalidArgumentError,
    NotFoundError,
    ResourceExhaustedError,
    UnavailableError,
    UnimplementedError,
)
from opkernel.graph import Graph
from opkernel.kernel import CancellationManager, register_kernel
from opkernel.opdef import UnregisteredOpError, no_outputs, register_op
from opkernel.proto import RunMetadata
from opkernel.runtime.traces.timeline import timeline_of

ops = opkernel.raw_ops
JOBS = {"ps": 1, "worker": 3}
FIRST, SECOND = WORKER.format(0), WORKER.format(1)


@pytest.fixture
def cluster() -> Iterator[LocalCluster]:
    with LocalCluster(JOBS) as cluster:
        yield cluster


# Values.


def test_a_value_goes_from_task_to_task(cluster: LocalCluster) -> None:
    with opkernel.Session(chain(FIRST, SECOND, PS, FIRST), target=cluster) as session:
        np.testing.assert_array_equal(session.run("y:0", {"x:0": [1, 2]}), [5, 6])
        found = session.run({"y": "y:0", "between": ["add_1:0"], "x": "x:0"}, {"x:0": [1]})
        assert (found["y"], found["between"][0], found["x"]) == (5, 3, 1)


def test_callables(cluster: LocalCluster) -> None:
    with opkernel.Session(chain(FIRST, SECOND), target=cluster) as session:
        run = session.make_callable("y:0", ["x:0"])
        assert [run([step])[0] for step in range(5)] == [2, 3, 4, 5, 6]


def test_any_tensor_is_fed_and_fetched(cluster: LocalCluster) -> None:
    with opkernel.Session(chain(FIRST, SECOND, PS), target=cluster) as session:
        assert session.run("y:0", {"add_0:0": [10]}) == [12]
        assert session.run("x:0", {"x:0": [10]}) == [10]
        assert session.run(["add_0:0", "y:0"], {"add_0:0": [1], "add_1:0": [5]}) == [[1], [6]]


def test_feeds_that_several_tasks_take(cluster: LocalCluster) -> None:
    """Each task gets its own, in their order."""
    with Graph().as_default() as graph:
        a, b, c = [ops.Placeholder(dtype=opkernel.float32, shape=[], name=name) for name in "abc"]
        with graph.device(FIRST):
            first = ops.Sub(x=a, y=c)
        with graph.device(SECOND):
            second = ops.Sub(x=b, y=ops.Mul(x=a, y=np.float32(100)))
        with graph.device(PS):
            ops.Pack(values=[first, second, ops.Sub(x=c, y=b), a], name="y")
    with opkernel.Session(graph, target=cluster) as session:
        for names in ("abc", "cba", "bca"):
            feeds = {f"{name}:0": {"a": 1.0, "b": 20.0, "c": 400.0}[name] for name in names}
            assert session.run("y:0", feeds).tolist() == [-399, -80, 380, 1]


def test_strings_and_empty_tensors_travel(cluster: LocalCluster) -> None:
    graph = Graph()
    with graph.as_default():
        with graph.device(FIRST):
            text = ops.Placeholder(dtype=opkernel.string, shape=[None], name="text")
            upper = ops.StringUpper(input=text)
        with graph.device(SECOND):
            ops.StringJoin(inputs=[upper, upper], name="y")
    with opkernel.Session(graph, target=cluster) as session:
        assert session.run("y:0", {"text:0": [b"a", b"b\0"]}).tolist() == [b"AA", b"B\0B\0"]
        assert session.run("y:0", {"text:0": np.zeros(0, object)}).shape == (0,)


def test_a_control_edge_crosses_tasks(cluster: LocalCluster) -> None:
    graph = parameter_server()
    with (
        graph.as_default(),
        graph.device(SECOND),
        graph.control_dependencies([graph.get_operation_by_name("add")]),
    ):
        ops.NoOp(name="after")
    with (
        graph.as_default(),
        graph.device(PS),
        graph.control_dependencies([graph.get_operation_by_name("after")]),
    ):
        ops.ReadVariableOp(
            resource=graph.get_tensor_by_name("v:0"), dtype=opkernel.float32, name="then"
        )
    with opkernel.Session(graph, target=cluster) as session:
        session.run("init")
        assert [session.run("then:0", {"x:0": 1}) for _ in range(3)] == [12, 14, 16]


def test_a_loop_turns_on_two_tasks(cluster: LocalCluster) -> None:
    """A v1 loop whose body adds on one task and doubles on another."""
    graph = Graph()
    with graph.as_default(), graph.device(FIRST):

        def enter(value, *, is_constant=True):
            return ops.Enter(data=value, frame_name="loop", is_constant=is_constant)

        start = [enter(np.float32(1), is_constant=False), enter(np.int32(0), is_constant=False)]
        merged = [ops.Merge(inputs=[one, one])[0] for one in start]
        goes_on = ops.LoopCond(input=ops.Less(x=merged[1], y=enter(np.int32(4))))
        value, count = [ops.Switch(data=one, pred=goes_on) for one in merged]
        with graph.device(SECOND):
            doubled = ops.Mul(x=value[1], y=enter(np.float32(2)))
        turned = [ops.AddV2(x=doubled, y=enter(np.float32(1)))]
        turned.append(ops.AddV2(x=count[1], y=enter(np.int32(1))))
        for merge, one in zip(merged, turned, strict=True):
            merge.op.update_input(1, ops.NextIteration(data=one))
        ops.Exit(data=value[0], name="y")
    with opkernel.Session(graph, target=cluster) as session:
        assert session.run("y:0") == 31  # 1 -> 3 -> 7 -> 15 -> 31


# State.


def test_variables_are_on_the_parameter_server(cluster: LocalCluster) -> None:
    with opkernel.Session(parameter_server(), target=cluster) as session:
        session.run("init")
        for step in range(3):
            session.run("add", {"x:0": step})
        assert session.run("read:0") == 16


def test_sessions_share_the_resources_of_tasks(cluster: LocalCluster) -> None:
    with opkernel.Session(parameter_server(), target=cluster) as session:
        session.run("init")
    with opkernel.Session(parameter_server(), target=cluster) as other:
        assert other.run("read:0") == 10
        cluster.reset()
        with pytest.raises(FailedPreconditionError, match="v"):
            other.run("read:0")


def test_kernels_with_state_are_those_of_the_session(cluster: LocalCluster) -> None:
    """A random op goes on with its numbers whatever else is fetched, as in one process."""

    def drawing(device: str) -> Graph:
        graph = Graph()
        with graph.as_default(), graph.device(device):
            drawn = ops.RandomUniform(
                shape=[2], dtype=opkernel.float32, seed=1, seed2=2, name="drawn"
            )
            ops.Neg(x=drawn, name="negative")
        return graph

    here = opkernel.Session(drawing(""))
    there = opkernel.Session(drawing(SECOND), target=cluster)
    for session in (here, there):
        session.run("drawn:0")
    np.testing.assert_array_equal(there.run("negative:0"), here.run("negative:0"))


def test_devices(cluster: LocalCluster) -> None:
    with opkernel.Session(Graph(), target=cluster) as session:
        names = [device.name for device in session.list_devices()]
    device = "/replica:0/task:{}/device:CPU:0"
    workers = [f"/job:worker{device.format(index)}" for index in range(3)]
    assert sorted(names) == [f"/job:ps{device.format(0)}", *workers]
    assert names[0] == workers[0]  # the master's


def test_operations_without_a_task_run_on_the_master() -> None:
    graph = Graph()
    with graph.as_default():
        ops.Neg(x=np.float32(1), name="y")
    cluster = LocalCluster({"a": 2}, master="/job:a/task:1")
    with cluster, opkernel.Session(graph, target=cluster) as session:
        assert session.run("y:0") == -1
        assert session.plan("y:0").source.startswith("# /job:a/replica:0/task:1\n")


# What is refused.


def test_tasks_that_are_none(cluster: LocalCluster) -> None:
    session = opkernel.Session(chain("/job:worker/task:7"), target=cluster)
    with pytest.raises(InvalidArgumentError, match="task:7"):
        session.run("y:0", {"x:0": [1]})
    with pytest.raises(InvalidArgumentError, match="master"):
        LocalCluster(JOBS, master="/job:worker/task:7")
    with pytest.raises(InvalidArgumentError, match="must have a task"):
        LocalCluster({})
    with pytest.raises(NotFoundError, match="No task"):
        cluster.task("/job:worker/task:7")


def test_an_error_names_task_node_and_cause(cluster: LocalCluster) -> None:
    graph = Graph()
    with graph.as_default():
        with graph.device(FIRST):
            x = ops.Placeholder(dtype=opkernel.float32, shape=None, name="x")
            one = ops.Neg(x=x)
        with graph.device(SECOND):
            ops.MatMul(a=one, b=np.ones((3, 2), np.float32), name="product")
    with opkernel.Session(graph, target=cluster) as session:
        with pytest.raises(InvalidArgumentError) as raised:
            session.run("product:0", {"x:0": np.ones((2, 2))})
        assert raised.value.node == "product"
        assert raised.value.message.startswith("From /job:worker/replica:0/task:1:\n")
        assert "MatMul" in raised.value.message
        np.testing.assert_array_equal(
            session.run("product:0", {"x:0": np.ones((1, 3))}), [[-3, -3]]
        )


def test_what_sessions_on_clusters_cannot_do(cluster: LocalCluster) -> None:
    session = opkernel.Session(chain(FIRST), target=cluster)
    with pytest.raises(UnimplementedError, match="in parts"):
        session.partial_run_setup(["y:0"], ["x:0"])
    with pytest.raises(TypeError, match="target must be a cluster"):
        opkernel.Session(chain(FIRST), target="grpc://host:2222")  # type: ignore[arg-type]  # the fault


def test_options_hold_in_the_tasks(cluster: LocalCluster) -> None:
    with opkernel.Session(chain(FIRST), target=cluster, memory_limit_bytes=1000) as session:
        assert session.run("y:0", {"x:0": [1]}) == [2]
        with pytest.raises(ResourceExhaustedError, match="task:0"):
            session.run("y:0", {"x:0": np.ones(1000)})
    with opkernel.Session(chain(FIRST), target=cluster, sanitize=True) as session:
        assert session.run("y:0", {"x:0": [1]}) == [2]


@pytest.mark.jax
def test_tasks_compile_their_parts(cluster: LocalCluster) -> None:
    with opkernel.Session(chain(FIRST, SECOND, FIRST), target=cluster, jit="xla!") as session:
        np.testing.assert_array_equal(session.run("y:0", {"x:0": [1, 2]}), [4, 5])


def test_a_program_that_is_collected_while_its_task_is_at_work() -> None:
    """A collection comes within any call: one within a task's own must not wait for the task."""
    with LocalCluster({"worker": 1}) as cluster:
        kept = [opkernel.Session(chain(FIRST), target=cluster) for _ in range(2)]
        for session in kept:
            session.run("y:0", {"x:0": [1]})
        task = cluster._workers[TaskName.parse(FIRST)]
        assert len(task._graphs) == 2

        def collect() -> None:
            with task._lock:
                del kept[0]
                gc.collect()

        thread = threading.Thread(target=collect, daemon=True)
        del session
        thread.start()
        thread.join(20)
        assert not thread.is_alive()
        kept[0].run("y:0", {"x:0": [1]})
        assert len(task._graphs) == 1


def test_nothing_to_run(cluster: LocalCluster) -> None:
    with opkernel.Session(chain(FIRST), target=cluster) as session:
        assert session.run([]) == []
        assert "LocalCluster" in repr(session)


# How steps end.


STARTED = "ClusterTestStarted"
_started = threading.Event()

register_op(STARTED, inputs=[], attrs=[], shape_fn=no_outputs, is_stateful=True)
register_kernel(STARTED, device="CPU")(_started.set)


def blocked() -> Graph:
    """`y` waits for an empty queue of the ps; `_started` tells that it does."""
    _started.clear()
    graph = Graph()
    with graph.as_default():
        with graph.device(PS):
            queue = ops.FIFOQueueV2(component_types=[opkernel.float32], name="queue")
            with graph.control_dependencies([graph.create_op(STARTED, [], name="started")]):
                (item,) = ops.QueueDequeueV2(
                    handle=queue, component_types=[opkernel.float32], name="take"
                )
            ops.QueueEnqueueV2(handle=queue, components=[np.float32(5)], name="put")
        with graph.device(FIRST):
            ops.Neg(x=item, name="y")
    return graph


def when_started(action: Callable[[], object]) -> None:
    """Do something once a step of `blocked` waits."""

    def wait() -> None:
        _started.wait()
        action()

    threading.Thread(target=wait).start()


def test_a_step_that_waits_goes_on_when_another_brings(cluster: LocalCluster) -> None:
    with opkernel.Session(blocked(), target=cluster) as session:
        found: list[float] = []
        thread = threading.Thread(target=lambda: found.append(session.run("y:0")))
        thread.start()
        session.run("put")
        thread.join(300)
        assert found == [-5]


def test_deadlines(cluster: LocalCluster) -> None:
    with opkernel.Session(blocked(), target=cluster) as session:
        with pytest.raises(DeadlineExceededError):
            session.run("y:0", options=opkernel.RunOptions(timeout_in_ms=50))
        session.run("put")
        assert session.run("y:0") == -5  # the step that ended took nothing


def test_cancellation(cluster: LocalCluster) -> None:
    manager = CancellationManager()
    options = opkernel.RunOptions(cancellation_manager=manager)
    with opkernel.Session(blocked(), target=cluster) as session:
        when_started(manager.start_cancel)
        with pytest.raises(CancelledError):
            session.run("y:0", options=options)
        session.run("put")
        assert session.run("y:0") == -5


def test_a_session_that_is_closed_ends_its_steps(cluster: LocalCluster) -> None:
    session = opkernel.Session(blocked(), target=cluster)
    when_started(session.close)
    with pytest.raises(CancelledError):
        session.run("y:0")


def test_an_op_that_a_task_does_not_know(
    cluster: LocalCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    def unknown(graph_def: object, runner: object) -> None:
        raise UnregisteredOpError("Op type not registered 'Mine'")

    monkeypatch.setattr(worker, "RegisteredGraph", unknown)
    session = opkernel.Session(chain(FIRST), target=cluster)
    with pytest.raises(NotFoundError, match=r"task:0:\n.*'Mine'.*libraries="):
        session.run("y:0", {"x:0": [1]})


def test_a_failure_ends_the_parts_that_wait(cluster: LocalCluster) -> None:
    """The ps waits for a queue that nothing is put into; the worker fails."""
    graph = blocked()
    with graph.as_default(), graph.device(SECOND):
        wrong = ops.MatMul(
            a=ops.Placeholder(dtype=opkernel.float32, name="x"), b=np.ones((3, 2), np.float32)
        )
        ops.Neg(x=wrong, name="wrong")
    with opkernel.Session(graph, target=cluster) as session:
        with pytest.raises(InvalidArgumentError, match="task:1"):
            session.run(["y:0", "wrong:0"], {"x:0": np.ones((2, 2))})
        session.run("put")
        assert session.run("y:0") == -5


def test_a_task_that_is_gone(cluster: LocalCluster) -> None:
    ps = TaskName("ps", 0)
    with opkernel.Session(parameter_server(), target=cluster) as session:
        session.run("init")
        cluster.stop(ps)
        with pytest.raises(UnavailableError, match="/job:ps/replica:0/task:0"):
            session.run("read:0")
        cluster.start(ps)
        with pytest.raises(AbortedError, match="has restarted"):
            session.run("read:0")


def test_the_step_of_a_task_that_is_stopped_ends(cluster: LocalCluster) -> None:
    with opkernel.Session(blocked(), target=cluster) as session:
        when_started(lambda: cluster.stop(TaskName("ps", 0)))
        with pytest.raises((CancelledError, UnavailableError), match="/job:ps"):
            session.run("y:0")


class Losing(LocalCluster):
    """A cluster that loses what tasks send each other, and whose first task restarts when its part is done."""

    def call(self, task, method, *args):
        if method == "receive":
            return None
        future = super().call(task, method, *args)
        if method == "run_graph" and task.index == 0:
            future.result(300)
            self.stop(task)
            self.start(task)
        return future


def test_a_task_that_dies_once_its_part_is_done() -> None:
    """Nobody but the client can know that what it has sent never comes."""
    with Losing({"worker": 2}) as cluster:
        session = opkernel.Session(chain(FIRST, SECOND), target=cluster)
        with pytest.raises(UnavailableError, match="worker/replica:0/task:0 has restarted"):
            session.run("y:0", {"x:0": [1]})


# Records.


def test_statistics_are_those_of_all_tasks(cluster: LocalCluster) -> None:
    metadata = RunMetadata()
    options = opkernel.RunOptions(
        trace_level=opkernel.RunOptions.FULL_TRACE, output_partition_graphs=True
    )
    with opkernel.Session(chain(FIRST, SECOND), target=cluster) as session:
        session.run("y:0", {"x:0": [1]}, options, metadata)
    names = {
        one.device: {node.node_name for node in one.node_stats}
        for one in metadata.step_stats.dev_stats
    }
    first, second = [f"/job:worker/replica:0/task:{index}/device:CPU:0" for index in range(2)]
    assert "add_0" in names[first]
    assert {"add_1"} <= names[second]
    assert len(metadata.partition_graphs) == 2
    assert {node.device for node in metadata.partition_graphs[0].node} == {first}


def test_traces_have_arrows_for_what_was_sent(cluster: LocalCluster) -> None:
    metadata = RunMetadata()
    options = opkernel.RunOptions(trace_level=opkernel.RunOptions.FULL_TRACE)
    with opkernel.Session(chain(FIRST, SECOND, PS), target=cluster) as session:
        session.run("y:0", {"x:0": [1]}, options, metadata)
    timeline = timeline_of(metadata.step_stats)
    device_of = {one: track.device for track in timeline.tracks for one in track.slices}
    sent = [
        (device_of[producer], producer.op, device_of[consumer], consumer.op)
        for producer, consumer in timeline.arrows
        if device_of[producer] != device_of[consumer]
    ]
    first, second, ps = [
        f"/job:{task}/device:CPU:0"
        for task in ("worker/replica:0/task:0", "worker/replica:0/task:1", "ps/replica:0/task:0")
    ]
    assert sorted(sent) == [(first, "_Send", second, "_Recv"), (second, "_Send", ps, "_Recv")]


def test_specs_from_elsewhere() -> None:
    cluster = LocalCluster(ClusterSpec({"worker": ["a:1", "b:1"]}))
    with cluster, opkernel.Session(chain(FIRST, SECOND), target=cluster) as session:
        assert session.run("y:0", {"x:0": [1]}) == [3]
