"""ClusterSpec: the jobs of a cluster, and the tasks of each, by their names.

Source: TensorFlow python/training/server_lib.py (ClusterSpec), TFConfigClusterResolver,
core/util/device_name_utils.cc.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from opkernel.errors import InvalidArgumentError, NotFoundError
from opkernel.escaping import json_value
from opkernel.messages import short_repr
from opkernel.opdef import DeviceName
from opkernel.proto import ClusterDef
from opkernel.records import dataclass


@dataclass(frozen=True)
class TaskName:
    """A task of a job; as text `/job:worker/replica:0/task:1`.

    Attributes:
        job: The name of the job.
        index: The index of the task in it.
    """

    job: str
    index: int

    @classmethod
    def parse(cls, text: str) -> TaskName:
        """The task of the name of a task or a device.

        Raises:
            InvalidArgumentError: the text names no task.
        """
        name = DeviceName.parse_full_name(text)
        if name.job is None or name.task is None:
            raise InvalidArgumentError(f"{text!r} does not name a task: /job:worker/task:1")
        return cls(name.job, name.task)

    def __str__(self) -> str:
        return f"/job:{self.job}/replica:0/task:{self.index}"


Jobs = Mapping[str, "int | Sequence[str] | Mapping[int, str]"]
"""The tasks of each job: how many; or their addresses, in order or by index."""

_MOST_TASKS = 1_000_000
"""In a job; a wrong number is refused before so many names are made."""


class ClusterSpec:
    """The jobs of a cluster, and the tasks of each.

        ClusterSpec({"ps": 1, "worker": 2})
        ClusterSpec({"worker": ["worker0.example.com:2222", "worker1.example.com:2222"]})

    Addresses are kept for those who ask. Ray itself decides where a task runs and how it is reached.

    Args:
        jobs: the tasks of each job; or a ClusterSpec, or TensorFlow's message ClusterDef.

    Raises:
        InvalidArgumentError: a job has no valid name, or more than 1,000,000 tasks, or an index is negative.
        TypeError: the tasks of a job are given by something else.
    """

    def __init__(self, jobs: Jobs | ClusterSpec | ClusterDef) -> None:
        self._jobs: dict[str, dict[int, str]]
        if isinstance(jobs, ClusterSpec):
            self._jobs = {job: dict(tasks) for job, tasks in jobs._jobs.items()}
            return
        if not isinstance(jobs, Mapping):
            jobs = _jobs_of_proto(jobs)
        self._jobs = {_checked_job(job): _tasks(job, tasks) for job, tasks in jobs.items()}

    @classmethod
    def from_tf_config(cls, text: str | None = None) -> ClusterSpec:
        """The cluster of a TF_CONFIG, the JSON text in the environment variable of that name.

        Raises:
            NotFoundError: no text is given, and there is no such variable.
            InvalidArgumentError: the text is no TF_CONFIG, or has no cluster.
        """
        if text is None:
            text = os.environ.get("TF_CONFIG")
            if text is None:
                raise NotFoundError("The environment variable TF_CONFIG is not set")
        return cls(_cluster_of(text, "TF_CONFIG"))

    @classmethod
    def from_file(cls, path: str | os.PathLike[str]) -> ClusterSpec:
        """The cluster of a JSON file: a TF_CONFIG, or the tasks of each job alone.

        Raises:
            NotFoundError: there is no such file.
            InvalidArgumentError: its text is no cluster.
        """
        try:
            text = Path(path).read_text(encoding="utf-8")
        except FileNotFoundError:
            raise NotFoundError(f"There is no file {os.fspath(path)}") from None
        except (OSError, UnicodeDecodeError) as error:
            raise InvalidArgumentError(f"{os.fspath(path)} cannot be read: {error}") from error
        return cls(_cluster_of(text, os.fspath(path)))

    @property
    def jobs(self) -> list[str]:
        """The names of the jobs, in the order in which they were given."""
        return list(self._jobs)

    @property
    def tasks(self) -> list[TaskName]:
        """All tasks: job by job, by rising index."""
        return [TaskName(job, index) for job in self._jobs for index in self.task_indices(job)]

    def num_tasks(self, job: str) -> int:
        """How many tasks a job has; raises NotFoundError where there is no such job."""
        return len(self._of_job(job))

    def task_indices(self, job: str) -> list[int]:
        """The indices of a job's tasks, rising; raises NotFoundError where there is no such job."""
        return sorted(self._of_job(job))

    def task_address(self, job: str, index: int) -> str:
        """The address of a task, empty where none was given.

        Raises:
            NotFoundError: there is no such task.
        """
        tasks = self._of_job(job)
        if index not in tasks:
            raise NotFoundError(f"No task with index {index} in job {job!r}")
        return tasks[index]

    def job_tasks(self, job: str) -> list[str | None]:
        """The addresses of a job by index, None for an index without a task."""
        tasks = self._of_job(job)
        return [tasks.get(index) for index in range(max(tasks, default=-1) + 1)]

    def as_dict(self) -> dict[str, list[str] | dict[int, str]]:
        """The addresses of each job: a list, or a dict by index where some are missing."""
        return {
            job: [tasks[i] for i in range(len(tasks))] if _is_dense(tasks) else dict(tasks)
            for job, tasks in self._jobs.items()
        }

    def as_cluster_def(self) -> ClusterDef:
        """TensorFlow's message."""
        message = ClusterDef()
        for job, tasks in self._jobs.items():
            message.job.add(name=job, tasks=tasks)
        return message

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ClusterSpec) and self._jobs == other._jobs

    def __hash__(self) -> int:
        return hash(tuple(self.tasks))

    def __bool__(self) -> bool:
        return bool(self._jobs)

    def __repr__(self) -> str:
        counts = {job: len(tasks) for job, tasks in self._jobs.items()}
        return f"ClusterSpec({counts})"

    def _of_job(self, job: str) -> dict[int, str]:
        if job not in self._jobs:
            raise NotFoundError(f"No such job in cluster: {job!r}; there are: {self.jobs}")
        return self._jobs[job]


