"""The digits network trains on several tasks to the losses of one process (examples/cluster)."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

from opkernel.distributed import ClusterSpec, LocalCluster, TaskName

EXAMPLES = Path(__file__).resolve().parents[3] / "examples"
STEPS = 8


@pytest.fixture(scope="module")
def example() -> Iterator[ModuleType]:
    """The module `resumable_training`, whose folder is on the path."""
    sys.path.insert(0, str(EXAMPLES / "cluster"))
    try:
        import resumable_training as training

        yield training
    finally:
        sys.path.remove(str(EXAMPLES / "cluster"))


@pytest.fixture(scope="module")
def expected(example: ModuleType) -> list[float]:
    """The losses in one process, by a module that knows no cluster (examples/training)."""
    network = sys.modules["network"].Network()
    return [network.train(*batch) for batch in example.batches(STEPS)]


@pytest.mark.parametrize(("servers", "workers"), [(1, 1), (1, 2), (2, 4)])
def test_parameter_servers(
    example: ModuleType, expected: list[float], tmp_path: Path, servers: int, workers: int
) -> None:
    spec = ClusterSpec({"ps": servers, "worker": workers})
    graph = sys.modules["digits_graph"].training_graph(spec, "synchronous")
    with LocalCluster(spec) as cluster:
        training = example.Training(graph, cluster, tmp_path)
        training.run(example.batches(STEPS))
    found = [training.losses[step] for step in range(STEPS)]
    assert np.abs(np.subtract(found, expected)).max() < 1e-6


def test_training_goes_on_after_tasks_have_died(
    example: ModuleType, expected: list[float], tmp_path: Path
) -> None:
    spec = ClusterSpec({"ps": 2, "worker": 2})
    graph = sys.modules["digits_graph"].training_graph(spec, "synchronous")
    with LocalCluster(spec) as cluster:
        training = example.Training(graph, cluster, tmp_path, every=2)
        for steps, task in ((3, TaskName("ps", 1)), (5, TaskName("worker", 1)), (STEPS, None)):
            training.run(example.batches(steps))
            if task is not None:
                cluster.stop(task)
                cluster.start(task)
    assert len(training.failures) == 2
    found = [training.losses[step] for step in range(STEPS)]
    assert np.abs(np.subtract(found, expected)).max() < 1e-6


def test_asynchronous_training(example: ModuleType, tmp_path: Path) -> None:
    """Each worker does its steps, and the losses of both fall, though a task dies meanwhile."""
    spec = ClusterSpec({"ps": 1, "worker": 2})
    graph = sys.modules["digits_graph"].training_graph(spec, "asynchronous")
    with LocalCluster(spec) as cluster:
        training = example.AsynchronousTraining(graph, cluster, tmp_path)
        training.run(example.batches(20))
        cluster.stop(TaskName("ps", 0))
        cluster.start(TaskName("ps", 0))
        training.run(example.batches(40))
    assert [len(one) for one in training.losses] == [20, 20]
    assert training.failures
    # How far they fall depends on which worker is faster, and on what the checkpoint has.
    assert all(example.mean_of_last(one) < one[0] for one in training.losses)
