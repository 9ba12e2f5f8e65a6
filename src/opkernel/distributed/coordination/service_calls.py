"""How agents call the coordination service: in their own process, or an actor of Ray.

The actor has the service's incarnation for its life alone: when it dies, agents are in error, as they are when
TensorFlow's service dies.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from concurrent.futures import Future
from operator import attrgetter
from typing import Any

from opkernel.distributed.cluster.task_name import TaskName
from opkernel.distributed.coordination.coordination_config import CoordinationConfig
from opkernel.distributed.coordination.coordination_service import CoordinationService
from opkernel.errors import OpError, as_op_error


def call_service(service: CoordinationService, method: str, *args: Any) -> Future[Any]:
    """Call a method of a service in this process, such as `values.get`."""
    future: Future[Any] = Future()
    try:
        result = attrgetter(method)(service)(*args)
    except Exception as error:
        future.set_exception(as_op_error(error))
        return future
    if isinstance(result, Future):
        return result
    future.set_result(result)
    return future


class CoordinationActor:
    """An actor of Ray that has the service. Those who wait for it take no thread.

    Args:
        tasks: The tasks of the cluster.
        config: How the service behaves.
    """

    def __init__(self, tasks: Sequence[TaskName], config: CoordinationConfig) -> None:
        self._service = CoordinationService(tasks, config)
        self._service.start()

    async def call(self, method: str, args: Sequence[Any]) -> tuple[OpError | None, Any]:
        """Call a method of the service: its error, and its result."""
        try:
            return None, await asyncio.wrap_future(call_service(self._service, method, *args))
        except OpError as error:
            return error, None
