"""Worker: what a task does for the sessions of a cluster.

A session registers its graphs once. Then each step brings feeds and takes fetches; the parts of a step in
several tasks meet in the rendezvous that each task has for the step.

Source: TensorFlow core/distributed_runtime/worker.cc, session_mgr.cc, graph_mgr.cc.
"""

from __future__ import annotations

import os
import secrets
import threading
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any, NamedTuple

from opkernel.device.local_device import DeviceAttributes, DeviceMgr, new_devices
from opkernel.device.permissions import Permissions, adopt_marks
from opkernel.distributed.cluster.cluster_spec import TaskName
from opkernel.distributed.cluster.registered_graph import (
    Outbox,
    RegisteredGraph,
    RemoteRendezvous,
    SentTensor,
)
from opkernel.distributed.collectives.cluster_collective_executor import (
    ClusterCollectiveExecutor,
    StepCollectiveExecutor,
)
from opkernel.distributed.collectives.exchange import TaskLinks, remember
from opkernel.distributed.coordination.coordination_service_agent import (
    Coordination,
    CoordinationServiceAgent,
)
from opkernel.errors import (
    AbortedError,
    CancelledError,
    DeadlineExceededError,
    FailedPreconditionError,
    OpError,
)
from opkernel.kernel import CancellationManager
from opkernel.opdef import UnregisteredOpError
from opkernel.proto import GraphDef, StepStats
from opkernel.records import replace
from opkernel.runtime import OpSegment, SessionConfig
from opkernel.runtime.placement.placer import DeviceSet
from opkernel.runtime.program.builder import StepProgram, build_program
from opkernel.runtime.program.kernels import SessionSegment
from opkernel.runtime.program.request import ProgramRequest
from opkernel.runtime.session.session_config import Recording, StepOptions
from opkernel.runtime.session.session_runtime import SessionRuntime, TargetOptions

_GRACE_S = 20.0
"""How long the end of cancelled steps is waited for: of a kernel under way, say."""


class RunGraphRequest(NamedTuple):
    """A task's part of a step.

    Attributes:
        session: The name of the session.
        graph: The name of the registered graph.
        step: The key of the step, the same in all tasks.
        feeds: The arrays that are fed here.
        timeout_s: The time that the step has, in seconds; None for no limit.
        is_traced: Whether the statistics of its nodes are wanted.
        permissions: Which files the step may read and write; those of the session if None.
    """

    session: str
    graph: str
    step: str
    feeds: Sequence[Any]
    timeout_s: float | None = None
    is_traced: bool = False
    permissions: Permissions | None = None


class RunGraphResponse(NamedTuple):
    """What came of it.

    Attributes:
        fetches: The arrays that are fetched here.
        incarnation: The number of this start of the task.
        step_stats: A serialized StepStats, where it was wanted.
    """

    fetches: Sequence[Any]
    incarnation: int
    step_stats: bytes = b""


