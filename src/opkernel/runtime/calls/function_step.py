"""FunctionStep: the step of a function that is run with options, or with other functions around it.

It is a view of the caller's step. Attributes that neither options nor caller replace are those of
the caller's step. They are made, as there, when a kernel first asks for them.
"""

from __future__ import annotations

import copy
import threading
import time
from collections.abc import Callable
from contextvars import copy_context
from functools import partial
from typing import Any, Protocol, TypeVar

from opkernel.device.local_device import LocalDevice
from opkernel.errors import CancelledError, DeadlineExceededError, InternalError, OpError
from opkernel.kernel import CallFrame, FunctionDone, FunctionRunOptions, LocalRendezvous, Step
from opkernel.runtime.program.error_report import raise_reported, report
from opkernel.runtime.program.limits import Limits
from opkernel.runtime.step.run_step import RunStep, SessionServices

_Result = TypeVar("_Result")

_OPTIONS = (
    "step_id",
    "rendezvous",
    "cancellation_manager",
    "collective_executor",
    "step_container",
    "stats_collector",
    "runner",
    "run_all_kernels_inline",
)


class FunctionStep(Step):
    """The step of a called function.

    Args:
        caller: The step of the caller.
        options: The options that replace the caller's.
        call_frame: The arguments and results of the function, where they are not fed and fetched.
        **others: Further values that replace the caller's, by the names of Step's attributes.
    """

    def __init__(
        self,
        caller: Step,
        options: FunctionRunOptions,
        call_frame: CallFrame | None = None,
        **others: Any,
    ) -> None:
        self._caller = caller
        self._cancellation_manager = options.cancellation_manager
        given = {name: getattr(options, name) for name in _OPTIONS} | {"call_frame": call_frame}
        self._own = {name: value for name, value in given.items() if value is not None} | others
        deadlines = [d for d in (caller.deadline, options.deadline) if d is not None]
        self._own["deadline"] = min(deadlines, default=None)
        self._own_rendezvous = LocalRendezvous() if options.create_rendezvous else None
        if self._own_rendezvous is not None:
            self._own["rendezvous"] = self._own_rendezvous

    def check(self) -> None:
        """Raise where the function is to stop: it, or its caller, was cancelled or is late."""
        self._caller.check()
        manager = self._cancellation_manager
        if manager is not None and (manager.is_cancelled or manager.is_cancelling):
            raise copy.copy(manager.status) or CancelledError("The function was cancelled")
        if self.deadline is not None and time.monotonic() > self.deadline:
            raise DeadlineExceededError("Timed out: the function ran longer than it may")

    def end(self) -> None:
        """End the services that the call had for itself."""
        if self._own_rendezvous is not None:
            self._own_rendezvous.start_abort(CancelledError("The function has ended"))


class FunctionRuntimeServices(Protocol):
    """The services that a step of a function gets from its function library runtime."""

    @property
    def device(self) -> LocalDevice:
        """Where its functions run."""

    @property
    def services(self) -> dict[str, Any]:
        """The services that are not the caller's, by the names of Step's attributes."""


def run_in_step(
    run: Callable[[Step], _Result],
    options: FunctionRunOptions,
    runtime: FunctionRuntimeServices,
    frame: CallFrame | None = None,
) -> _Result:
    """The result of `run` in the step that the options describe.

    Raises:
        CancelledError, DeadlineExceededError: the step is over before it began.
        OpError: the error of `run`, with the node that failed.
    """
    own_step = view = None
    limits = Limits(intra_op_threads=runtime.device.intra_op_threads)
    step = options.step
    if step is None:
        step = own_step = _new_step(runtime)
    if frame is not None or options != FunctionRunOptions(step=options.step):
        step = view = FunctionStep(step, options, frame, **runtime.services)
    try:
        step.check()
        return limits.applied(run)(step)
    except Exception as error:
        raise_reported(error)
    finally:
        for own in (view, own_step):
            if own is not None:
                own.end()


def call_async(
    run: Callable[[], list[Any]],
    runner: Callable[[Callable[[], None]], None] | None,
    done: FunctionDone,
) -> None:
    """Call `run` on a thread that a runner chooses, or a new one; `done` is told how it ended."""

    def work() -> None:
        status, results = None, []
        try:
            results = run()
        except BaseException as error:  # whatever it is, somebody waits for `done`
            status = _as_status(error)
        done(status, results)

    (runner or _on_new_thread)(partial(copy_context().run, work))


def _as_status(error: BaseException) -> OpError:
    """Whatever a function raised as an OpError."""
    if isinstance(error, Exception):
        return report(error)
    return InternalError(f"{type(error).__name__}: {error}")


def _on_new_thread(work: Callable[[], None]) -> None:
    threading.Thread(target=work, name="opkernel function", daemon=True).start()


def _new_step(runtime: FunctionRuntimeServices) -> RunStep:
    resources = runtime.device.resource_manager
    return RunStep(session=SessionServices(cleanup=resources.cleanup, function_library=runtime))


def _own_or_callers(name: str) -> property:
    def get(step: FunctionStep) -> Any:
        return step._own[name] if name in step._own else getattr(step._caller, name)

    return property(get)


for _name in Step.__annotations__:
    setattr(FunctionStep, _name, _own_or_callers(_name))
