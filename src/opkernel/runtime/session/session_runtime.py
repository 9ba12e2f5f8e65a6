"""SessionRuntime: a session without its graph; and the target of a session, which says where its programs run.

Source: DirectSession in TensorFlow core/common_runtime/direct_session.cc, WorkerSession in
core/distributed_runtime/worker_session.h, the `target` of SessionOptions in core/public/session_options.h.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Protocol

from opkernel.device.budget import Budget, current_budget
from opkernel.errors import CancelledError, FailedPreconditionError
from opkernel.kernel import CancellationManager, choose_providers, forget_recycled
from opkernel.messages import short_repr
from opkernel.proto import Message
from opkernel.records import dataclass
from opkernel.runtime.placement.placer import DeviceSet
from opkernel.runtime.program.builder import StepProgram, build_program
from opkernel.runtime.program.executable import Limits
from opkernel.runtime.program.request import NO_JIT, ProgramRequest
from opkernel.runtime.program.run_step import SessionServices
from opkernel.runtime.program.session_state import LocalSessionState

if TYPE_CHECKING:
    from opkernel.device.permissions import Permissions
    from opkernel.kernel import CollectiveExecutor
    from opkernel.runtime.program.inter_op_pool import InterOpPool
    from opkernel.runtime.program.kernels import SessionSegment
    from opkernel.runtime.session.recording import Recorder
    from opkernel.runtime.session.session_config import AnyRunOptions, SessionConfig, StepOptions
    from opkernel.runtime.watch.sanitizer import Sanitizer


@dataclass(frozen=True)
class TargetOptions:
    """The options of a session, for those who run its programs.

    Attributes:
        config: Its config.
        permissions: Which files its graph may read and write.
        memory_limit_bytes: The most memory that a step may take in each process; None for no limit of its own.
        sanitize: Whether its kernels are watched.
    """

    config: SessionConfig
    permissions: Permissions
    memory_limit_bytes: int | None = None
    sanitize: bool = False


class TargetSession(Protocol):
    """A session, as its target sees it."""

    @property
    def devices(self) -> DeviceSet:
        """Where the session's nodes may run."""

    @property
    def is_remote(self) -> bool:
        """Whether other processes run the programs, each by a session of its own."""

    @property
    def op_segment(self) -> SessionSegment | None:
        """Keeps the kernels with state for all graphs of the session; None where it has one graph."""

    def build_program(self, request: ProgramRequest) -> StepProgram:
        """Build a program; raises as `opkernel.runtime.program.builder.build_program` does."""

    def clear_containers(self, containers: Sequence[str]) -> None:
        """Drop the resources in some containers; in the default ones if none is named."""

    def close(self) -> None:
        """Free what the session holds."""


class SessionTarget(Protocol):
    """What sessions may be aimed at."""

    def new_session(self, options: TargetOptions) -> TargetSession:
        """A new session.

        Raises:
            UnavailableError: the target cannot be reached.
        """


def new_session(target: SessionTarget, options: TargetOptions) -> TargetSession:
    """A session of a target.

    Raises:
        TypeError: it is no target.
        UnavailableError: it cannot be reached.
    """
    if not hasattr(target, "new_session"):
        raise TypeError(
            f"target must be a cluster, such as opkernel.distributed.RayCluster, not {short_repr(target)}"
        )
    return target.new_session(options)


class ThisProcess:
    """The target of sessions that run in their own process, with devices of their own.

    Args:
        config: How many devices there are to be.

    Raises:
        NotFoundError: there is to be no CPU.
    """

    is_remote = False
    op_segment: SessionSegment | None = None

    def __init__(self, config: SessionConfig) -> None:
        self.devices = DeviceSet.of_session(
            config.device_count,
            allow_soft_placement=config.allow_soft_placement,
            intra_op_threads=config.intra_op_parallelism_threads,
        )

    def build_program(self, request: ProgramRequest) -> StepProgram:
        """Build a program."""
        return build_program(request)

    def clear_containers(self, containers: Sequence[str]) -> None:
        """Drop the resources in some containers; in the default ones if none is named."""
        self.devices.mgr.clear_containers(containers)

    def close(self) -> None:
        """Close the devices."""
        self.devices.mgr.close()


_numbers = itertools.count(1)


