"""MasterSession: a session whose programs run on the tasks of a cluster.

Source: TensorFlow core/distributed_runtime/master_session.cc.
"""

from __future__ import annotations

import itertools
import threading
import uuid
import weakref
from collections.abc import Iterable, Sequence
from concurrent.futures import Future
from typing import TYPE_CHECKING, Any

from opkernel.device.local_device import LocalDevice
from opkernel.device.origins import marks_in
from opkernel.distributed.cluster.cluster_step import ClusterStep, add_task
from opkernel.distributed.cluster.task_name import TaskName
from opkernel.distributed.cluster.task_parts import TaskPart, task_parts
from opkernel.errors import OpError
from opkernel.graph.core.garbage_collection import paused_garbage_collection
from opkernel.runtime.placement.device_set import DeviceSet
from opkernel.runtime.program.builder import Program, prepare
from opkernel.runtime.program.request import ProgramRequest
from opkernel.runtime.session.target import TargetOptions
from opkernel.runtime.step.run_step import RunStep

if TYPE_CHECKING:
    from opkernel.distributed.cluster.workers import Workers
    from opkernel.runtime.program.op_segment import SessionSegment


class MasterSession:
    """A session on a cluster, as the client has it.

    Tasks that run nothing of it know nothing of it.

    Args:
        workers: The tasks.
        devices: Their devices, the master's first.
        options: How the session is set up in each task.

    Attributes:
        workers: The tasks.
        handle: The name of the session in the tasks.
        devices: Where its nodes may run.
        generation: How often it was renewed.
    """

    is_remote = True
    op_segment: SessionSegment | None = None

    def __init__(
        self, workers: Workers, devices: Sequence[LocalDevice], options: TargetOptions
    ) -> None:
        self.workers = workers
        self.handle = uuid.uuid4().hex
        self.devices = DeviceSet(devices, allow_soft_placement=options.config.allow_soft_placement)
        self.generation = 0
        self._options = options
        self._created: set[TaskName] = set()
        self._graph_numbers = itertools.count(1)
        self._lock = threading.Lock()

    def __repr__(self) -> str:
        return repr(self.workers)

    def build_program(self, request: ProgramRequest) -> Program:
        """Cut a program into parts, and register each with its task."""
        with paused_garbage_collection():
            whole, assignment = prepare(request)
            parts = task_parts(whole, assignment, request.placed)
        executor = ClusterExecutor(self, parts, len(whole.fetches))
        executor.register()
        return Program(request, whole, [part.partition for part in parts], (), (), executor)

    def register(self, parts: Iterable[TaskPart]) -> str:
        """Register the parts of a program; the name that they have in all tasks.

        Raises:
            UnavailableError: a task is not there.
            InvalidArgumentError, NotFoundError: a task cannot run its part.
        """
        graph, parts = str(next(self._graph_numbers)), list(parts)
        with self._lock:
            new = [part.task for part in parts if part.task not in self._created]
            self.workers.call_all("create_session", self.handle, self._options, tasks=new)
            self._created.update(new)
        futures = [
            self.workers.call(
                part.task,
                "register_graph",
                self.handle,
                graph,
                part.graph_def.SerializeToString(),
                marks_in(part.graph_def),
            )
            for part in parts
        ]
        for part, future in zip(parts, futures, strict=True):
            _result(part.task, future)
        return graph

    def deregister(self, tasks: Iterable[TaskName], graph: str) -> None:
        """Have tasks forget a graph, some time."""
        for task in tasks:
            self.workers.call(task, "deregister_graph", self.handle, graph)

    def new_step(self, graph: str, step: RunStep) -> ClusterStep:
        """A step of registered parts, which has begun nowhere yet."""
        is_usual = step.permissions is self._options.permissions
        permissions = None if is_usual else step.permissions
        return ClusterStep(self.workers, self.handle, graph, step, permissions)

    def renew(self, timeout_s: float) -> None:
        """Wait until all tasks are there, and have programs registered anew before their next step.

        Raises:
            UnavailableError: a task is still not there after that time, in seconds.
        """
        self.workers.wait_for_tasks(timeout_s)
        with self._lock:
            self.workers.call_all("close_session", self.handle, tasks=self._created)
            self._created.clear()
            self.generation += 1

    def clear_containers(self, containers: Sequence[str]) -> None:
        """Drop resources of all tasks."""
        self.workers.call_all("clear_containers", list(containers))

    def close(self) -> None:
        """Close the session in all tasks that know it; one that is not there has closed it."""
        with self._lock:
            created, self._created = self._created, set()
        for task in created:
            self.workers.call(task, "close_session", self.handle)


class ClusterExecutor:
    """Runs a program whose parts are registered with tasks.

    Args:
        session: The session.
        parts: The parts.
        num_fetches: How many tensors the program fetches.
    """

    uses_step = True

    def __init__(self, session: MasterSession, parts: Sequence[TaskPart], num_fetches: int) -> None:
        self._session = session
        self._parts = parts
        self._num_fetches = num_fetches
        self._graph = ""
        self._generation = -1
        self._lock = threading.Lock()

    def register(self) -> str:
        """The name of the registered parts; they are registered where that was not done yet."""
        session = self._session
        if self._generation != session.generation:
            with self._lock:
                if self._generation != session.generation:
                    generation = session.generation
                    self._graph = session.register(self._parts)
                    self._generation = generation
                    tasks = [part.task for part in self._parts]
                    weakref.finalize(self, session.deregister, tasks, self._graph)
        return self._graph

    def run(self, step: RunStep, *feeds: Any) -> Sequence[Any]:
        """Run one step: the fetches.

        Raises:
            OpError: as the first task that failed raised it; the message says which task that is.
            UnavailableError: a task is not there.
        """
        graph = self.register()
        running = self._session.new_step(graph, step)
        fetches: list[Any] = [None] * self._num_fetches
        for part in self._parts:
            running.start(part.task, [feeds[index] for index in part.partition.feed_indices])
        for part, values in zip(self._parts, running.wait(), strict=True):
            for index, value in zip(part.partition.fetch_indices, values, strict=True):
                fetches[index] = value
        return fetches

    @property
    def source(self) -> str:
        """The nodes that each task runs."""
        return "\n".join([f"# {part.task}\n{_listed(part)}" for part in self._parts])


def _listed(part: TaskPart) -> str:
    return "\n".join(
        f"{node.name} = {node.op}({', '.join(node.input)})" for node in part.graph_def.node
    )


def _result(task: TaskName, future: Future[Any]) -> Any:
    try:
        return future.result()
    except OpError as error:
        add_task(error, task)
        raise
