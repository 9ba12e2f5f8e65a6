"""LocalCluster: tasks in this process, to try, test and study what a cluster does.

Source: TensorFlow core/common_runtime/test_util (test clusters), python/framework/test_util.py
(create_local_cluster).
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any

from opkernel.distributed.cluster.cluster import Cluster
from opkernel.distributed.cluster.cluster_spec import ClusterSpec, Jobs
from opkernel.distributed.cluster.task_name import TaskName
from opkernel.distributed.cluster.worker import Worker
from opkernel.errors import UnavailableError
from opkernel.runtime import SessionConfig

__all__ = ["LocalCluster"]


class LocalCluster(Cluster):
    """A cluster whose tasks are all in this process. They share nothing but its memory.

    Args:
        spec: as for `Cluster`.
        config: the devices of each task, and their threads.
        master: as for `Cluster`.
    """

    def __init__(
        self, spec: ClusterSpec | Jobs, *, config: SessionConfig | None = None, master: str = ""
    ) -> None:
        super().__init__(spec, master)
        self._config = SessionConfig() if config is None else config
        self._workers: dict[TaskName, Worker] = {}
        for task in self.spec.tasks:
            self.start(task)

    def call(self, task: TaskName, method: str, *args: Any) -> Future[Any]:
        """Call a method of a task's worker; a step runs on a thread of its own."""
        future: Future[Any] = Future()
        worker = self._workers.get(task)
        if worker is None:
            future.set_exception(UnavailableError(f"{task} is not running"))
        elif method == "run_graph":
            work = threading.Thread(
                target=_complete, args=(future, worker.run_graph, *args), name=f"opkernel {task}"
            )
            work.daemon = True
            work.start()
        else:
            _complete(future, getattr(worker, method), *args)
        return future

    def start(self, task: TaskName) -> None:
        """Start a task, which has no state yet."""
        leader = self.spec.tasks[0]
        self._workers[task] = Worker(task, self.call, self._config, self.call, leader)
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


def _complete(future: Future[Any], function: Callable[..., Any], *args: Any) -> None:
    try:
        result = function(*args)
    except BaseException as error:
        future.set_exception(error)
    else:
        future.set_result(result)
