"""Kernels whose work ends after their call has returned: by a callback, or as a coroutine.

Coroutines run on an event loop: one thread of the process, which is started when it is needed.

Source: AsyncOpKernel in TensorFlow core/framework/op_kernel.h.
"""

from __future__ import annotations

import functools
import inspect
import threading
import time
from collections.abc import Callable, Coroutine
from typing import TYPE_CHECKING, Any, ClassVar

from opkernel.errors import (
    CancelledError,
    DeadlineExceededError,
    InternalError,
    OpError,
    as_op_error,
)
from opkernel.kernel.context.construction import OpKernelConstruction
from opkernel.kernel.context.declared_outputs import flat_outputs
from opkernel.kernel.context.op_kernel_context import OpKernelContext
from opkernel.kernel.op_kernel import OpKernel
from opkernel.logs import logger

if TYPE_CHECKING:
    import asyncio

    from opkernel.kernel.services.cancellation import CancellationManager


_tasks: set[asyncio.Task[BaseException | None]] = set()  # the loop itself keeps none alive


def start_coroutine(
    coroutine: Coroutine[Any, Any, None],
    finish: Callable[[BaseException | None], None],
    manager: CancellationManager | None = None,
) -> None:
    """Run a coroutine on the event loop; `finish` is called there with the error raised, or None.

    Cancelling `manager` cancels the coroutine at the place where it waits.
    """
    loop = _event_loop()

    def start() -> None:
        task = loop.create_task(_outcome(coroutine))
        _tasks.add(task)
        token = None
        if manager is not None:
            token = manager.get_cancellation_token()
            if not manager.register_callback(token, lambda: loop.call_soon_threadsafe(task.cancel)):
                task.cancel()

        def end(ended: asyncio.Task[BaseException | None]) -> None:
            _tasks.discard(ended)
            coroutine.close()  # it may have been cancelled before it began
            if manager is not None and token is not None:
                manager.try_deregister_callback(token)
            finish(_cancelled() if ended.cancelled() else ended.result())

        task.add_done_callback(end)

    loop.call_soon_threadsafe(start)


async def _outcome(coroutine: Coroutine[Any, Any, None]) -> BaseException | None:
    """The exception of a coroutine, or None. One coroutine must not end the loop of all kernels."""
    import asyncio  # slow to import, and few programs have such kernels

    try:
        await coroutine
    except asyncio.CancelledError:
        return _cancelled()
    except BaseException as error:
        return error
    return None


def _cancelled() -> CancelledError:
    return CancelledError("The coroutine was cancelled")


@functools.cache
def _event_loop() -> asyncio.AbstractEventLoop:
    import asyncio

    loop = asyncio.new_event_loop()
    threading.Thread(target=loop.run_forever, name="opkernel event loop", daemon=True).start()
    return loop


class DoneCallback:
    """The callback that an asynchronous kernel calls exactly once, from any thread, when done.

    A second call raises InternalError. A callback that is dropped without having been called ends
    the computation with InternalError: no later call is possible.

    Attributes:
        is_called: Whether it has been called.
    """

    __slots__ = ("_callback", "_ctx", "_lock", "is_called")

    def __init__(self, ctx: OpKernelContext, callback: Callable[[], None]) -> None:
        self._ctx = ctx
        self._callback = callback
        self.is_called = False
        self._lock = threading.Lock()

    def __call__(self) -> None:
        """Say that the computation is over."""
        with self._lock:
            is_first, self.is_called = not self.is_called, True
        if not is_first:
            error = InternalError(f"{self._kernel} called done twice")
            logger("opkernel.kernel").error("%s", error.message)
            raise error
        self._callback()

    def __del__(self) -> None:
        if not self.is_called:
            self.is_called = True
            error = InternalError(f"{self._kernel} will never call done: it let go of the callback")
            logger("opkernel.kernel").error("%s", error.message)
            self._ctx.set_status(error)
            self._callback()

    @property
    def _kernel(self) -> str:
        kernel = self._ctx.kernel
        return f"{kernel.type_string} (node '{kernel.name}')"


