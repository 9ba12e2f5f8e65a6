"""Agents of the tasks of clusters, in this process and on Ray."""

import threading
from collections.abc import Iterator

import numpy as np
import pytest

import opkernel
from opkernel import Graph, Session
from opkernel.distributed.cluster.cluster import Cluster, LocalCluster
from opkernel.distributed.cluster.cluster_spec import TaskName
from opkernel.distributed.cluster.ray_cluster import RayCluster
from opkernel.distributed.coordination.coordination_state import CoordinationConfig
from opkernel.errors import (
    AlreadyExistsError,
    DeadlineExceededError,
    FailedPreconditionError,
    InternalError,
    NotFoundError,
    OpError,
    UnavailableError,
    UnknownError,
)
from opkernel.kernel import OpKernel, OpKernelContext, global_kernel_registry
from opkernel.opdef import global_op_registry, scalar_shape

TASKS = [TaskName("worker", index) for index in range(2)]
KINDS = [LocalCluster, pytest.param(RayCluster, marks=pytest.mark.ray)]
CONFIG = CoordinationConfig(heartbeat_timeout_s=600.0)


@pytest.fixture(scope="module", params=KINDS)
def shared(request) -> Iterator[Cluster]:
    """A cluster for tests that leave its tasks well."""
    if request.param is RayCluster:
        request.getfixturevalue("ray")
    with request.param({"worker": 2}, coordination=CONFIG) as cluster:
        yield cluster


@pytest.fixture(params=KINDS)
def cluster(request) -> Iterator[Cluster]:
    if request.param is RayCluster:
        request.getfixturevalue("ray")
    with request.param({"worker": 2}, coordination=CONFIG) as cluster:
        yield cluster


def agents(cluster):
    return [cluster.coordination_agent(task) for task in TASKS]


def until(condition):
    while not condition():
        threading.Event().wait(0.02)


def test_values(shared):
    first, second = agents(shared)
    waiting = second.get_key_value_async("values/a")
    first.insert_key_value("values/a", "1")
    assert waiting.result(300) == "1"
    assert second.try_get_key_value("values/a") == "1"
    with pytest.raises(AlreadyExistsError):
        second.insert_key_value("values/a", "2")
    second.insert_key_value("values/a", b"2", allow_overwrite=True)
    assert first.get_key_value_dir("values") == {"values/a": b"2"}
    first.delete_key_value("values")
    with pytest.raises(NotFoundError):
        first.try_get_key_value("values/a")
    with pytest.raises(DeadlineExceededError, match="values/a"):
        first.get_key_value("values/a", timeout_s=0.05)


def test_barriers(shared):
    first, second = agents(shared)
    waiting = first.wait_at_barrier_async("passed", 60.0)
    second.wait_at_barrier("passed", 60.0)
    waiting.result(300)
    with pytest.raises(DeadlineExceededError, match="task:1"):
        first.wait_at_barrier("late", 0.05)
    first.wait_at_barrier("alone", 10.0, [TASKS[0]])


def test_states(shared):
    agent = shared.coordination_agent("/job:worker/task:1")
    assert agent.get_own_task() == TASKS[1]
    assert agent.is_connected()
    assert [one.state.name for one in agent.get_task_state()] == ["CONNECTED"] * 2


def test_wait_for_all_tasks(shared):
    first, second = agents(shared)
    devices = shared.list_devices()
    other = threading.Thread(target=second.wait_for_all_tasks, args=(devices[1:],))
    other.start()
    first.wait_for_all_tasks(devices[:1])
    other.join(300)
    assert [one.name for one in first.get_cluster_devices()] == [one.name for one in devices]


