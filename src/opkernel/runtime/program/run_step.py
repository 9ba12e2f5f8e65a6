"""One execution of a graph: its number, its deadline, its cancellation, what its kernels share."""

from __future__ import annotations

import copy
import functools
import itertools
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from opkernel import kernel  # most steps have no services, which are loaded with them
from opkernel.device.permissions import NO_PERMISSIONS, Permissions
from opkernel.errors import CancelledError, DeadlineExceededError, OpError
from opkernel.interrupts import contextmanager
from opkernel.kernel import CancellationManager, Step
from opkernel.kernel.node_properties import delegated_to
from opkernel.records import dataclass
from opkernel.runtime.program.call_frame import FunctionCallFrame
from opkernel.runtime.program.session_state import LocalTensorStore

if TYPE_CHECKING:
    from opkernel.kernel import (
        CollectiveExecutor,
        DeferredOps,
        LocalCollectiveExecutor,
        Rendezvous,
        ScopedStepContainer,
        SessionState,
    )
    from opkernel.runtime.program.inter_op_pool import InterOpPool


_step_ids = itertools.count(1)
_lock = threading.Lock()
_GRACE_S = 1.0


@functools.cache
def _collective_executor_of_process() -> LocalCollectiveExecutor:
    return kernel.LocalCollectiveExecutor()


def _nothing_to_clean(name: str) -> None:
    """The clean-up of a step without resources: none."""


@dataclass(slots=True)
class SessionServices:
    """The services that the steps of a session share.

    Attributes:
        handle: The name of the session.
        metadata: What its owner says of it.
        state: The tensors that outlive steps.
        cleanup: Drops the resources of a container.
        collective_executor: Where groups meet; all of the process meet in one if None.
        function_library: Gives the functions of the graph.
        cancellation_manager: Its cancellation cancels all steps.
        log_memory: Whether what kernels allocate is logged.
        run_all_kernels_inline: Whether all kernels run on the thread that runs the step.
        executor_type: The registered name of the executor; empty for the default one.
        permissions: Which files the nodes of the graph may read and write that have no permissions of their own.
        program_permissions: Those of the program's own nodes; the same ones if None.
        slice_reader_cache: Keeps readers of checkpoints open between steps; made when first asked for.
        rendezvous: Where a step meets its parts in other tasks; each step has one of its own if None.
        coordination_service_agent: The task's agent of the coordination service, where it has one.
    """

    handle: str = ""
    metadata: Any = None
    state: SessionState | None = None
    cleanup: Callable[[str], None] = _nothing_to_clean
    collective_executor: CollectiveExecutor | None = None
    function_library: Any = None
    cancellation_manager: CancellationManager | None = None
    log_memory: bool = False
    run_all_kernels_inline: bool = False
    executor_type: str = ""
    permissions: Permissions = NO_PERMISSIONS
    program_permissions: Permissions | None = None
    slice_reader_cache: Any = None
    rendezvous: Rendezvous | None = None
    coordination_service_agent: Any = None


_NO_SESSION = SessionServices()


class StepServices:
    """The services for kernels of a step; made when the first kernel asks."""

    def __init__(self, step_id: int, deadline: float | None, session: SessionServices) -> None:
        self.cancellation_manager = CancellationManager(session.cancellation_manager)
        self.deferred_ops = kernel.DeferredOps()
        self.rendezvous = session.rendezvous or kernel.LocalRendezvous()
        self.tensor_store = LocalTensorStore()
        self.step_container = kernel.ScopedStepContainer(step_id, session.cleanup)
        self._timer = None
        if deadline is not None:
            seconds = max(deadline - time.monotonic(), 0)
            self._timer = kernel.Deadline(self.cancellation_manager, seconds)

    def end(self) -> None:
        """Free the step's resources and end whatever still waits."""
        if self._timer is not None:
            self._timer.cancel()
        self.rendezvous.start_abort(CancelledError("The step has ended"))
        self.step_container.clean_up()
        self.cancellation_manager.close()


