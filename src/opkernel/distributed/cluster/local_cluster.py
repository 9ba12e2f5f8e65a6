"""LocalCluster: tasks in this process, to try, test and study what a cluster does.

Source: TensorFlow core/common_runtime/test_util (test clusters), python/framework/test_util.py
(create_local_cluster).
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import Future
from functools import partial
from typing import Any

from opkernel.distributed.cluster.cluster import Cluster
from opkernel.distributed.cluster.cluster_spec import ClusterSpec, Jobs
from opkernel.distributed.cluster.task_name import TaskName
from opkernel.distributed.cluster.worker import Worker
from opkernel.distributed.collectives.messages import TaskLinks
from opkernel.distributed.collectives.object_store import ObjectStore
from opkernel.distributed.coordination.coordination_config import CoordinationConfig
from opkernel.distributed.coordination.coordination_service import CoordinationService
from opkernel.distributed.coordination.coordination_service_agent import Coordination
from opkernel.distributed.coordination.service_calls import call_service
from opkernel.errors import UnavailableError
from opkernel.runtime import SessionConfig

_WAITING = frozenset({"close_session", "coordinate", "run_graph"})
"""The methods of a worker that may wait for something else to happen."""


class LocalCluster(Cluster):
    """A cluster whose tasks are all in this process. They share nothing but its memory.

    Args:
        spec: as for `Cluster`.
        config: the devices of each task, and their threads.
        master: as for `Cluster`.
        coordination: how the coordination service behaves; there is none where not given.
    """

    def __init__(
        self,
        spec: ClusterSpec | Jobs,
        *,
        config: SessionConfig | None = None,
        master: str = "",
        coordination: CoordinationConfig | None = None,
    ) -> None:
        super().__init__(spec, master)
        self._config = SessionConfig() if config is None else config
        self._workers: dict[TaskName, Worker] = {}
        self._service: CoordinationService | None = None
        self._coordination: Coordination | None = None
        if coordination is not None:
            self._service = CoordinationService(self.spec.tasks, coordination)
            self._service.start()
            self._coordination = Coordination(partial(call_service, self._service), coordination)
        for task in self.spec.tasks:
            self.start(task)

    def call(self, task: TaskName, method: str, *args: Any) -> Future[Any]:
        """Call a method of a task's worker; what may wait runs on a thread of its own."""
        future: Future[Any] = Future()
        worker = self._workers.get(task)
        if worker is None:
            future.set_exception(UnavailableError(f"{task} is not running"))
        elif method in _WAITING:
            target = getattr(worker, method)
            work = threading.Thread(
                target=_complete, args=(future, target, *args), name=f"opkernel {task}"
            )
            work.daemon = True
            work.start()
        else:
            _complete(future, getattr(worker, method), *args)
        return future

    def start(self, task: TaskName) -> None:
        """Start a task, which has no state yet."""
        links = TaskLinks(self.spec.tasks[0], self.call, self.call, ObjectStore())
        self._workers[task] = Worker(task, self._config, links, self._coordination)
        self._devices.pop(task, None)

    def stop(self, task: TaskName) -> None:
        """End a task with all its state: its steps fail, and later calls with UnavailableError."""
        worker = self._workers.pop(task, None)
        if worker is not None:
            worker.close()

    def close(self) -> None:
        """End all tasks."""
        for task in self.spec.tasks:
            self.stop(task)
        if self._service is not None:
            self._service.close()


def _complete(future: Future[Any], function: Callable[..., Any], *args: Any) -> None:
    try:
        result = function(*args)
    except BaseException as error:
        future.set_exception(error)
    else:
        future.set_result(result)
