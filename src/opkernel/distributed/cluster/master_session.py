"""MasterSession: a session whose programs run on the tasks of a cluster, each task its part.

Source: TensorFlow core/distributed_runtime/master_session.cc, graph_partition.cc.
"""

from __future__ import annotations

import functools
import itertools
import threading
import time
import uuid
import weakref
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import Future
from queue import Empty, SimpleQueue
from typing import TYPE_CHECKING, Any

from opkernel.device.local_device import LocalDevice
from opkernel.device.permissions import Permissions, marks_in
from opkernel.distributed.cluster.cluster_spec import TaskName
from opkernel.distributed.cluster.worker import RunGraphRequest, RunGraphResponse
from opkernel.errors import CancelledError, OpError, UnavailableError, as_op_error
from opkernel.graph import Operation
from opkernel.graph.core.garbage_collection import paused_garbage_collection
from opkernel.proto import GraphDef, StepStats
from opkernel.records import dataclass
from opkernel.runtime.placement.partition_graphs import partition_graph
from opkernel.runtime.placement.partitioning import Partitioning
from opkernel.runtime.placement.placer import Assignment, DeviceSet
from opkernel.runtime.program.builder import StepProgram, prepare
from opkernel.runtime.program.request import Partition, ProgramRequest, Subgraph
from opkernel.runtime.program.run_step import RunStep
from opkernel.runtime.session.session_runtime import TargetOptions

if TYPE_CHECKING:
    from opkernel.distributed.cluster.cluster import Cluster
    from opkernel.runtime.program.kernels import SessionSegment


@dataclass(frozen=True)
class TaskPart:
    """The part of a program that a task runs.

    Attributes:
        task: The task.
        graph_def: Its graph; each node says on which of the task's devices it runs.
        partition: Its operations, with the feeds and fetches that are its own.
    """

    task: TaskName
    graph_def: GraphDef
    partition: Partition


def task_parts(
    whole: Subgraph, assignment: Assignment, placed: Mapping[str, LocalDevice]
) -> list[TaskPart]:
    """Cut a program by task; each task cuts its part further, by its devices and their memory.

    A feed comes to each task that takes it. A fetch is given by the task that computes it.

    Args:
        whole: The operations that the program needs; its graph stays as it is.
        assignment: The device of each operation.
        placed: The devices of operations that may not be among those: of feeds that are also fetched.
    """
    if whole.graph is None:
        return []
    first_of: dict[TaskName, LocalDevice] = {}

    @functools.cache
    def task_device(device: LocalDevice) -> LocalDevice:
        return first_of.setdefault(TaskName.parse(device.name), device)

    home = task_device(assignment.client_device)
    elsewhere = {op: task_device(device) for op, device in assignment.elsewhere.items()}
    by_task = Assignment(home, {op: d for op, d in elsewhere.items() if d is not home})
    feeds_at = _feeds_at(whole, by_task, {n: task_device(d) for n, d in placed.items()})
    devices = {op.name: assignment.device_of(op) for op in whole.operations}
    parts = []
    for one in Partitioning(whole, by_task, feeds_at).partitions():
        if one.part.operations or one.feed_indices or one.fetch_indices:
            # The cut may put control flow into another task than that where it was placed.
            own = {
                op.name: devices[op.name].name
                for op in one.part.operations
                if op.name in devices and task_device(devices[op.name]) is one.device
            }
            graph_def = partition_graph(one, whole, own)
            parts.append(TaskPart(TaskName.parse(one.device.name), graph_def, one))
    return parts


def _feeds_at(
    whole: Subgraph, assignment: Assignment, placed: Mapping[str, LocalDevice]
) -> Sequence[LocalDevice]:
    """The device of the first operation that takes each feed; else that of the feed itself."""
    takers: dict[tuple[Operation, int], Operation] = {}
    for op in whole.operations:
        for tensor in op.inputs:
            takers.setdefault((tensor.op, tensor.value_index), op)
    found = []
    for feed in whole.feeds:
        taker = takers.get((feed.op, feed.value_index))
        own = placed.get(feed.op.name, assignment.client_device)
        found.append(own if taker is None else assignment.device_of(taker))
    return found


