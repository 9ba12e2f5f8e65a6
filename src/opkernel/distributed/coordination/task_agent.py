"""TaskAgent: the agent of a task, for those who are in another process."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future
from typing import Any

from opkernel.errors import UnimplementedError


class TaskAgent:
    """Has the methods of CoordinationServiceAgent, and calls those of the task's agent.

    Args:
        call: Calls a method of the task's worker.
    """

    def __init__(self, call: Callable[..., Future[Any]]) -> None:
        self._call = call

    def __getattr__(self, name: str) -> Callable[..., Any]:
        if name.startswith("_"):
            raise AttributeError(name)
        if name == "add_error_callback":
            raise UnimplementedError("Only in its own task does an agent take callbacks")

        def method(*args: Any, **others: Any) -> Any:
            answer = self._call("coordinate", name.removesuffix("_async"), args, others)
            return answer if name.endswith("_async") else answer.result()

        return method
