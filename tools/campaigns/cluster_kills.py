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
import traceback
from pathlib import Path
from typing import Any

import numpy as np
from tools.campaigns.campaign import Finding

import opkernel
from opkernel.distributed import (
    Cluster,
    ClusterSpec,
    LocalCluster,
    RayCluster,
    Saver,
    TaskName,
    resume,
)
from opkernel.errors import OpError

__all__ = ["SECONDS_A_CASE", "begin", "case"]

sys.path.append(str(Path(__file__).resolve().parents[2] / "examples" / "cluster"))
from digits_graph import training_graph
from resumable_training import FAILURES, AsynchronousTraining, Training, batches, mean_of_last

SPEC = ClusterSpec({"ps": 2, "worker": 2})
STEPS, EVERY, ALLOWED = 16, 4, 1e-6
SECONDS_A_CASE = 120
_SAVES = 5
"""The saves for each step of training, where saves are to be killed."""


def begin() -> None:
    """Start the cluster, and train without kills."""
    _cluster()
    _expected()


def case(rng: random.Random) -> str:
    """Train, or save again and again, and kill tasks meanwhile."""
    return _save(rng) if rng.random() < 0.3 else _train(rng)


def _save(rng: random.Random) -> str:
    """Save until a task is killed: the last whole checkpoint is loaded."""
    with tempfile.TemporaryDirectory() as folder:
        graph, manager = _graph(True), opkernel.CheckpointManager(folder)
        saver, ((images, labels),) = Saver.of(graph), batches(1)
        session = opkernel.Session(graph, target=_cluster())
        session.run("init")
        failure = None
        with _Killer(_cluster(), rng, kills=1):
            while failure is None:
                try:
                    session.run("train", {"images:0": images, "labels:0": labels})
                    for _ in range(_SAVES):
                        step = int(session.run("steps/read:0"))
                        manager.save(functools.partial(saver.save, session), step)
                except FAILURES as error:
                    failure = error
        resume(session, manager.latest_checkpoint, init="init")
        found, expected = session.run("steps/read:0"), manager.latest_checkpoint
        if expected is not None and not expected.endswith(f"-{found}"):
            raise Finding(f"step {found} was restored from {expected}")
        session.close()
    is_of_save = any(f.name == "save" for f in traceback.extract_tb(failure.__traceback__))
    return f"killed in a save: {is_of_save}"


def _train(rng: random.Random) -> str:
    """Train: the losses are those of a training without kills."""
    killer, every = _Killer(_cluster(), rng), rng.choice([1, EVERY])
    is_synchronous = rng.random() < 0.75
    with tempfile.TemporaryDirectory() as folder:
        if is_synchronous:
            training: Any = Training(_graph(True), _cluster(), Path(folder), every)
            with killer:
                training.run(batches(STEPS))
            _check_losses(training.losses)
        else:
            training = AsynchronousTraining(_graph(False), _cluster(), Path(folder), every)
            with killer:
                training.run(batches(2 * STEPS))
            _check_variables(training)
    for error in training.failures:
        if "/job:" not in str(error):
            raise Finding(f"an error names no task: {error}")
    training.session.close()
    return f"{'synchronous' if is_synchronous else 'asynchronous'}: {killer.kills} kills"


def _check_losses(losses: dict[int, float]) -> None:
    """The losses are those of a training without kills."""
    found = [losses[step] for step in range(STEPS)]
    difference = float(np.abs(np.subtract(found, _expected())).max())
    if not difference <= ALLOWED:
        raise Finding(f"the losses differ by {difference}: {found}, without kills {_expected()}")


def _check_variables(training: AsynchronousTraining) -> None:
    """The losses fall, and all variables are there."""
    for losses in training.losses:
        if not mean_of_last(losses) < losses[0]:
            raise Finding(f"the losses do not fall: {losses}")
    graph = training.session.graph
    handles = [op for op in graph.get_operations() if op.type == "VarHandleOp"]
    reads = [
        next(c for c, _ in op.consumer_edges() if c.type == "ReadVariableOp") for op in handles
    ]
    for value in training.session.run([read.outputs[0] for read in reads]):
        if not np.isfinite(value).all():
            raise Finding("a variable is not finite")


class _Killer:
    """Kills the processes of random tasks at random moments, one to three of them."""

    def __init__(self, cluster: Cluster, rng: random.Random, kills: int = 0) -> None:
        self._cluster = cluster
        self._plan = [
            (rng.uniform(0.02, 0.6), rng.choice(cluster.spec.tasks))
            for _ in range(kills or rng.choice([1, 1, 2, 3]))
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
def _graph(is_synchronous: bool) -> opkernel.Graph:
    return training_graph(SPEC, "synchronous" if is_synchronous else "asynchronous")


@functools.cache
def _cluster() -> RayCluster:
    import ray

    options: dict[str, Any] = {"include_dashboard": False, "log_to_driver": False}
    ray.init(num_cpus=4, object_store_memory=200 << 20, logging_level=logging.ERROR, **options)
    cluster = RayCluster(SPEC)
    atexit.register(ray.shutdown)
    atexit.register(cluster.close)
    return cluster


@functools.cache
def _expected() -> list[float]:
    """The losses of a training in one process."""
    with LocalCluster(SPEC) as cluster, tempfile.TemporaryDirectory() as folder:
        training = Training(_graph(True), cluster, Path(folder), EVERY)
        training.run(batches(STEPS))
        return [training.losses[step] for step in range(STEPS)]