_CHECK_S = 1.0
"""How often it is looked whether tasks that are done still live, while others are not done."""
_GRACE_S = 2.0
"""How long tasks are waited for that were told that the step has failed."""


class ClusterStep:
    """One step.

    Args:
        cluster: The tasks.
        session: The name of the session in the tasks.
        graph: The name of the registered graph in the tasks.
        step: The step as the client has it: its deadline, its cancellation, its statistics.
        permissions: Which files it may read and write; those of the session if None.
    """

    def __init__(
        self,
        cluster: Cluster,
        session: str,
        graph: str,
        step: RunStep,
        permissions: Permissions | None = None,
    ) -> None:
        self._cluster = cluster
        self._session = session
        self._graph = graph
        self._step = step
        self._permissions = permissions
        self._key = f"{session}:{step.step_id}"
        self._futures: dict[TaskName, Future[RunGraphResponse]] = {}
        self._events: SimpleQueue[TaskName | None] = SimpleQueue()

    def start(self, task: TaskName, feeds: Sequence[Any]) -> None:
        """Have a task run its part."""
        deadline = self._step.deadline
        timeout_s = None if deadline is None else max(deadline - time.monotonic(), 0)
        is_traced = self._step.stats_collector is not None
        request = RunGraphRequest(
            self._session, self._graph, self._key, feeds, timeout_s, is_traced, self._permissions
        )
        future = self._cluster.call(task, "run_graph", request)
        self._futures[task] = future
        future.add_done_callback(lambda _: self._events.put(task))

    def wait(self) -> list[Sequence[Any]]:
        """The fetches of each task, in the order in which they were started.

        Raises:
            OpError: as the first task that failed raised it, or UnavailableError where a task is not there.
            CancelledError, DeadlineExceededError: the step was to stop.
        """
        manager = self._step.cancellation_manager
        token = manager.get_cancellation_token()
        if not manager.register_callback(token, self._wake):
            self._wake()
        try:
            self._wait()
        except Exception as error:
            self._stop(as_op_error(error))
            raise
        except BaseException:
            self._stop(CancelledError("The client was interrupted"))
            raise
        finally:
            manager.try_deregister_callback(token)
        responses = [future.result() for future in self._futures.values()]
        for response in responses:
            self._collect(response)
        return [response.fetches for response in responses]

    def _wake(self) -> None:
        self._events.put(None)

    def _wait(self) -> None:
        """Wait for all parts; raises for the first that fails, or if the step is to stop."""
        for _ in self._futures:
            task = self._next()
            if task is None:
                self._step.check()
                raise CancelledError("Step was cancelled")
            error = self._futures[task].exception()
            if isinstance(error, CancelledError):
                self._step.check()  # which knows whether that is why
            if error is not None:
                if isinstance(error, OpError):
                    add_task(error, task)
                raise error

    def _next(self) -> TaskName | None:
        """The next task whose part is done, or None; meanwhile it is looked after those that are done already.

        What a task has sent at the end of its part is lost where it dies then: nobody but the client would know.
        """
        while True:
            try:
                return self._events.get(timeout=_CHECK_S)
            except Empty:
                self._check_done()

    def _check_done(self) -> None:
        """Raise UnavailableError where a task whose part is done has died since."""
        done = [task for task, future in self._futures.items() if future.done()]
        asked = {task: self._cluster.call(task, "get_incarnation") for task in done}
        for task, answer in asked.items():
            if answer.result() != self._futures[task].result().incarnation:
                raise UnavailableError(f"{task} has restarted, and what it has sent may be lost")

    def _stop(self, reason: OpError) -> None:
        """Tell the tasks that still run that the step has failed, and wait for them a little."""
        running = [task for task, future in self._futures.items() if not future.done()]
        for task in running:
            self._cluster.call(task, "cancel_step", self._key, reason)
        until = time.monotonic() + _GRACE_S
        while not all(self._futures[task].done() for task in running):
            try:
                self._events.get(timeout=max(until - time.monotonic(), 0))
            except Empty:
                return  # a task that takes no notice is left to itself

    def _collect(self, response: RunGraphResponse) -> None:
        collector = self._step.stats_collector
        if collector is not None and response.step_stats:
            for device in StepStats.FromString(response.step_stats).dev_stats:
                for stats in device.node_stats:
                    collector.save(device.device, stats)
                for thread, name in device.thread_names.items():
                    collector.save_thread_name(device.device, thread, name)


