"""Cluster: the tasks that sessions may be aimed at.

Source: TensorFlow core/distributed_runtime/master.cc.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from functools import partial
from typing import Self, cast

import numpy as np

from opkernel.device.local_device import DeviceAttributes, LocalDevice
from opkernel.distributed.cluster.cluster_spec import ClusterSpec, Jobs
from opkernel.distributed.cluster.master_session import MasterSession
from opkernel.distributed.cluster.task_name import TaskName
from opkernel.distributed.cluster.workers import Workers
from opkernel.distributed.coordination.coordination_service_agent import CoordinationServiceAgent
from opkernel.distributed.coordination.task_agent import TaskAgent
from opkernel.errors import InvalidArgumentError, NotFoundError
from opkernel.runtime.session.target import TargetOptions


class RemoteDevice(LocalDevice):
    """A device of a task, as those see it who place operations on it from another process."""

    def __init__(self, attributes: DeviceAttributes) -> None:
        super().__init__(attributes.device_type, np)
        self.name = attributes.name
        self.incarnation = attributes.incarnation


class Cluster(Workers):
    """Tasks that run graphs: the target of sessions.

        with RayCluster({"ps": 1, "worker": 2}) as cluster:
            with opkernel.Session(graph, target=cluster) as session:
                ...

    Operations that name no task, and nothing else that places them, run on the master.

    Args:
        spec: the jobs and their tasks.
        master: the name of the master, such as `/job:worker/task:0`. Where empty, the first task of the job
            `chief`, `master` or `worker`, or of the first job if there is none of them.

    Attributes:
        spec: The jobs and their tasks.
        master: The task of operations that name none.

    Raises:
        InvalidArgumentError: there is no task, or none of the master's name.
    """

    def __init__(self, spec: ClusterSpec | Jobs, master: str = "") -> None:
        self.spec = ClusterSpec(spec)
        self.master = _master(self.spec, master)
        self._devices: dict[TaskName, list[DeviceAttributes]] = {}

    @property
    def tasks(self) -> list[TaskName]:
        """The tasks: job by job, by rising index."""
        return self.spec.tasks

    @abstractmethod
    def close(self) -> None:
        """End all tasks. What runs on them fails."""

    # The target of sessions.

    def new_session(self, options: TargetOptions) -> MasterSession:
        """A session on all tasks, as `Session(graph, target=cluster)` needs it."""
        devices = [RemoteDevice(one) for one in self.list_devices()]
        devices.sort(key=lambda one: TaskName.parse(one.name) != self.master)
        return MasterSession(self, devices, options)

    def list_devices(self) -> list[DeviceAttributes]:
        """The devices of all tasks.

        Raises:
            UnavailableError: a task is not there.
        """
        missing = [task for task in self.spec.tasks if task not in self._devices]
        found = self.call_all("get_status", tasks=missing)
        self._devices.update(zip(missing, found, strict=True))
        return [one for task in self.spec.tasks for one in self._devices[task]]

    def reset(self, containers: Sequence[str] = ()) -> None:
        """Drop the resources of all tasks in some containers; in the default ones if none is named."""
        self.call_all("clear_containers", list(containers))

    def coordination_agent(self, task: TaskName | str) -> CoordinationServiceAgent:
        """The agent of a task, as it may be called from here: all but its callbacks.

        Its methods raise FailedPreconditionError where the cluster was made without `coordination`, and
        UnavailableError where the task is not there.

        Raises:
            NotFoundError: there is no such task.
        """
        found = self.task(task) if isinstance(task, str) else task
        return cast("CoordinationServiceAgent", TaskAgent(partial(self.call, found)))

    def task(self, name: str) -> TaskName:
        """The task of a name, whole or in part: `/job:worker/task:1`.

        Raises:
            NotFoundError: there is no such task.
        """
        task = TaskName.parse(name)
        if task not in self.spec.tasks:
            raise NotFoundError(f"No task {task} in {self.spec!r}")
        return task

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<opkernel.distributed.{type(self).__name__} of {self.spec!r}>"


def _master(spec: ClusterSpec, name: str) -> TaskName:
    tasks = spec.tasks
    if not tasks:
        raise InvalidArgumentError("A cluster must have a task")
    if name:
        master = TaskName.parse(name)
        if master not in tasks:
            raise InvalidArgumentError(f"The master {name!r} is no task of {spec!r}")
        return master
    for job in ("chief", "master", "worker"):
        found = [task for task in tasks if task.job == job]
        if found:
            return found[0]
    return tasks[0]
