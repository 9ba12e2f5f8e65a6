"""SessionRuntime: a session without its graph.

Source: DirectSession in TensorFlow core/common_runtime/direct_session.cc, WorkerSession in
core/distributed_runtime/worker_session.h.
"""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING

from opkernel.errors import CancelledError
from opkernel.graph import Graph
from opkernel.kernel import CancellationManager, forget_recycled
from opkernel.runtime.session.executables import ExecutableParams, Executables
from opkernel.runtime.session.step_runner import SessionSteps, StepRunner
from opkernel.runtime.session.target import (
    SessionTarget,
    TargetOptions,
    TargetSession,
    ThisProcess,
    new_session,
)
from opkernel.runtime.step.run_step import SessionServices
from opkernel.runtime.step.session_state import LocalSessionState

if TYPE_CHECKING:
    from opkernel.kernel import CollectiveExecutor

_numbers = itertools.count(1)


class SessionRuntime:
    """Where the programs of a session run, what its steps share, and what it keeps between them.

    Args:
        options: The options of the session.
        target: Where it runs; in this process if None.
        collective_executor: Where the groups of collective ops meet.

    Attributes:
        steps: What all steps share.
        state: The tensors that the session keeps.
        target: Where programs run.
        params: What executables are made with.

    Raises:
        InvalidArgumentError, NotFoundError: the options make no sense.
        UnavailableError: the target cannot be reached.
    """

    def __init__(
        self,
        options: TargetOptions,
        target: SessionTarget | None = None,
        collective_executor: CollectiveExecutor | None = None,
    ) -> None:
        config = options.config
        self.steps = SessionSteps(config)
        self.state = LocalSessionState()
        self.target: TargetSession = (
            ThisProcess(config) if target is None else new_session(target, options)
        )
        self.params = ExecutableParams.of(options, self.target, self.state, self.steps.pool(0))
        self._cancellation = CancellationManager()
        self.steps.services = SessionServices(
            handle=f"session_{next(_numbers)}",
            metadata=config.session_metadata,
            state=self.state,
            cleanup=self.target.devices.mgr.cleanup,
            collective_executor=collective_executor,
            cancellation_manager=self._cancellation,
            log_memory=config.log_memory,
            run_all_kernels_inline=config.inter_op_parallelism_threads < 0,
            executor_type=self.params.executor_type,
            permissions=options.permissions,
        )

    def runner(self, graph: Graph) -> StepRunner:
        """Runs the steps of a graph."""
        return StepRunner(self.steps, Executables(graph, self.params))

    def cancel(self) -> None:
        """Cancel the steps under way, and refuse others."""
        self.steps.is_closed = True
        self._cancellation.start_cancel(CancelledError("Session has been closed."))

    def close(self) -> None:
        """Cancel the steps under way, and free what the session holds."""
        self.cancel()
        if self.steps.pools is not None:
            self.steps.pools.close()
        self.state.clear()
        self.target.close()
        forget_recycled()