def add_task(error: OpError, task: TaskName) -> None:
    """Say in an error which task it is from, as TensorFlow does."""
    error.message = f"From {task}:\n{error.message}"
    error.args = (error.message,)


class MasterSession:
    """A session on a cluster, as the client has it.

    Tasks that run nothing of it know nothing of it.

    Args:
        cluster: The tasks.
        devices: Their devices, the master's first.
        options: How the session is set up in each task.

    Attributes:
        cluster: The tasks.
        handle: The name of the session in the tasks.
        devices: Where its nodes may run.
        generation: How often it was renewed.
    """

    is_remote = True
    op_segment: SessionSegment | None = None

    def __init__(
        self, cluster: Cluster, devices: Sequence[LocalDevice], options: TargetOptions
    ) -> None:
        self.cluster = cluster
        self.handle = uuid.uuid4().hex
        self.devices = DeviceSet(devices, allow_soft_placement=options.config.allow_soft_placement)
        self.generation = 0
        self._options = options
        self._created: set[TaskName] = set()
        self._graph_numbers = itertools.count(1)
        self._lock = threading.Lock()

    def __repr__(self) -> str:
        return repr(self.cluster)

    def build_program(self, request: ProgramRequest) -> StepProgram:
        """Cut a program into parts, and register each with its task."""
        with paused_garbage_collection():
            whole, assignment = prepare(request)
            parts = task_parts(whole, assignment, request.placed)
        executor = ClusterExecutor(self, parts, len(whole.fetches))
        executor.register()
        return StepProgram(request, whole, [part.partition for part in parts], (), (), executor)

    def register(self, parts: Iterable[TaskPart]) -> str:
        """Register the parts of a program; the name that they have in all tasks.

        Raises:
            UnavailableError: a task is not there.
            InvalidArgumentError, NotFoundError: a task cannot run its part.
        """
        self.cluster.make_late_calls()
        graph, parts = str(next(self._graph_numbers)), list(parts)
        with self._lock:
            new = [part.task for part in parts if part.task not in self._created]
            self.cluster.call_all("create_session", self.handle, self._options, tasks=new)
            self._created.update(new)
        futures = [
            self.cluster.call(
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
            try:
                future.result()
            except OpError as error:
                add_task(error, part.task)
                raise
        return graph

    def new_step(self, graph: str, step: RunStep) -> ClusterStep:
        """A step of registered parts, which has begun nowhere yet."""
        self.cluster.make_late_calls()
        is_usual = step.permissions is self._options.permissions
        permissions = None if is_usual else step.permissions
        return ClusterStep(self.cluster, self.handle, graph, step, permissions)

    def renew(self, timeout_s: float) -> None:
        """Wait until all tasks are there, and have programs registered anew before their next step.

        Raises:
            UnavailableError: a task is still not there after that time, in seconds.
        """
        self.cluster.wait_for_tasks(timeout_s)
        with self._lock:
            self.cluster.call_all("close_session", self.handle, tasks=self._created)
            self._created.clear()
            self.generation += 1

    def clear_containers(self, containers: Sequence[str]) -> None:
        """Drop resources of all tasks."""
        self.cluster.call_all("clear_containers", list(containers))

    def close(self) -> None:
        """Close the session in all tasks that know it; one that is not there has closed it."""
        with self._lock:
            created, self._created = self._created, set()
        for task in created:
            self.cluster.call(task, "close_session", self.handle)


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
                    for part in self._parts:
                        call = (part.task, "deregister_graph", session.handle, self._graph)
                        weakref.finalize(self, session.cluster.call_late, *call)
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