def test_an_error_reaches_all_and_is_left_by_a_reset(cluster):
    first, second = agents(cluster)
    waiting = first.wait_at_barrier_async("b", 60.0)
    second.report_error(UnknownError("out of luck"))
    assert type(waiting.exception(300)) is InternalError
    until(first.is_error)
    error = first.get_error()
    assert type(error) is UnknownError
    assert f"{TASKS[1]} has failed: out of luck" in error.message
    with pytest.raises(FailedPreconditionError, match="out of luck"):
        first.wait_at_barrier("c", 10.0)
    with pytest.raises(FailedPreconditionError, match="in state ERROR"):
        first.connect()
    for agent in (first, second):
        agent.reset()
        agent.connect()
        with pytest.raises(FailedPreconditionError, match="not in error"):
            agent.reset()
    waiting = first.wait_at_barrier_async("d", 60.0)
    second.wait_at_barrier("d", 60.0)
    waiting.result(300)


def test_shutdown(cluster):
    first, second = agents(cluster)
    first.shutdown()
    assert not first.is_connected()
    assert [one.state.name for one in second.get_task_state()] == ["DISCONNECTED", "CONNECTED"]
    with pytest.raises(FailedPreconditionError, match="must be connected"):
        first.report_error(UnknownError("x"))
    first.connect()
    second.report_error(UnknownError("x"))
    with pytest.raises(FailedPreconditionError, match="in error"):
        second.shutdown()


def test_a_task_that_dies_is_noticed():
    with LocalCluster({"worker": 2}, coordination=CoordinationConfig(3.0)) as cluster:
        agent = cluster.coordination_agent(TASKS[0])
        cluster.stop(TASKS[1])
        until(agent.is_error)
        error = agent.get_error()
        assert type(error) is UnavailableError
        assert f"Task {TASKS[1]} heartbeat timeout" in error.message
        with pytest.raises(UnavailableError, match="is not running"):
            cluster.coordination_agent(TASKS[1]).is_error()


@pytest.mark.ray
def test_a_task_that_restarts_is_in_error(ray):
    with RayCluster({"worker": 2}, coordination=CoordinationConfig(60.0)) as cluster:
        first, second = agents(cluster)
        cluster.kill(TASKS[1])
        until(first.is_error)
        assert str(TASKS[1]) in first.get_error().message

        def connect_again(agent):
            try:
                agent.reset()
                agent.connect()
            except UnavailableError:  # the actor has not come back yet
                return False
            return True

        until(lambda: connect_again(second))
        assert connect_again(first)
        waiting = first.wait_at_barrier_async("b", 60.0)
        second.wait_at_barrier("b", 60.0)
        waiting.result(300)


def test_callbacks():
    with LocalCluster({"worker": 2}, coordination=CONFIG) as cluster:
        first, second = agents(cluster)
        with pytest.raises(OpError, match="in its own task"):
            first.add_error_callback(print)
        first.report_error(UnknownError("x"))
        until(second.is_error)


def test_a_cluster_without_the_service():
    with LocalCluster({"worker": 1}) as cluster:
        agent = cluster.coordination_agent(TASKS[0])
        with pytest.raises(FailedPreconditionError, match=r"coordination=CoordinationConfig\(\)"):
            agent.is_connected()


class NoteOwnTask(OpKernel):
    """Puts the name of its task under the key `own`."""

    def compute(self, ctx: OpKernelContext) -> None:
        agent = ctx.coordination_service_agent
        agent.insert_key_value("own", str(agent.get_own_task()))
        ctx.set_output(0, np.int32(1))


@pytest.fixture
def note_own_task() -> Iterator[str]:
    name = "NoteOwnTask"
    op = opkernel.register_op(name, outputs=["y: int32"], shape_fn=scalar_shape, is_stateful=True)
    opkernel.register_kernel(op, device="CPU")(NoteOwnTask)
    yield name
    for registration in global_kernel_registry().registrations_for(name):
        global_kernel_registry().unregister(registration)
    global_op_registry().unregister(name)


def test_kernels_reach_the_agent(note_own_task):
    with Graph().as_default() as graph, graph.device("/job:worker/task:1"):
        graph.create_op(note_own_task, name="y")
    with LocalCluster({"worker": 2}, coordination=CONFIG) as cluster:
        with Session(graph, target=cluster) as session:
            session.run("y:0")
        assert cluster.coordination_agent(TASKS[0]).try_get_key_value("own") == str(TASKS[1])
