"""Resources that kernels wait for: queues, staging areas, accumulators, locks.

Nobody blocks a thread. A kernel makes an attempt: a generator that runs under the lock of the resource.
The generator yields where it has to wait, and is resumed when something has changed. It returns or raises
its outcome, which the kernel gets outside of the lock.

Kernels that wait for a resource.

Source: TensorFlow QueueBase::Attempt in TensorFlow core/kernels/queue_base.{h,cc}.
"""

import threading
from collections import deque
from collections.abc import Callable, Generator, Iterator
from contextlib import suppress
from functools import partial
from typing import Any, ClassVar, Generic, TypeVar

from opkernel.errors import CancelledError, OpError, as_op_error
from opkernel.interrupts import contextmanager
from opkernel.kernel import AsyncOpKernel, CancellationToken, OpKernelContext, ResourceBase
from opkernel.ops.resource_op_kernel import resource_of_handle

Deliver = Callable[[Any], None]
"""Takes the outcome of an attempt, to set the outputs of the kernel."""

Done = Callable[[], None]
"""Says that a kernel is done."""

Steps = Generator[None, None, Any]
"""The steps of an attempt, under the lock of its resource; each `yield` waits for a change."""


def _no_outputs(outcome: Any) -> None:
    """Takes the outcome of attempts whose kernels have no outputs."""


class Attempt:
    """The attempt of one kernel that waits.

    Args:
        ctx: The computation.
        done: The function to call when it is over.
        steps: The steps to do.
        deliver: Takes the outcome, to set the outputs.
        name: The name of the cancelled operation in the message of a cancellation.

    Attributes:
        is_over: Whether there is an outcome; guarded by the lock of the resource.
    """

    __slots__ = ("_ctx", "_deliver", "_done", "_name", "_outcome", "_steps", "_token", "is_over")

    def __init__(
        self, ctx: OpKernelContext, done: Done, steps: Steps, deliver: Deliver, *, name: str
    ) -> None:
        self._ctx = ctx
        self._done = done
        self._steps = steps
        self._deliver = deliver
        self._name = name
        self._token: CancellationToken | None = None
        self._outcome: Any = None
        self.is_over = False

    def resume(self) -> bool:
        """Go on to the next wait, under the lock; True if there was none."""
        try:
            next(self._steps)
        except StopIteration as stop:
            self._outcome = stop.value
        except Exception as error:  # whatever goes wrong belongs to the kernel that waits
            self._outcome = as_op_error(error)
        else:
            return False
        self.is_over = True
        return True

    def cancel(self) -> None:
        """Give up, under the lock; the steps may undo their work."""
        self._steps.close()
        self._outcome = CancelledError(f"{self._name} was cancelled")
        self.is_over = True

    def register(self, callback: Callable[[], None]) -> bool:
        """Have the callback called when the step is cancelled; False if it is already."""
        manager = self._ctx.cancellation_manager
        if manager is None:
            return True
        self._token = manager.get_cancellation_token()
        return manager.register_callback(self._token, callback)

    def finish(self) -> None:
        """Hand over the outcome; called once, outside of the lock."""
        if self._token is not None and self._ctx.cancellation_manager is not None:
            self._ctx.cancellation_manager.try_deregister_callback(self._token)
        if isinstance(self._outcome, OpError):
            self._ctx.set_status(self._outcome)
        else:
            try:
                self._deliver(self._outcome)
            except Exception as error:  # such as an output of another type
                self._ctx.set_status(as_op_error(error))
        self._done()


class Line:
    """Attempts that wait for the same, guarded by the lock of their resource.

    Args:
        in_order: Each waits until those before it are over; otherwise each that can goes on.
    """

    def __init__(self, *, in_order: bool = True) -> None:
        self._in_order = in_order
        self._attempts: deque[Attempt] = deque()

    def join(self, attempt: Attempt) -> None:
        """Put an attempt at the end."""
        self._attempts.append(attempt)

    def cancel(self, attempt: Attempt) -> Attempt:
        """Take an attempt out, if it is there, and cancel it."""
        with suppress(ValueError):
            self._attempts.remove(attempt)
        attempt.cancel()
        return attempt

    def cancel_all(self) -> list[Attempt]:
        """Cancel all attempts, which have left the line then."""
        cancelled = list(self._attempts)
        self._attempts.clear()
        for attempt in cancelled:
            attempt.cancel()
        return cancelled

    def __len__(self) -> int:
        return len(self._attempts)

    def resume(self) -> list[Attempt]:
        """Resume those whose turn it is; those that are over then have left the line."""
        over = []
        if self._in_order:
            while self._attempts and self._attempts[0].resume():
                over.append(self._attempts.popleft())
            return over
        for attempt in list(self._attempts):
            if attempt.resume():
                self._attempts.remove(attempt)
                over.append(attempt)
        return over


