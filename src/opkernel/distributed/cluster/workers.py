"""Workers: how the tasks of a cluster are called.

Source: TensorFlow core/distributed_runtime/worker_interface.h, worker_cache.h.
"""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from concurrent.futures import Future, wait
from typing import Any

from opkernel.distributed.cluster.task_name import TaskName
from opkernel.errors import UnavailableError

_POLL_S = 0.05
"""How long a task that is not there yet is left alone."""


class Workers(ABC):
    """The workers of some tasks (see `Worker`), wherever they are."""

    @property
    @abstractmethod
    def tasks(self) -> Sequence[TaskName]:
        """The tasks, in order."""

    @abstractmethod
    def call(self, task: TaskName, method: str, *args: Any) -> Future[Any]:
        """Call a method of a task's worker.

        The result fails with what the method raises, or UnavailableError, which names the task, where the task
        is not there.
        """

    def call_all(
        self, method: str, *args: Any, tasks: Iterable[TaskName] | None = None
    ) -> list[Any]:
        """Call a method of several workers side by side, of all by default; the results, in order.

        Raises:
            OpError: as the first of them raised it.
        """
        chosen = self.tasks if tasks is None else tasks
        futures = [self.call(task, method, *args) for task in chosen]
        wait(futures)
        return [future.result() for future in futures]

    def wait_for_tasks(self, timeout_s: float) -> None:
        """Wait until all tasks are there.

        Raises:
            UnavailableError: one is still not there after that time, in seconds.
        """
        until = time.monotonic() + timeout_s
        while True:
            try:
                self.call_all("get_status")
                return
            except UnavailableError:
                if time.monotonic() > until:
                    raise
            time.sleep(_POLL_S)
