"""Saver and resume: checkpoints of several tasks, and sessions that go on from them."""

from __future__ import annotations

import functools
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

import opkernel
from opkernel.distributed import LocalCluster, Saver, TaskName, resume
from opkernel.errors import (
    AbortedError,
    FailedPreconditionError,
    InvalidArgumentError,
    NotFoundError,
    UnavailableError,
)
from opkernel.graph import Graph

ops = opkernel.raw_ops
SERVERS = ["/job:ps/task:0", "/job:ps/task:1"]


@pytest.fixture
def cluster() -> Iterator[LocalCluster]:
    with LocalCluster({"ps": 2, "worker": 1}) as cluster:
        yield cluster


@pytest.fixture
def graph() -> Graph:
    """`a` on one server, `b` of the older kind on the other; `init` sets them, `more` adds one to both."""
    with Graph().as_default() as graph:
        with graph.device(SERVERS[0]):
            a = ops.VarHandleOp(dtype=opkernel.float32, shape=[2], shared_name="a", name="a")
            ops.ReadVariableOp(resource=a, dtype=opkernel.float32, name="read_a")
            set_a = ops.AssignVariableOp(resource=a, value=np.array([1, 2], np.float32))
            add_a = ops.AssignAddVariableOp(resource=a, value=np.ones(2, np.float32))
        with graph.device(SERVERS[1]):
            b = ops.VariableV2(shape=[], dtype=opkernel.int64, name="b")
            ops.Identity(input=b, name="read_b")
            set_b = ops.Assign(ref=b, value=np.int64(7))
            add_b = ops.AssignAdd(ref=b, value=np.int64(1))
        for name, after in (("init", [set_a, set_b.op]), ("more", [add_a, add_b.op])):
            with graph.control_dependencies(after):
                ops.NoOp(name=name)
    return graph


def state(session: opkernel.Session) -> list[list[float]]:
    return [np.asarray(value).tolist() for value in session.run(["read_a:0", "read_b:0"])]


def test_each_task_writes_its_own_part(cluster: LocalCluster, graph: Graph, tmp_path: Path) -> None:
    saver = Saver(graph)
    with opkernel.Session(graph, target=cluster) as session:
        session.run("init")
        prefix = saver.save(session, tmp_path / "new" / "model")
        session.run("more")
        assert state(session) == [[2, 3], 8]
        saver.restore(session, prefix)
        assert state(session) == [[1, 2], 7]
    files = sorted(path.name for path in (tmp_path / "new").iterdir())
    assert files == ["model.data-00000-of-00002", "model.data-00001-of-00002", "model.index"]
    reader = opkernel.load_checkpoint(prefix)
    np.testing.assert_array_equal(reader.get_tensor("a"), np.array([1, 2], np.float32))
    assert reader.get_tensor("b") == 7


def test_a_checkpoint_moves_to_other_tasks(
    cluster: LocalCluster, graph: Graph, tmp_path: Path
) -> None:
    with opkernel.Session(graph, target=cluster) as session:
        session.run("init")
        prefix = Saver(graph).save(session, tmp_path / "model")
    for op in graph.get_operations():
        op.set_device("")
    with opkernel.Session(graph) as session:
        Saver.of(graph).restore(session, prefix)
        assert state(session) == [[1, 2], 7]


def test_slices_of_a_variable(cluster: LocalCluster, tmp_path: Path) -> None:
    whole = np.arange(10, dtype=np.float32).reshape(5, 2)
    with Graph().as_default() as graph:
        slices = []
        for index, part in enumerate((whole[:3], whole[3:])):
            with graph.device(SERVERS[index]):
                handle = ops.VarHandleOp(
                    dtype=opkernel.float32,
                    shape=part.shape,
                    shared_name=f"w{index}",
                    name=f"w{index}",
                )
                ops.AssignVariableOp(resource=handle, value=part, name=f"set_{index}")
                ops.ReadVariableOp(resource=handle, dtype=opkernel.float32, name=f"read_{index}")
            slices.append(handle.op)
        saver = Saver(graph, {"w": slices})
    with opkernel.Session(graph, target=cluster) as session:
        session.run(["set_0", "set_1"])
        prefix = saver.save(session, tmp_path / "model")
        np.testing.assert_array_equal(opkernel.load_checkpoint(prefix).get_tensor("w"), whole)
        cluster.reset()
        saver.restore(session, prefix)
        np.testing.assert_array_equal(session.run("read_1:0"), whole[3:])


def test_what_a_saver_refuses(graph: Graph) -> None:
    with pytest.raises(InvalidArgumentError, match="No variables to save"):
        Saver(Graph())
    with pytest.raises(InvalidArgumentError, match="read_a"):
        Saver(graph, [graph.get_operation_by_name("read_a")])
    a, b = (graph.get_operation_by_name(name) for name in "ab")
    for slices in ([a, b], [b], []):
        with pytest.raises(InvalidArgumentError, match="do not fit together"):
            Saver(graph, {"w": slices})


def test_what_cannot_be_saved_or_restored(
    cluster: LocalCluster, graph: Graph, tmp_path: Path
) -> None:
    saver = Saver(graph)
    with opkernel.Session(graph, target=cluster) as session:
        with pytest.raises(FailedPreconditionError, match="/job:ps"):
            saver.save(session, tmp_path / "model")
        assert not (tmp_path / "model.index").exists()
        with pytest.raises(NotFoundError):
            saver.restore(session, tmp_path / "none")


def test_a_session_resumes_from_the_last_checkpoint(
    cluster: LocalCluster, graph: Graph, tmp_path: Path
) -> None:
    saver, manager = Saver(graph), opkernel.CheckpointManager(tmp_path)
    server = TaskName("ps", 1)
    with opkernel.Session(graph, target=cluster) as session:
        session.run("init")
        for step in range(2):
            session.run("more")
            manager.save(functools.partial(saver.save, session), step)
        session.run("more")
        cluster.stop(server)
        with pytest.raises(UnavailableError, match="/job:ps/replica:0/task:1"):
            session.run("more")
        with pytest.raises(UnavailableError, match="/job:ps/replica:0/task:1"):
            resume(session, tmp_path, timeout_s=0)
        cluster.start(server)
        with pytest.raises(AbortedError, match="/job:ps/replica:0/task:1"):
            session.run("more")
        resume(session, tmp_path)
        assert state(session) == [[3, 4], 9]
        resume(session, tmp_path / "ckpt-0", saver=saver)
        assert state(session) == [[2, 3], 8]


def test_a_session_resumes_without_a_checkpoint(cluster: LocalCluster, graph: Graph) -> None:
    with opkernel.Session(graph, target=cluster) as session:
        session.run("init")
        cluster.stop(TaskName("ps", 0))
        cluster.start(TaskName("ps", 0))
        resume(session, init="init")
        assert state(session) == [[1, 2], 7]


def test_there_is_no_checkpoint(cluster: LocalCluster, graph: Graph, tmp_path: Path) -> None:
    session = opkernel.Session(graph, target=cluster)
    with pytest.raises(NotFoundError, match="no checkpoint in"):
        resume(session, tmp_path)