class WaitingResource(ResourceBase):
    """State that kernels wait for; used from any thread.

    Subclasses change it in the steps of attempts, which call `_changed` when they have, or in the
    block `_changing`.
    """

    def __init__(self, *lines: Line) -> None:
        self._lines = lines
        self._lock = threading.Lock()
        self._changes = 0

    def start(
        self,
        line: Line,
        ctx: OpKernelContext,
        done: Done,
        steps: Steps,
        deliver: Deliver = _no_outputs,
        *,
        name: str,
    ) -> None:
        """Begin an attempt (the arguments are its), which waits in a line where it cannot be completed at once."""
        attempt = Attempt(ctx, done, steps, deliver, name=name)
        over: list[Attempt] = []
        cancel = partial(self._cancel, line, attempt)
        try:
            with self._lock:
                line.join(attempt)
                over += self._resume_all()
                if not attempt.is_over and not attempt.register(cancel):
                    over += [line.cancel(attempt), *self._resume_all()]
        except BaseException:  # an interrupt: nobody waits for this attempt any more
            cancel()
            raise
        finally:
            finish_all(over)

    @contextmanager
    def _changing(self) -> Iterator[list[Attempt]]:
        """A block under the lock, after which attempts go on that can; it may add attempts that are over."""
        over: list[Attempt] = []
        try:
            with self._lock:
                try:
                    yield over
                finally:
                    over += self._resume_all()
        finally:
            finish_all(over)

    def _changed(self) -> None:
        """Note that waiting attempts may be able to go on; under the lock."""
        self._changes += 1

    def _after_change(self) -> list[Attempt]:
        """As `_changed` and `_resume_all`."""
        if not any(self._lines):
            return []
        self._changed()
        return self._resume_all()

    def _resume_all(self) -> list[Attempt]:
        """Resume attempts until none changes anything; under the lock.

        Returns:
            Those that are over, to be finished outside of the lock.
        """
        over: list[Attempt] = []
        seen = -1
        while seen != self._changes:
            seen = self._changes
            for line in self._lines:
                over += line.resume()
        return over

    def _cancel(self, line: Line, attempt: Attempt) -> None:
        with self._changing() as over:
            if not attempt.is_over:
                over.append(line.cancel(attempt))


def finish_all(attempts: list[Attempt]) -> None:
    """Hand over the outcomes of attempts that are over, outside of the lock."""
    for attempt in attempts:
        attempt.finish()


R = TypeVar("R", bound=ResourceBase)


class WaitingKernel(AsyncOpKernel, Generic[R]):
    """A kernel that finds a resource and starts an attempt on it; it computes nothing itself.

    Attributes:
        resource_type: The class that the resource is found by.
    """

    resource_type: ClassVar[type[ResourceBase]] = ResourceBase

    @property
    def is_expensive(self) -> bool:
        """It is not worth a thread."""
        return False

    def find(self, ctx: OpKernelContext) -> R:
        """The resource, with one more reference: that of the handle at input 0."""
        found: R = resource_of_handle(ctx, self.resource_type)  # type: ignore[assignment]  # R is it
        return found

    def access(self, resource: R, ctx: OpKernelContext, done: Done) -> None:
        """Start an attempt that calls `done` in the end, or raise an OpError."""
        raise NotImplementedError(f"{type(self).__name__} does not override access")

    def compute_async(self, ctx: OpKernelContext, done: Done) -> None:
        """Find the resource and start; give the resource up at the end."""
        resource = self.find(ctx)

        def finish() -> None:
            resource.unref()
            done()

        try:
            self.access(resource, ctx, finish)
        except BaseException:
            resource.unref()
            raise
