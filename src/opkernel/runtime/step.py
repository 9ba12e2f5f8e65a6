"""One execution of a graph: its number, its deadline, its cancellation, what its kernels share."""

import copy
import itertools
import threading
import time
from typing import Any

from opkernel.errors import CancelledError, DeadlineExceededError, OpError
from opkernel.kernel import (
    CancellationManager,
    CollectiveExecutor,
    Deadline,
    DeferredOps,
    LocalCollectiveExecutor,
    LocalRendezvous,
    Rendezvous,
    ResourceMgr,
    ScopedStepContainer,
    Step,
)

__all__ = ["RunStep"]

_step_ids = itertools.count(1)
_lock = threading.Lock()


class _Services:
    """What kernels of a step may call on; made when the first of them does."""

    def __init__(
        self,
        step_id: int,
        deadline: float | None,
        resources: ResourceMgr | None,
        parent: CancellationManager | None,
    ) -> None:
        self.cancellation_manager = CancellationManager(parent)
        self.deferred_ops = DeferredOps()
        self.rendezvous = LocalRendezvous()
        self.step_container = ScopedStepContainer(
            step_id, (lambda name: None) if resources is None else resources.cleanup
        )
        self._timer = None
        if deadline is not None:
            seconds = max(deadline - time.monotonic(), 0)
            self._timer = Deadline(self.cancellation_manager, seconds)

    def end(self) -> None:
        """Free the step's resources and end whatever still waits."""
        if self._timer is not None:
            self._timer.cancel()
        self.rendezvous.start_abort(CancelledError("The step has ended"))
        self.step_container.clean_up()
        self.cancellation_manager.close()


class RunStep(Step):
    """The state of one step.

    A step stops at the next `check` after `cancel` was called or its time ran out. Loops check at
    every iteration, kernels that wait are told; straight graphs are not interrupted.

    Args:
        timeout_s: The time that the step has, in seconds; None for no limit.
        resource_manager: The resources that steps share; None for those of the device.
        session_handle: The name of the session.
        collective_executor: Where groups meet; all of the process meet in one if None.
        function_library: Gives the functions of the graph that the step runs.
        cancellation: What cancels the step, too: that of the session.
    """

    collective_executor: CollectiveExecutor = LocalCollectiveExecutor()

    __slots__ = (
        "_cancelled",
        "_parent",
        "_services",
        "deadline",
        "function_library",
        "log_memory",
        "resource_manager",
        "session_handle",
        "start_time_usecs",
        "step_id",
        "track_allocations",
    )

    def __init__(
        self,
        timeout_s: float | None = None,
        resource_manager: ResourceMgr | None = None,
        session_handle: str = "",
        collective_executor: CollectiveExecutor | None = None,
        function_library: Any = None,
        cancellation: CancellationManager | None = None,
    ) -> None:
        self.step_id = next(_step_ids)
        self.start_time_usecs = time.time_ns() // 1000
        self.deadline = None if timeout_s is None else time.monotonic() + timeout_s
        self.resource_manager = resource_manager
        self.session_handle = session_handle
        self.function_library = function_library
        if collective_executor is not None:
            self.collective_executor = collective_executor
        self.track_allocations = self.log_memory = False  # slots: each context reads them
        self._parent = cancellation
        self._cancelled: OpError | None = None
        self._services: _Services | None = None

    @property
    def cancellation_manager(self) -> CancellationManager:  # type: ignore[override]  # made on demand
        """Tells kernels that wait that the step was cancelled or ran out of time."""
        return self._get_services().cancellation_manager

    @property
    def deferred_ops(self) -> DeferredOps:  # type: ignore[override]  # made on demand
        """Counts the work of deferred kernels, which the step waits for at its end."""
        return self._get_services().deferred_ops

    @property
    def rendezvous(self) -> Rendezvous:  # type: ignore[override]  # made on demand
        """Where `_Send` and `_Recv` meet."""
        return self._get_services().rendezvous

    @property
    def step_container(self) -> ScopedStepContainer:  # type: ignore[override]  # made on demand
        """Resources of this step alone."""
        return self._get_services().step_container

    def cancel(self) -> None:
        """Stop the step at its next check, and end its waits; may be called from any thread."""
        with _lock:
            self._cancelled = CancelledError("Step was cancelled")
            services = self._services
        if services is not None:
            services.cancellation_manager.start_cancel(self._cancelled)

    def check(self) -> None:
        """Raise where the step is to stop: what it was cancelled with, or that it is late."""
        if self._cancelled is not None:
            raise self._cancelled
        if self._services is not None:
            reason = self._services.cancellation_manager.status
            if reason is not None:
                raise copy.copy(reason)
        if self.deadline is not None and time.monotonic() > self.deadline:
            raise DeadlineExceededError("Timed out: the step ran longer than its timeout")

    def end(self) -> None:
        """Wait for deferred work, then free what the step's kernels left behind.

        Raises:
            DeadlineExceededError: deferred work was not done in time.
        """
        if self._services is None:
            return
        deadline = self.deadline
        timeout_s = None if deadline is None else max(deadline - time.monotonic(), 0)
        try:
            self._services.deferred_ops.wait(timeout_s)
        finally:
            self._services.end()

    def _get_services(self) -> _Services:
        with _lock:
            services = self._services
            if services is not None:
                return services
            services = _Services(self.step_id, self.deadline, self.resource_manager, self._parent)
            self._services = services
        if self._cancelled is not None:
            services.cancellation_manager.start_cancel(self._cancelled)
        return services
