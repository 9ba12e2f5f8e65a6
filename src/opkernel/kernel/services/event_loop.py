"""The event loop that coroutine kernels run on: one thread of the process, started when needed."""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable, Coroutine
from typing import TYPE_CHECKING, Any

from opkernel.errors import CancelledError

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
