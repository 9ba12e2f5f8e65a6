"""RayCluster: the tasks of a session as actors of Ray."""

from __future__ import annotations

import os
import signal
import threading
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest
from tests.distributed.cluster.placed_graphs import PS, WORKER, chain, parameter_server

import opkernel
from opkernel.distributed import RayCluster, Saver, resume
from opkernel.errors import (
    AbortedError,
    CancelledError,
    DeadlineExceededError,
    InvalidArgumentError,
    NotFoundError,
    UnavailableError,
)
from opkernel.graph import Graph
from opkernel.kernel import CancellationManager
from opkernel.proto import RunMetadata

pytestmark = [pytest.mark.ray, pytest.mark.filterwarnings("ignore::ResourceWarning")]
ops = opkernel.raw_ops
FIRST, SECOND = WORKER.format(0), WORKER.format(1)

LIBRARY = """
import opkernel
from opkernel.opdef import register_op, unchanged_shape
from opkernel.kernel import register_kernel

register_op("TaskTestThrice", inputs=["x: float"], outputs=["y: float"], shape_fn=unchanged_shape)
register_kernel("TaskTestThrice", device="CPU")(lambda x: x * 3)
"""


def test_a_value_goes_from_task_to_task(cluster: RayCluster) -> None:
    with opkernel.Session(chain(FIRST, SECOND, PS, FIRST), target=cluster) as session:
        np.testing.assert_array_equal(session.run("y:0", {"x:0": [1, 2]}), [5, 6])


def test_each_task_is_a_process(cluster: RayCluster) -> None:
    processes = cluster.call_all("process_id")
    assert len({*processes, os.getpid()}) == 5


def test_large_tensors_that_arrive_are_not_written_to(cluster: RayCluster) -> None:
    """They are read-only, in Ray's store; chains of element-wise ops take over what is their own alone."""
    with Graph().as_default() as graph:
        with graph.device(FIRST):
            x = ops.Placeholder(dtype=opkernel.float32, shape=[None], name="x")
            double = ops.Mul(x=x, y=np.float32(2))
        with graph.device(SECOND):
            more = ops.AddV2(x=double, y=np.float32(1))
            for _ in range(3):
                more = ops.Neg(x=ops.Square(x=ops.Neg(x=more)))
            ops.AddN(inputs=[more, double], name="y")
    value = np.linspace(0, 1, 1 << 20).astype(np.float32)
    with opkernel.Session(graph, target=cluster) as session:
        found = [session.run("y:0", {"x:0": value}) for _ in range(3)]
    powers = -((value * 2 + 1) ** 8)
    for one in found:
        np.testing.assert_allclose(one, powers + value * 2, rtol=1e-5)
    assert found[0].flags.writeable


def test_variables_are_on_the_parameter_server(cluster: RayCluster) -> None:
    with opkernel.Session(parameter_server(), target=cluster) as session:
        session.run("init")
        for step in range(3):
            session.run("add", {"x:0": step})
        assert session.run("read:0") == 16
        cluster.reset()


def test_an_error_names_task_and_node(cluster: RayCluster) -> None:
    with Graph().as_default() as graph:
        with graph.device(FIRST):
            x = ops.Neg(x=ops.Placeholder(dtype=opkernel.float32, shape=None, name="x"))
        with graph.device(SECOND):
            ops.MatMul(a=x, b=np.ones((3, 2), np.float32), name="product")
    session = opkernel.Session(graph, target=cluster)
    with pytest.raises(InvalidArgumentError, match=r"task:1:\n.*MatMul") as raised:
        session.run("product:0", {"x:0": np.ones((2, 2))})
    assert raised.value.node == "product"


def waiting() -> Graph:
    """`y` waits for an empty queue of the ps."""
    with Graph().as_default() as graph:
        with graph.device(PS):
            queue = ops.FIFOQueueV2(component_types=[opkernel.float32])
            (item,) = ops.QueueDequeueV2(handle=queue, component_types=[opkernel.float32])
        with graph.device(FIRST):
            ops.Neg(x=item, name="y")
    return graph


def test_deadlines_and_cancellation_reach_all_tasks(cluster: RayCluster) -> None:
    manager = CancellationManager()
    with opkernel.Session(waiting(), target=cluster) as session:
        with pytest.raises(DeadlineExceededError):
            session.run("y:0", options=opkernel.RunOptions(timeout_in_ms=100))
        threading.Timer(0.1, manager.start_cancel).start()
        with pytest.raises(CancelledError):
            session.run("y:0", options=opkernel.RunOptions(cancellation_manager=manager))


def test_statistics_are_those_of_all_tasks(cluster: RayCluster) -> None:
    metadata = RunMetadata()
    options = opkernel.RunOptions(trace_level=opkernel.RunOptions.FULL_TRACE)
    with opkernel.Session(chain(FIRST, SECOND), target=cluster) as session:
        session.run("y:0", {"x:0": [1]}, options, metadata)
    names = {
        one.device: {node.node_name for node in one.node_stats}
        for one in metadata.step_stats.dev_stats
    }
    first, second = [f"/job:worker/replica:0/task:{index}/device:CPU:0" for index in range(2)]
    assert "add_0" in names[first]
    assert "add_1" in names[second]


def run_for_ever(session: opkernel.Session, fetch: str) -> None:
    """Run steps until one fails."""
    while True:
        session.run(fetch)


def test_training_goes_on_after_a_task_was_killed(cluster: RayCluster, tmp_path: Path) -> None:
    graph = parameter_server()
    saver = Saver(graph)
    with opkernel.Session(graph, target=cluster) as session:
        session.run("init")
        saver.save(session, tmp_path / "model")
        process = cluster.call(cluster.task("/job:ps/task:0"), "process_id").result()
        os.kill(process, signal.SIGKILL)
        with pytest.raises((UnavailableError, AbortedError), match="/job:ps/replica:0/task:0"):
            run_for_ever(session, "read:0")
        resume(session, tmp_path / "model")
        assert session.run("read:0") == 10


def test_libraries_reach_the_tasks(ray: ModuleType, tmp_path: Path) -> None:
    path = tmp_path / "task_test_ops.py"
    path.write_text(LIBRARY)
    exec(compile(LIBRARY, str(path), "exec"), {})
    with Graph().as_default() as graph, graph.device("/job:worker/task:1"):
        x = ops.Placeholder(dtype=opkernel.float32, shape=[], name="x")
        graph.create_op("TaskTestThrice", [x], name="y")
    with RayCluster({"worker": 2}, libraries=[path]) as cluster:
        assert opkernel.Session(graph, target=cluster).run("y:0", {"x:0": 2}) == 6


def test_what_is_refused(ray: ModuleType) -> None:
    with pytest.raises(NotFoundError, match="No such job"):
        RayCluster({"worker": 1}, {"chief": {"num_cpus": 1}})
    with pytest.raises(UnavailableError, match="/job:worker/replica:0/task:0"):
        RayCluster({"worker": 1}, libraries=["no_such_module"])
