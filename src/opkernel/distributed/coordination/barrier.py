"""Barrier: where tasks wait for each other."""

from __future__ import annotations

from collections.abc import Iterable
from concurrent.futures import Future
from typing import Any

from opkernel.distributed.cluster.task_name import TaskName
from opkernel.errors import OpError


class Barrier:
    """A barrier, which is passed once: by all that take part, or with an error.

    Attributes:
        name: Its name.
        tasks: Those that take part.
        missing: Those that have not come.
        is_passed: Whether it is over.
        error: Why it failed, if it has.
        waiting: What to complete when it is over.
        deadline: By when it must be passed, by the service's clock.
        timeout_s: The time that it was given, in seconds.
    """

    def __init__(
        self, name: str, tasks: Iterable[TaskName], timeout_s: float, deadline: float
    ) -> None:
        self.name = name
        self.tasks = frozenset(tasks)
        self.missing = set(self.tasks)
        self.is_passed = False
        self.error: OpError | None = None
        self.waiting: list[Future[Any]] = []
        self.deadline = deadline
        self.timeout_s = timeout_s

    def names_of_missing(self) -> str:
        """The names of the tasks that have not come."""
        return ", ".join(sorted(map(str, self.missing)))
