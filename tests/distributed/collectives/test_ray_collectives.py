"""Collectives of tasks that are actors of Ray."""

import threading
from typing import Any

import numpy as np
import pytest
from tests.distributed.collectives.groups import KINDS, SMALL_AND_LARGE, inputs_of, new_keys, nodes

from opkernel import Graph, RunOptions, Session, raw_ops
from opkernel.distributed.cluster.cluster_spec import TaskName
from opkernel.distributed.cluster.ray_cluster import RayCluster
from opkernel.errors import DeadlineExceededError, OpError

pytestmark = pytest.mark.ray
TASKS = [TaskName("worker", index) for index in range(3)]


@pytest.fixture(scope="module")
def cluster(ray):
    with RayCluster({"worker": 3}) as cluster:
        yield cluster


@pytest.mark.parametrize("size", SMALL_AND_LARGE)
@pytest.mark.parametrize("kind", KINDS)
def test_results_have_the_bits_of_one_process(cluster, kind, size):
    inputs, fetches = inputs_of(size, 3), ["y0:0", "y1:0", "y2:0"]
    with Session(nodes(kind, inputs)) as session:
        wanted = session.run(fetches)
    with Session(nodes(kind, inputs, [str(task) for task in TASKS]), target=cluster) as session:
        for _ in range(2):
            given = session.run(fetches)
            assert [one.tobytes() for one in given] == [one.tobytes() for one in wanted]


def session_of_one(cluster, keys, task):
    with Graph().as_default() as graph, graph.device(str(task)):
        attrs: dict[str, Any] = {"ordering_token": [], "merge_op": "Add", "final_op": "Id"}
        raw_ops.CollectiveReduceV2(input=np.array([1], np.float32), **keys, **attrs, name="y")
    return Session(graph, target=cluster)


@pytest.mark.parametrize("killed", TASKS[:2], ids=["the leader", "a member"])
def test_a_task_that_dies_ends_the_collectives_of_other_sessions(ray, killed):
    """Two sessions wait for a third member; the one hears nothing from Ray of the other's task."""
    for seconds in (1.0, 10.0, 60.0):  # until both have joined before the task dies
        errors = errors_of_two_members(killed, seconds)
        if not isinstance(errors[TASKS[2]], DeadlineExceededError):
            break
    assert str(killed) in errors[TASKS[2]].message


def errors_of_two_members(killed, seconds):
    """How steps of two tasks end that wait for a third, after one of the two was killed."""
    keys, waiting = new_keys(3), (killed, TASKS[2])
    errors: dict[TaskName, OpError] = {}

    def run(task):
        try:
            sessions[task].run(
                "y:0", options=RunOptions(timeout_in_ms=30_000 + int(seconds * 1000))
            )
        except OpError as error:
            errors[task] = error

    with RayCluster({"worker": 3}) as cluster:
        sessions = {task: session_of_one(cluster, keys, task) for task in waiting}
        threads = [threading.Thread(target=run, args=(task,)) for task in waiting]
        for thread in threads:
            thread.start()
        threading.Event().wait(seconds)
        cluster.kill(killed)
        for thread in threads:
            thread.join(600)
    assert set(errors) == set(waiting)
    return errors