class RunStep(Step):
    """The state of one step.

    A step stops at the next `check` after a call of `cancel`, or after its time has run out. Loops check
    at every iteration. Nodes check if the step has a deadline or may be cancelled. Kernels that wait get
    notice.

    Args:
        timeout_s: The time that the step has, in seconds; None for no limit.
        session: The services that it shares with the other steps of its session.
        inter_op_pool: The threads that compute its expensive kernels; the calling thread if None.
        function_library: Gives the functions of the graph that the step runs; the session's if None.
        stats_collector: Takes the statistics of nodes, where given; contexts then record what
            their kernels allocate.
    """

    call_frame = FunctionCallFrame((), ())  # a graph is no function: it has no arguments

    __slots__ = (
        "_cancelled",
        "_function_library",
        "_services",
        "_session",
        "deadline",
        "inter_op_pool",
        "log_memory",
        "start_time_usecs",
        "stats_collector",
        "step_id",
        "track_allocations",
    )

    def __init__(
        self,
        timeout_s: float | None = None,
        session: SessionServices = _NO_SESSION,
        inter_op_pool: InterOpPool | None = None,
        function_library: Any = None,
        stats_collector: Any = None,
    ) -> None:
        self.step_id = next(_step_ids)
        self.start_time_usecs = time.time_ns() // 1000
        self.deadline = None if timeout_s is None else time.monotonic() + timeout_s
        self.inter_op_pool = inter_op_pool
        self.stats_collector = stats_collector
        self.track_allocations = stats_collector is not None  # slots: each context reads them
        self.log_memory = session.log_memory
        self._session = session
        self._function_library = function_library
        self._cancelled: OpError | None = None
        self._services: StepServices | None = None

    # What the steps of a session share.

    session_handle = delegated_to("_session.handle")
    session_metadata = delegated_to("_session.metadata")
    session_state = delegated_to("_session.state")
    permissions = delegated_to("_session.permissions")
    coordination_service_agent = delegated_to("_session.coordination_service_agent")
    run_all_kernels_inline = delegated_to("_session.run_all_kernels_inline")
    executor_type = delegated_to("_session.executor_type")

    @property
    def program_permissions(self) -> Permissions:  # type: ignore[override]  # read-only
        """Which files the program's own nodes may read and write."""
        own = self._session.program_permissions
        return self._session.permissions if own is None else own

    @property
    def slice_reader_cache(self) -> Any:
        """Keeps readers of checkpoints open between steps."""
        session = self._session
        if session.slice_reader_cache is None and session is not _NO_SESSION:
            # Loaded by steps that read checkpoints.
            from opkernel.checkpoint.reader_cache import CheckpointReaderCache

            session.slice_reader_cache = CheckpointReaderCache()
        return session.slice_reader_cache

    @property
    def collective_executor(self) -> CollectiveExecutor:  # type: ignore[override]  # read-only
        """Where groups of collective ops meet."""
        return self._session.collective_executor or _collective_executor_of_process()

    @property
    def function_library(self) -> Any:
        """Gives the functions of the graph that the step runs."""
        return self._function_library or self._session.function_library

    # Services that are made when a kernel first asks for them.

    cancellation_manager: CancellationManager = delegated_to("services.cancellation_manager")
    deferred_ops: DeferredOps = delegated_to("services.deferred_ops")
    rendezvous: Rendezvous = delegated_to("services.rendezvous")
    tensor_store: LocalTensorStore = delegated_to("services.tensor_store")
    step_container: ScopedStepContainer = delegated_to("services.step_container")

    def runner(self, work: Callable[[], None]) -> None:
        """Run a closure on a thread of the step's pool, or at once if it has no pool."""
        if self.inter_op_pool is None:
            work()
        else:
            self.inter_op_pool.schedule(work)

    def detached(self) -> RunStep:
        """A step of the same session that has no deadline."""
        return type(self)(session=self._session, function_library=self._function_library)

    def cancel(self) -> None:
        """Stop the step at its next check, and end its waits; may be called from any thread."""
        with _lock:
            self._cancelled = CancelledError("Step was cancelled")
            services = self._services
        if services is not None:
            services.cancellation_manager.start_cancel(self._cancelled)

    @contextmanager
    def cancelled_by(self, manager: CancellationManager | None) -> Iterator[None]:
        """Within the block, the cancellation of another manager cancels the step, too.

        Raises:
            CancelledError: it is cancelled already.
        """
        if manager is None:
            yield
            return
        token = manager.get_cancellation_token()
        try:
            if not manager.register_callback(token, self.cancel):
                raise CancelledError("Operation was cancelled")
            yield
        finally:
            try:
                manager.try_deregister_callback(token)
            finally:  # also where an interrupt has prevented the first call
                manager.deregister_callback(token)

    def check(self) -> None:
        """Raise where the step must stop: the error that it was cancelled with, or DeadlineExceededError."""
        if self._cancelled is not None:
            raise self._cancelled
        manager = (self._services or self._session).cancellation_manager
        reason = None if manager is None else manager.status
        if reason is not None:
            raise copy.copy(reason)
        if self.deadline is not None and time.monotonic() > self.deadline:
            raise DeadlineExceededError("Timed out: the step ran longer than its timeout")

    def save_tensors(self, names: Sequence[str]) -> None:
        """Have the session keep the tensors that these nodes noted in the `tensor_store`."""
        if self._services is not None and self._session.state is not None:
            self._services.tensor_store.save_tensors(names, self._session.state)

    def end(self) -> None:
        """Wait for deferred work, then free what the step's kernels left behind.

        Where the step was cancelled, work that takes no notice of that is left to itself.

        Raises:
            DeadlineExceededError: deferred work was not done in time.
        """
        if self._services is None:
            return
        try:
            self._services.deferred_ops.wait(self._seconds_left())
        except DeadlineExceededError:
            if self._cancelled is None:
                raise
        finally:
            self._services.end()

    def _seconds_left(self) -> float | None:
        """How long to wait for deferred work; None for as long as it takes."""
        if self._cancelled is not None:
            return _GRACE_S
        return None if self.deadline is None else max(self.deadline - time.monotonic(), 0)

    @property
    def services(self) -> StepServices:
        """The services for its kernels, made when they are first asked for."""
        with _lock:
            services = self._services
            if services is not None:
                return services
            services = StepServices(self.step_id, self.deadline, self._session)
            self._services = services
        if self._cancelled is not None:
            services.cancellation_manager.start_cancel(self._cancelled)
        return services
