"""Network: executors of several tasks whose messages arrive in any order, and whose tasks may die."""

from __future__ import annotations

import random
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any

from opkernel.distributed.cluster.cluster_spec import TaskName
from opkernel.distributed.collectives.cluster_collective_executor import ClusterCollectiveExecutor
from opkernel.distributed.collectives.exchange import ObjectStore, TaskLinks
from opkernel.errors import UnavailableError

__all__ = ["Network"]


class Network:
    """Tasks of the job `worker`; the first one is the leader.

    Args:
        size: How many tasks there are.
        seed: Of the order in which messages arrive.
        small_bytes: As for the executors.
    """

    def __init__(self, size: int, seed: int = 0, small_bytes: int = 0) -> None:
        self.rng = random.Random(seed)
        self.tasks = [TaskName("worker", index) for index in range(size)]
        self._small_bytes = small_bytes
        self._messages: list[Callable[[], None]] = []
        self._incarnation = 0
        self.executors: dict[TaskName, ClusterCollectiveExecutor] = {}
        for task in self.tasks:
            self.start(task)

    def start(self, task: TaskName) -> None:
        """Start a task, which knows nothing of an earlier start."""
        self._incarnation += 1
        links = TaskLinks(self.tasks[0], self._call, self._call, ObjectStore())
        self.executors[task] = ClusterCollectiveExecutor(
            task, self._incarnation, links, self._small_bytes
        )

    def kill(self, task: TaskName) -> None:
        """End a task without a word to the others; messages to it are lost."""
        self.executors.pop(task).watch.close()

    def deliver(self, most: int = 1_000_000) -> None:
        """Deliver messages, in any order, until there are none."""
        while self._messages and most:
            self._messages.pop(self.rng.randrange(len(self._messages)))()
            most -= 1

    def check(self) -> None:
        """Have all tasks look after those that they depend on, until nothing comes of it."""
        for _ in range(3):
            for executor in list(self.executors.values()):
                executor.watch.check()
            self.deliver()

    def close(self) -> None:
        """End all watches."""
        for executor in self.executors.values():
            executor.watch.close()

    def _call(self, task: TaskName, method: str, *args: Any) -> Future[Any]:
        future: Future[Any] = Future()
        target = self.executors.get(task)

        def arrive() -> None:
            if target is None or self.executors.get(task) is not target:
                future.set_exception(UnavailableError(f"{task} is not there"))
            else:
                future.set_result(getattr(target, method)(*args))

        self._messages.append(arrive)
        return future
