"""Training that goes on after tasks have died, from its last checkpoint."""

import functools
import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from digits_graph import digits

import opkernel
from opkernel.distributed import Cluster, Saver, resume
from opkernel.errors import AbortedError, UnavailableError

Batch = tuple[Any, Any]
FAILURES = UnavailableError, AbortedError
"""What a step, or a save, ends with when a task dies."""


def batches(count: int) -> list[Batch]:
    """The first batches that training sees."""
    found = next(digits.epochs(*digits.images_and_labels("training")))
    return [found[index % len(found)] for index in range(count)]


class Training:
    """The training of a graph by one of the synchronous ways.

    Its position is the number of steps done, a variable that is in each checkpoint.

    Args:
        graph: as `training_graph` makes it.
        cluster: The tasks.
        folder: Where checkpoints are.
        every: A checkpoint is saved each time after so many steps.
    """

    def __init__(
        self, graph: opkernel.Graph, cluster: Cluster, folder: Path, every: int = 5
    ) -> None:
        self._saver = Saver.of(graph)
        self._manager = opkernel.CheckpointManager(folder)
        self._every = every
        self.session = opkernel.Session(graph, target=cluster)
        self.losses: dict[int, float] = {}
        self.failures: list[Exception] = []

    def run(self, data: Sequence[Batch]) -> None:
        """Do a step for each batch; it goes on from the last checkpoint if there is one."""
        self._survives(self._begin)
        while not self._survives(self._go_on, data):
            pass

    def _survives(self, work: Callable[..., None], *args: Any) -> bool:
        """Whether work was done; False, and the state of the last checkpoint, where a task has died."""
        try:
            work(*args)
        except FAILURES as error:
            self.failures.append(error)
            while not self._resumes():
                pass
            return False
        return True

    def _resumes(self) -> bool:
        """Whether the session has the state of the last checkpoint; False if another task died meanwhile."""
        try:
            resume(self.session, self._manager.latest_checkpoint, init="init")
        except FAILURES as error:
            self.failures.append(error)
            return False
        return True

    def _begin(self) -> None:
        self.session.run("init")
        if self._manager.latest_checkpoint is not None:
            self._saver.restore(self.session, self._manager.latest_checkpoint)

    def _go_on(self, data: Sequence[Batch]) -> None:
        step = int(self.session.run("steps/read:0"))
        if self._manager.latest_checkpoint is None:
            self._save(step)
        for images, labels in data[step:]:
            loss, _ = self.session.run(
                ["loss:0", "train"], {"images:0": images, "labels:0": labels}
            )
            self.losses[step] = float(loss)
            step += 1
            if step % self._every == 0:
                self._save(step)

    def _save(self, step: int) -> None:
        self._manager.save(functools.partial(self._saver.save, self.session), step)


def train_asynchronously(
    graph: opkernel.Graph, cluster: Cluster, data: Sequence[Batch]
) -> list[list[float]]:
    """Each worker trains by itself, with each of the batches that fall to it; the losses of each."""
    session = opkernel.Session(graph, target=cluster)
    session.run("init")
    workers = cluster.spec.task_indices("worker")
    losses: list[list[float]] = [[] for _ in workers]

    def train(index: int) -> None:
        for images, labels in data[index :: len(workers)]:
            feeds = {f"images_{index}:0": images, f"labels_{index}:0": labels}
            loss, _ = session.run([f"loss_{index}:0", f"train_{index}"], feeds)
            losses[index].append(float(loss))

    threads = [threading.Thread(target=train, args=[index]) for index in workers]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return losses


def mean_of_last(losses: Sequence[float], count: int = 5) -> float:
    """How far training has come."""
    return float(np.mean(losses[-count:]))