class Worker:
    """The sessions, graphs and steps of one task; used from any thread.

    Args:
        task: The task.
        config: How many devices it has, and how many threads each.
        links: How it reaches the workers of other tasks.
        coordination: The coordination service, where the cluster has one; the task connects to it at once.
    """

    def __init__(
        self,
        task: TaskName,
        config: SessionConfig,
        links: TaskLinks,
        coordination: Coordination | None = None,
    ) -> None:
        self.task = task
        threads = config.intra_op_parallelism_threads
        devices = new_devices(config.device_count, name_prefix=str(task), intra_op_threads=threads)
        self.devices = DeviceMgr(devices)
        self.incarnation = secrets.randbits(63)
        to_executors = TaskLinks(
            links.leader,
            lambda peer, method, *args: links.tell(peer, "collective", method, *args),
            lambda peer, method, *args: links.call(peer, "collective", method, *args),
            links.store,
        )
        self.collectives = ClusterCollectiveExecutor(task, self.incarnation, to_executors)
        self._agent: CoordinationServiceAgent | None = None
        if coordination is not None:
            self._agent = CoordinationServiceAgent(task, self.incarnation, coordination)
            with suppress(OpError):  # which the agent keeps
                self._agent.connect()
        self._op_segment = OpSegment()
        self._outbox = Outbox(lambda receiver, sent: links.tell(receiver, "receive", sent))
        self._sessions: dict[str, SessionRuntime] = {}
        self._graphs: dict[tuple[str, str], RegisteredGraph] = {}
        self._steps: dict[str, _TaskStep] = {}
        self._ended: OrderedDict[str, OpError | None] = OrderedDict()
        self._lock = threading.Lock()
        self._step_ended = threading.Condition(self._lock)

    def get_status(self) -> list[DeviceAttributes]:
        """The devices of the task."""
        return [DeviceAttributes(d.name, d.device_type, 0, d.incarnation) for d in self.devices.all]

    def get_incarnation(self) -> int:
        """The number of this start of the task."""
        return self.incarnation

    def process_id(self) -> int:
        """The number of the task's process."""
        return os.getpid()

    # Sessions and graphs.

    def create_session(self, handle: str, options: TargetOptions) -> None:
        """Have a session of this name."""
        config = replace(options.config, allow_soft_placement=False)
        target = _TaskTarget(self, SessionSegment(self._op_segment, handle))
        session = SessionRuntime(replace(options, config=config), target)
        with self._lock:
            self._sessions[handle] = session

    def close_session(self, handle: str) -> None:
        """Cancel the steps of a session, wait for their end, and free its graphs; nothing to do where there is none.

        Raises:
            DeadlineExceededError: a step takes no notice of its cancellation.
        """
        self._end_session(handle)
        with self._lock:  # what is restored afterwards, no step of before changes any more
            if not self._step_ended.wait_for(lambda: not self._runs(handle), _GRACE_S):
                raise DeadlineExceededError(f"A step in {self.task} does not end")

    def _end_session(self, handle: str) -> None:
        with self._lock:
            session = self._sessions.pop(handle, None)
            for key in [key for key in self._graphs if key[0] == handle]:
                del self._graphs[key]
        if session is not None:
            session.close()

    def _runs(self, session: str) -> bool:
        """Whether a step of a session is under way."""
        return any(s.is_running and key.startswith(f"{session}:") for key, s in self._steps.items())

    def register_graph(
        self, session: str, graph: str, graph_def: bytes, marks: Mapping[bytes, Permissions | None]
    ) -> None:
        """Make a part of a graph ready for steps.

        Args:
            session: The name of the session.
            graph: The name of the graph.
            graph_def: The part.
            marks: What the marks of its nodes mean (`device.origins`).

        Raises:
            AbortedError: there is no such session (any more).
            InvalidArgumentError, NotFoundError: as `RegisteredGraph` says.
        """
        found = self._sessions.get(session)
        if found is None:
            raise self._has_restarted(f"session {session}")
        adopt_marks(marks)
        try:
            found.check_open()
            registered = RegisteredGraph(GraphDef.FromString(graph_def), found)
        except UnregisteredOpError as error:
            error.message += " (libraries=[...] of a cluster has its tasks import modules with ops)"
            raise
        with self._lock:
            self._graphs[session, graph] = registered

    def deregister_graph(self, session: str, graph: str) -> None:
        """Forget a graph, if it is there."""
        with self._lock:
            self._graphs.pop((session, graph), None)

    def clear_containers(self, containers: Sequence[str]) -> None:
        """Drop the resources in some containers; in the default ones if none is named."""
        self.devices.clear_containers(containers)

    # Steps.

    def run_graph(self, request: RunGraphRequest) -> RunGraphResponse:
        """Run this task's part of a step.

        Raises:
            AbortedError: the graph is not registered (any more).
            CancelledError: the step was cancelled.
            OpError: whatever a kernel raised, with the node that failed.
        """
        graph = self._graphs.get((request.session, request.graph))
        if graph is None:
            self._end(request.step, None)
            raise self._has_restarted(f"graph {request.graph} of session {request.session}")
        step = self._begin(request.step)
        stats = StepStats() if request.is_traced else None
        services = {
            "rendezvous": step.rendezvous,
            "collective_executor": StepCollectiveExecutor(
                self.collectives, request.session, request.step
            ),
            "coordination_service_agent": self._agent,
        }
        if request.permissions is not None:
            services["permissions"] = request.permissions
        options = StepOptions(
            request.timeout_s, step.cancellation, recording=Recording(stats), services=services
        )
        try:
            fetches = graph.run(request.feeds, options)
            self._outbox.flush()
        finally:
            self._end(request.step, None)
        written = b"" if stats is None else stats.SerializeToString()
        return RunGraphResponse(fetches, self.incarnation, written)

    def receive(self, tensors: Sequence[SentTensor]) -> None:
        """Take tensors that another task has sent; those of steps that have ended are dropped."""
        for sent in tensors:
            step = self._find(sent.step)
            if step is not None:
                with suppress(OpError):  # it was aborted meanwhile: nobody waits
                    step.rendezvous.deliver(sent)

    def collective(self, method: str, *args: Any) -> Any:
        """Call a method of the task's collective executor."""
        return getattr(self.collectives, method)(*args)

    def coordinate(self, method: str, args: Sequence[Any], others: Mapping[str, Any]) -> Any:
        """Call a method of the task's agent of the coordination service."""
        if self._agent is None:
            raise FailedPreconditionError(
                "The cluster has no coordination service: give it coordination=CoordinationConfig()"
            )
        return getattr(self._agent, method)(*args, **others)

    def cancel_step(self, key: str, reason: OpError) -> None:
        """End a step with an error, whether it has begun here or not."""
        step = self._find(key)
        if step is None:
            return
        step.rendezvous.start_abort(reason)
        step.cancellation.start_cancel(reason)
        if not step.is_running:
            self._end(key, reason)

    def close(self) -> None:
        """Close all sessions, and the devices."""
        if self._agent is not None:
            self._agent.close()
        self.collectives.close()
        for handle in list(self._sessions):
            self._end_session(handle)
        self._outbox.close()
        self.devices.close()

    def _begin(self, key: str) -> _TaskStep:
        step = self._find(key)
        if step is None:
            raise self._ended.get(key) or CancelledError(f"Step {key} has ended in {self.task}")
        step.is_running = True
        return step

    def _find(self, key: str) -> _TaskStep | None:
        """A step, which its first tensor or its run makes; None where it has ended."""
        with self._lock:
            step = self._steps.get(key)
            if step is None and key not in self._ended:
                step = self._steps[key] = _TaskStep(RemoteRendezvous(self.task, key, self._outbox))
            return step

    def _end(self, key: str, reason: OpError | None) -> None:
        with self._lock:
            step = self._steps.pop(key, None)
            remember(self._ended, key, reason)
            self._step_ended.notify_all()
        if step is not None:
            step.cancellation.close()

    def _has_restarted(self, what: str) -> AbortedError:
        return AbortedError(
            f"{self.task} does not know {what}: the task has restarted, or the session was closed"
        )


class _TaskStep:
    """A step in this task.

    Attributes:
        rendezvous: Where its parts meet.
        cancellation: Cancels it here.
        is_running: Whether this task's part has begun.
    """

    def __init__(self, rendezvous: RemoteRendezvous) -> None:
        self.rendezvous = rendezvous
        self.cancellation = CancellationManager()
        self.is_running = False


class _TaskTarget:
    """The target of a task's sessions: the devices are the task's, and outlive the sessions."""

    is_remote = False

    def __init__(self, worker: Worker, op_segment: SessionSegment) -> None:
        self._worker = worker
        self.devices = DeviceSet(worker.devices.all)
        self.op_segment = op_segment

    def new_session(self, options: TargetOptions) -> _TaskTarget:
        """The target itself: it is for one session."""
        return self

    def build_program(self, request: ProgramRequest) -> StepProgram:
        """Build a program."""
        return build_program(request)

    def clear_containers(self, containers: Sequence[str]) -> None:
        """Drop the resources of the task."""
        self._worker.clear_containers(containers)

    def close(self) -> None:
        """Give up the kernels of the session; variables and other resources stay."""
        self.op_segment.close()