class AsyncOpKernel(OpKernel):
    """A kernel that waits for something: it starts its work, returns, and calls `done` at the end.

    `compute_async` sets the outputs, or the status, before it calls `done`, and touches neither the
    context nor itself afterwards. Kernels that may wait for long register with the context's
    cancellation manager.
    """

    reports_by_callback: ClassVar[bool] = True

    def compute_async(self, ctx: OpKernelContext, done: Callable[[], None]) -> None:
        """Start the computation; `done` is to be called when it is over, by any thread."""
        raise NotImplementedError(f"{type(self).__name__} does not override compute_async")

    def as_async(self) -> AsyncOpKernel:
        """The kernel itself."""
        return self

    def attempt(self, ctx: OpKernelContext) -> bool:
        """Compute at once where nothing has to be waited for.

        Kernels that seldom wait override it. They raise their errors.

        Returns:
            Whether the outputs are set. Otherwise nothing has happened, and `start` is to be called.
        """
        return False

    @property
    def has_attempt(self) -> bool:
        """Whether `attempt` may stand for `start`: the class has one, and nothing watches `compute_async`."""
        has_own = type(self).attempt is not AsyncOpKernel.attempt
        return has_own and "compute_async" not in vars(self)

    def start(self, ctx: OpKernelContext, done: Callable[[], None]) -> None:
        """Start the computation, as executors do: an error of `compute_async` is its status.

        Raises:
            Exception: an error raised after the call of `done`, which is too late for a status.
        """
        callback = DoneCallback(ctx, done)
        try:
            self.compute_async(ctx, callback)
        except Exception as error:  # a user's kernel may raise anything
            if callback.is_called:
                raise
            ctx.set_status(_status_of(error))
            callback()

    def compute(self, ctx: OpKernelContext) -> None:
        """Start the computation and wait for its end.

        Raises:
            DeadlineExceededError: the step ran out of time.
        """
        if self.has_attempt and self.attempt(ctx):
            return
        is_over = threading.Event()
        self.start(ctx, is_over.set)
        deadline = ctx.deadline
        in_time = is_over.wait(None if deadline is None else max(deadline - time.monotonic(), 0))
        is_late = deadline is not None and time.monotonic() >= deadline
        if not in_time or (is_late and isinstance(ctx.status, CancelledError)):
            error = DeadlineExceededError(f"Timed out while {self.type_string} was waiting")
            if ctx.cancellation_manager is not None:
                ctx.cancellation_manager.start_cancel(error)
            raise error


class CoroutineKernel(AsyncOpKernel):
    """A kernel that is written as a coroutine; the error that it raises is its status.

    Cancelling the step, or the end of its time, cancels the coroutine.
    """

    reports_by_callback: ClassVar[bool] = False

    async def compute_coroutine(self, ctx: OpKernelContext) -> None:
        """Compute the outputs; runs on the event loop of the process."""
        raise NotImplementedError(f"{type(self).__name__} does not override compute_coroutine")

    def compute_async(self, ctx: OpKernelContext, done: Callable[[], None]) -> None:
        """Run the coroutine on the event loop, and call `done` when it has ended."""

        def finish(error: BaseException | None) -> None:
            if error is not None:
                ctx.set_status(_status_of(error))
            done()

        start_coroutine(self.compute_coroutine(ctx), finish, ctx.cancellation_manager)


class CoroutineFunctionKernel(CoroutineKernel):
    """A kernel made from an `async def` function."""

    def __init__(self, construction: OpKernelConstruction, function: Callable[..., Any]) -> None:
        super().__init__(construction)
        self.function = function

    async def compute_coroutine(self, ctx: OpKernelContext) -> None:
        """Await the function's result on the inputs and set it as the outputs."""
        ctx.outputs[:] = flat_outputs(self, await self.function(*ctx.inputs_by_arg()))


def _status_of(error: BaseException) -> OpError:
    """The error of a kernel as an OpError, with the exception itself as its cause."""
    if not isinstance(error, Exception):
        return InternalError(f"{type(error).__name__}: {error}")
    status = as_op_error(error)
    if status is not error:
        status.__cause__ = error
    return status


def as_coroutine_kernel(kernel: type[OpKernel]) -> type[OpKernel]:
    """The class, or one that runs its `async def compute` as a coroutine."""
    compute: Any = kernel.compute
    if issubclass(kernel, AsyncOpKernel) or not inspect.iscoroutinefunction(compute):
        return kernel
    namespace = {
        "compute_coroutine": compute,
        "compute": CoroutineKernel.compute,
        "__module__": kernel.__module__,
        "__qualname__": kernel.__qualname__,
        "__doc__": kernel.__doc__,
    }
    return type(kernel.__name__, (kernel, CoroutineKernel), namespace)