class SessionRuntime:
    """Where the programs of a session run, what its steps share, and what it keeps between them.

    Where others run the programs, they have the limits, the watchers and the engines.

    Args:
        options: The options of the session.
        target: Where it runs; in this process if None.
        collective_executor: Where the groups of collective ops meet.

    Attributes:
        config: The config of the session.
        pools: The threads for expensive kernels, where there are any.
        timeout_s: The time that steps have by default, in seconds; None for no limit.
        is_closed: Whether the session runs no more steps.
        state: The tensors that the session keeps.
        target: Where programs run.
        limits: What the kernels may take.
        sanitizer: Checks the kernels, where given.
        providers: Who is asked for kernels; `default_providers` if None.
        jit: The engines that compile parts of programs.
        services: The services that all steps share.

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
        config = self.config = options.config
        self.pools = config.new_pools()
        self.timeout_s = config.operation_timeout_in_ms / 1000 or None
        self.is_closed = False
        self.state = LocalSessionState()
        self.target: TargetSession = (
            ThisProcess(config) if target is None else new_session(target, options)
        )
        is_here, devices, budget = not self.target.is_remote, self.target.devices, None
        if options.memory_limit_bytes is not None and is_here:
            budget = Budget(options.memory_limit_bytes, outer=current_budget())
        self.limits = Limits(budget, devices.client_device.intra_op_threads)
        self.sanitizer: Sanitizer | None = None
        if options.sanitize and is_here:
            from opkernel.runtime.watch.sanitizer import Sanitizer  # rarely needed

            self.sanitizer = Sanitizer()
        self.providers = None if config.providers is None else choose_providers(config.providers)
        self.jit = config.new_jit() if is_here else NO_JIT
        self._cancellation = CancellationManager()
        self.services = SessionServices(
            handle=f"session_{next(_numbers)}",
            metadata=config.session_metadata,
            state=self.state,
            cleanup=devices.mgr.cleanup,
            collective_executor=collective_executor,
            cancellation_manager=self._cancellation,
            log_memory=config.log_memory,
            run_all_kernels_inline=config.inter_op_parallelism_threads < 0,
            executor_type=config.executor_type,
            permissions=options.permissions,
        )

    @cached_property
    def defaults(self) -> StepOptions:
        """The options of steps that have none."""
        from opkernel.runtime.session.session_config import StepOptions  # most steps need none

        return StepOptions(self.timeout_s)

    def pool(self, index: int = 0) -> InterOpPool | None:
        """The pool for a step (`RunOptions.inter_op_thread_pool`); None: the caller's thread.

        Raises:
            InvalidArgumentError: there is no such pool.
        """
        if self.pools is None:
            if index == 0:
                return None
            from opkernel.runtime.program.inter_op_pool import InterOpPools  # few steps choose

            return InterOpPools.none().choose(index)
        return self.pools.choose(index)

    def options(
        self, options: AnyRunOptions | None, run_metadata: Message | None
    ) -> StepOptions | None:
        """The options of a step that the caller has given; None where there are none.

        Raises:
            InvalidArgumentError: the session does not allow what is asked for.
            TypeError: one of the arguments is something else.
        """
        if options is None and run_metadata is None:
            return None
        from opkernel.runtime.session.session_config import RunOptions, StepOptions  # as above

        chosen = RunOptions.of(options)
        timeout_ms = chosen.timeout_in_ms
        return StepOptions(
            timeout_ms / 1000 if timeout_ms > 0 else self.timeout_s,
            chosen.cancellation_manager,
            chosen.inter_op_thread_pool,
            self.recorder.begin(chosen, run_metadata),
            {"run_all_kernels_inline": True} if chosen.inter_op_thread_pool < 0 else {},
        )

    @cached_property
    def recorder(self) -> Recorder:
        """Records what the options of steps ask for."""
        from opkernel.runtime.session.recording import Recorder  # rarely needed

        return Recorder(self.config)

    def check_open(self) -> None:
        """Raise FailedPreconditionError where the session is closed."""
        if self.is_closed:
            raise FailedPreconditionError("Attempted to use a closed Session.")

    def cancel(self) -> None:
        """Cancel the steps under way, and refuse others."""
        self.is_closed = True
        self._cancellation.start_cancel(CancelledError("Session has been closed."))

    def close(self) -> None:
        """Cancel the steps under way, and free what the session holds."""
        self.cancel()
        if self.pools is not None:
            self.pools.close()
        self.state.clear()
        self.target.close()
        forget_recycled()
