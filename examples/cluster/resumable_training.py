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


class AsynchronousTraining:
    """The training of a graph by the asynchronous way: each worker goes on by itself, a thread for each here.

    Args:
        graph: as `training_graph` makes it.
        cluster: The tasks.
        folder: Where checkpoints are.
        every: The first worker saves a checkpoint each time after so many of its steps.

    Attributes:
        losses: Those of each worker's steps.
        failures: What steps have ended with when tasks died.
    """

    def __init__(
        self, graph: opkernel.Graph, cluster: Cluster, folder: Path, every: int = 5
    ) -> None:
        self._saver = Saver.of(graph)
        self._manager = opkernel.CheckpointManager(folder)
        self._every = every
        self._workers = cluster.spec.task_indices("worker")
        self.session = opkernel.Session(graph, target=cluster)
        self.losses: list[list[float]] = [[] for _ in self._workers]
        self.failures: list[Exception] = []

    def run(self, data: Sequence[Batch]) -> None:
        """Have each worker train with the batches that fall to it; after a failure from the last checkpoint on."""
        self._again(self._begin)
        while self._rest(data):
            self._again(self._train, data)

    def _again(self, work: Callable[..., None], *args: Any) -> None:
        """Do work; where a task dies, wait until all tasks have what the last checkpoint says."""
        try:
            work(*args)
        except FAILURES as error:
            self.failures.append(error)
            self._again(resume, self.session, self._manager.latest_checkpoint)
            if work == self._begin:
                self._again(work)

    def _begin(self) -> None:
        self.session.run("init")
        self._save()

    def _rest(self, data: Sequence[Batch]) -> bool:
        count = len(self._workers)
        return any(len(self.losses[i]) < len(data[i::count]) for i in self._workers)

    def _train(self, data: Sequence[Batch]) -> None:
        is_over, failures = threading.Event(), list[Exception]()

        def train(index: int) -> None:
            try:
                for batch in data[index :: len(self._workers)][len(self.losses[index]) :]:
                    if is_over.is_set():
                        return
                    self._advance(index, *batch)
            except FAILURES as error:
                failures.append(error)
                is_over.set()

        threads = [threading.Thread(target=train, args=[index]) for index in self._workers]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        if failures:
            raise failures[0]

    def _advance(self, index: int, images: Any, labels: Any) -> None:
        feeds = {f"images_{index}:0": images, f"labels_{index}:0": labels}
        loss, _ = self.session.run([f"loss_{index}:0", f"train_{index}"], feeds)
        self.losses[index].append(float(loss))
        if index == 0 and len(self.losses[0]) % self._every == 0:
            self._save()

    def _save(self) -> None:
        self._manager.save(functools.partial(self._saver.save, self.session))


def mean_of_last(losses: Sequence[float], count: int = 5) -> float:
    """How far training has come."""
    return float(np.mean(losses[-count:]))
