"""Graphs whose collectives span tasks: the bits of one process, and errors that reach all."""

import threading
from typing import Any

import numpy as np
import pytest
from tests.distributed.collectives.groups import KINDS, SMALL_AND_LARGE, inputs_of, new_keys, nodes

from opkernel import Graph, Session, raw_ops
from opkernel.distributed.cluster.cluster import LocalCluster
from opkernel.distributed.cluster.cluster_spec import TaskName
from opkernel.errors import DeadlineExceededError, InternalError, InvalidArgumentError, OpError
from opkernel.runtime import RunOptions

TASKS = [TaskName("worker", index) for index in range(3)]
SUM: dict[str, Any] = {"ordering_token": [], "merge_op": "Add", "final_op": "Id"}


@pytest.fixture(scope="module")
def cluster():
    with LocalCluster({"worker": 3}) as cluster:
        yield cluster


def run_all(graph, count, target=None, options=None):
    with Session(graph, target=target) as session:
        return session.run([f"y{rank}:0" for rank in range(count)], options=options)


def reduce_on(tasks, inputs, changes=(), **attrs):
    """A graph that adds up inputs, one on each task; `changes` are of the keys of the last one."""
    keys = new_keys(len(inputs))
    with Graph().as_default() as graph:
        for rank, (task, x) in enumerate(zip(tasks, inputs, strict=True)):
            own = keys | dict(changes) if rank == len(inputs) - 1 else keys
            with graph.device(str(task)):
                raw_ops.CollectiveReduceV2(input=x, **own, **SUM | attrs, name=f"y{rank}")
    return graph


@pytest.mark.parametrize("size", SMALL_AND_LARGE)
@pytest.mark.parametrize("kind", KINDS)
def test_results_have_the_bits_of_one_process(cluster, kind, size):
    inputs = inputs_of(size, 3)
    wanted = run_all(nodes(kind, inputs), 3)
    given = run_all(nodes(kind, inputs, [str(task) for task in TASKS]), 3, cluster)
    assert [one.tobytes() for one in given] == [one.tobytes() for one in wanted]
    assert [one.shape for one in given] == [one.shape for one in wanted]


@pytest.mark.parametrize("dtype", [np.float16, np.int64])
def test_dtypes(cluster, dtype):
    x = (np.arange(700_000) % 100).astype(dtype)
    results = run_all(reduce_on(TASKS, [x, x + 1, x - 1]), 3, cluster)
    for result in results:
        np.testing.assert_array_equal(result, 3 * x)


def test_several_members_on_a_task(cluster):
    tasks = [TASKS[0], TASKS[0], TASKS[1]]
    for size in SMALL_AND_LARGE:
        inputs = [np.full([size], value, np.float32) for value in (1, 2, 4)]
        for result in run_all(reduce_on(tasks, inputs), 3, cluster):
            assert result.tolist() == [7] * size


