"""Tasks of a training on Ray are killed at any moment: nothing hangs, and training ends as without kills."""

import atexit
import functools
import logging
import os
import random
import signal
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import Any

import numpy as np
from tools.campaigns.campaign import Finding

import opkernel
from opkernel.distributed import Cluster, ClusterSpec, LocalCluster, RayCluster, TaskName
from opkernel.errors import OpError

__all__ = ["case"]

sys.path.append(str(Path(__file__).resolve().parents[2] / "examples" / "cluster"))
from digits_graph import training_graph
from resumable_training import Training, batches

SPEC = ClusterSpec({"ps": 2, "worker": 2})
STEPS, EVERY, ALLOWED = 16, 4, 1e-6
_MOST_SECONDS = 120


def case(rng: random.Random) -> str:
    """Train, kill tasks meanwhile, and compare the losses with those of a training without kills."""
    with tempfile.TemporaryDirectory() as folder:
        training = Training(_graph(), _cluster(), Path(folder), rng.choice([1, EVERY]))
        killer = _Killer(_cluster(), rng)
        start = time.monotonic()
        with killer:
            training.run(batches(STEPS))
        seconds = time.monotonic() - start
        if seconds > _MOST_SECONDS:
            raise Finding(f"{STEPS} steps with {killer.kills} kills took {seconds:.0f} s")
        found = [training.losses[step] for step in range(STEPS)]
        difference = float(np.abs(np.subtract(found, _expected())).max())
        if not difference <= ALLOWED:
            raise Finding(
                f"the losses differ by {difference}: {found}, without kills {_expected()}"
            )
        for error in training.failures:
            if "/job:" not in str(error):
                raise Finding(f"an error names no task: {error}")
        training.session.close()
    return f"{killer.kills} kills, {min(len(training.failures), 9)} failures"


class _Killer:
    """Kills the processes of random tasks at random moments, one to three of them."""

    def __init__(self, cluster: Cluster, rng: random.Random) -> None:
        self._cluster = cluster
        self._plan = [
            (rng.uniform(0.02, 1.5), rng.choice(cluster.spec.tasks))
            for _ in range(rng.choice([1, 1, 2, 3]))
        ]
        self._is_over = threading.Event()
        self._thread = threading.Thread(target=self._run)
        self.kills = 0

    def __enter__(self) -> None:
        self._thread.start()

    def __exit__(self, *error: object) -> None:
        self._is_over.set()
        self._thread.join()

    def _run(self) -> None:
        for delay, task in self._plan:
            if self._is_over.wait(delay):
                return
            self._kill(task)

    def _kill(self, task: TaskName) -> None:
        try:
            process = self._cluster.call(task, "process_id").result(5)
            os.kill(process, signal.SIGKILL)
        except (OpError, OSError, TimeoutError):
            return  # it is being started
        self.kills += 1


@functools.cache
def _graph() -> opkernel.Graph:
    return training_graph(SPEC, "synchronous")


@functools.cache
def _cluster() -> RayCluster:
    import ray

    options: dict[str, Any] = {"include_dashboard": False, "log_to_driver": False}
    try:
        ray.init(num_cpus=4, object_store_memory=200 << 20, logging_level=logging.ERROR, **options)
    except Exception as error:  # a second try ends the process
        raise SystemExit(f"Ray does not start: {error}") from error
    cluster = RayCluster(SPEC)
    atexit.register(ray.shutdown)
    atexit.register(cluster.close)
    return cluster


@functools.cache
def _expected() -> list[float]:
    """The losses of a training in one process."""
    with LocalCluster(SPEC) as cluster, tempfile.TemporaryDirectory() as folder:
        training = Training(_graph(), cluster, Path(folder), EVERY)
        training.run(batches(STEPS))
        return [training.losses[step] for step in range(STEPS)]
