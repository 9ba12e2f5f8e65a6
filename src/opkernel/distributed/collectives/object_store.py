"""ObjectStore: how large values reach several tasks with one copy."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

LARGE_BYTES = 100_000
"""From this size on Ray puts a value into its object store; below, it sends it with the message."""


class ObjectStore:
    """Where tasks share values. This one is for tasks of one process, which share its memory."""

    def share(self, value: Any) -> Any:
        """What stands for a value in messages to any number of tasks; a small value may be it itself."""
        return value

    def fetch(self, shared: Sequence[Any]) -> list[Any]:
        """The values of what `share` has given, in any task; values may be read-only.

        Raises:
            UnavailableError: a task that has shared a value is not there any more.
        """
        return list(shared)