def test_sessions_meet(cluster):
    keys = new_keys(2)
    answers: dict[int, Any] = {}

    def run(rank):
        with Graph().as_default() as graph, graph.device(str(TASKS[rank + 1])):
            x = np.array([rank + 1, 10], np.float32)
            raw_ops.CollectiveReduceV2(input=x, **keys, **SUM, name="y")
        with Session(graph, target=cluster) as session:
            answers[rank] = [session.run("y:0").tolist() for _ in range(3)]

    threads = [threading.Thread(target=run, args=(rank,)) for rank in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(300)
    assert answers == {0: [[3, 20]] * 3, 1: [[3, 20]] * 3}


def test_steps_of_a_session_at_the_same_time(cluster):
    with Graph().as_default() as graph:
        keys = new_keys(2)
        for rank in range(2):
            with graph.device(str(TASKS[rank])):
                x = raw_ops.Placeholder(dtype="float32", shape=[None], name=f"x{rank}")
                raw_ops.CollectiveReduceV2(input=x, **keys, **SUM, name=f"y{rank}")
    answers: dict[int, Any] = {}

    def run(number):
        feeds = {"x0:0": np.array([number], np.float32), "x1:0": np.array([100], np.float32)}
        answers[number] = [one.tolist() for one in session.run(["y0:0", "y1:0"], feeds)]

    with Session(graph, target=cluster) as session:
        threads = [threading.Thread(target=run, args=(number,)) for number in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(300)
    assert answers == {number: [[100 + number]] * 2 for number in range(8)}


def test_a_loop_across_tasks(cluster):
    keys = new_keys(2)
    frame: dict[str, Any] = {"frame_name": "loop", "parallel_iterations": 4}
    with Graph().as_default() as graph:

        def enter(value):
            return raw_ops.Enter(data=value, is_constant=True, **frame)

        def variable(value):
            start = raw_ops.Enter(data=value, **frame)
            return raw_ops.Merge(inputs=[start, start]).output

        i = variable(np.int32(0))
        goes_on = raw_ops.LoopCond(input=raw_ops.Less(x=i, y=enter(np.int32(4))))
        switch = raw_ops.Switch(data=i, pred=goes_on)
        one = raw_ops.OnesLike(x=switch.output_true)
        following = raw_ops.NextIteration(data=raw_ops.AddV2(x=switch.output_true, y=one))
        i.op.update_input(1, following)
        for rank in range(2):
            with graph.device(str(TASKS[rank])):
                x = variable(np.float32(rank + 1))
                switch = raw_ops.Switch(data=x, pred=goes_on)
                names = {name: enter(np.int32(key)) for name, key in keys.items()}
                total = raw_ops.CollectiveReduceV2(input=switch.output_true, **names, **SUM)
                x.op.update_input(1, raw_ops.NextIteration(data=total))
                raw_ops.Exit(data=switch.output_false, name=f"y{rank}")
    assert run_all(graph, 2, cluster) == [24, 24]  # 1 + 2, doubled three times


class TestMismatches:
    def test_of_sizes_of_groups(self, cluster):
        graph = reduce_on(TASKS[:2], [np.array([1], np.float32)] * 2, {"group_size": 3})
        with pytest.raises(InternalError, match=r"that\s+group has size"):
            run_all(graph, 2, cluster)

    @pytest.mark.parametrize("size", SMALL_AND_LARGE)
    def test_of_shapes(self, cluster, size):
        graph = reduce_on(TASKS[:2], [np.zeros(size, np.float32), np.zeros(size + 1, np.float32)])
        with pytest.raises(InvalidArgumentError, match="Shape mismatch") as caught:
            run_all(graph, 2, cluster)
        assert "/job:worker/replica:0/task:" in caught.value.message

    def test_of_dtypes(self, cluster):
        graph = reduce_on(TASKS[:2], [np.zeros(2, np.float32), np.zeros(2, np.float64)])
        with pytest.raises(InternalError, match="takes part in"):
            run_all(graph, 2, cluster)

    def test_of_reductions(self, cluster):
        keys = new_keys(2)
        with Graph().as_default() as graph:
            for rank, merge_op in enumerate(["Add", "Max"]):
                with graph.device(str(TASKS[rank])):
                    attrs = SUM | {"merge_op": merge_op}
                    x = np.array([1], np.float32)
                    raw_ops.CollectiveReduceV2(input=x, **keys, **attrs, name=f"y{rank}")
        with pytest.raises(InvalidArgumentError, match="reduce in different ways"):
            run_all(graph, 2, cluster)

    @pytest.mark.parametrize("size", SMALL_AND_LARGE)
    def test_of_rows(self, cluster, size):
        keys = new_keys(2)
        with Graph().as_default() as graph:
            for rank in range(2):
                with graph.device(str(TASKS[rank])):
                    x = np.zeros([3, size], np.float32)
                    raw_ops.CollectiveAllToAllV2(
                        input=x, **keys, ordering_token=[], name=f"y{rank}"
                    )
        with pytest.raises(InvalidArgumentError, match=r"must be the same as the group size \(2\)"):
            run_all(graph, 2, cluster)


class TestMissing:
    def test_a_member_waits_no_longer_than_it_says(self, cluster):
        graph = reduce_on(TASKS[:2], [np.array([1], np.float32)] * 2, timeout_seconds=0.05)
        with (
            Session(graph, target=cluster) as session,
            pytest.raises(DeadlineExceededError, match="timed out waiting for other workers"),
        ):
            session.run("y1:0")

    def test_the_deadline_of_the_step(self, cluster):
        graph = reduce_on(TASKS[:2], [np.array([1], np.float32)] * 2)
        with Session(graph, target=cluster) as session:
            session.run(["y0:0", "y1:0"])
            with pytest.raises(DeadlineExceededError):
                session.run("y1:0", options=RunOptions(timeout_in_ms=100))

    @pytest.mark.parametrize("size", SMALL_AND_LARGE)
    def test_a_merge_that_fails(self, cluster, size, monkeypatch):
        def fail(x, y):
            raise ValueError("no merge today")

        from opkernel.ops.collective import collectives

        monkeypatch.setitem(collectives.MERGE_OPS, "Mul", fail)
        graph = reduce_on(TASKS[:2], [np.zeros(size * 2, np.float32)] * 2, merge_op="Mul")
        with pytest.raises(OpError, match="no merge today"):
            run_all(graph, 2, cluster)