def _cluster_of(text: str, source: str) -> dict[str, Any]:
    """The jobs in the text of a TF_CONFIG, or in that of a cluster alone."""
    try:
        config = json_value(text)
    except ValueError as error:
        raise InvalidArgumentError(f"{source} is not JSON: {error}") from None
    cluster = config.get("cluster", config) if isinstance(config, dict) else None
    if not isinstance(cluster, dict) or ("cluster" not in config and "task" in config):
        raise InvalidArgumentError(
            f'{source} must be an object {{"cluster": {{job: [address, ...]}}}}, not {short_repr(config)}'
        )
    return {job: _from_json(tasks) for job, tasks in cluster.items()}


def _from_json(tasks: Any) -> Any:
    """The tasks of a job, whose indices are texts in JSON."""
    if not isinstance(tasks, dict):
        return tasks
    return {int(index) if index.isdecimal() else index: a for index, a in tasks.items()}


def _jobs_of_proto(message: Any) -> Jobs:
    if not hasattr(message, "SerializeToString"):
        raise TypeError(
            f"jobs must be a mapping from names to tasks, not a {type(message).__name__}"
        )
    cluster = ClusterDef.FromString(message.SerializeToString())
    return {job.name: dict(job.tasks) for job in cluster.job}


def _checked_job(job: Any) -> str:
    try:
        parsed = DeviceName.parse_full_name(f"/job:{job}")
    except InvalidArgumentError:
        parsed = DeviceName()
    if parsed.job != job:
        raise InvalidArgumentError(
            f"{short_repr(job)} cannot be the name of a job: it must be a letter, followed by letters, digits "
            "and underscores"
        )
    return str(job)


def _tasks(job: str, tasks: Any) -> dict[int, str]:
    """The addresses of a job by index."""
    if isinstance(tasks, int) and not isinstance(tasks, bool):
        if not 0 <= tasks <= _MOST_TASKS:
            raise InvalidArgumentError(
                f"Job {job!r} cannot have {tasks} tasks: it may have from 0 to {_MOST_TASKS}"
            )
        return dict.fromkeys(range(tasks), "")
    if isinstance(tasks, Mapping):
        found = dict(tasks)
    elif isinstance(tasks, Sequence) and not isinstance(tasks, str | bytes):
        found = dict(enumerate(tasks))
    else:
        raise TypeError(
            f"The tasks of job {job!r} must be a number, a list or a dict of addresses, not "
            f"{short_repr(tasks)}"
        )
    for index, address in found.items():
        if not isinstance(index, int) or not isinstance(address, str):
            raise TypeError(
                f"Job {job!r} must have addresses by index, not {short_repr(address)} by {short_repr(index)}"
            )
        if not 0 <= index < _MOST_TASKS:
            raise InvalidArgumentError(
                f"Job {job!r} has a task with the index {index}: indices go from 0 to {_MOST_TASKS - 1}"
            )
    return found


def _is_dense(tasks: Mapping[int, str]) -> bool:
    return sorted(tasks) == list(range(len(tasks)))
