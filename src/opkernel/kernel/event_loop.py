"""The event loop that coroutine kernels run on: one thread of the process, started when needed."""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable, Coroutine
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import asyncio

__all__ = ["start_coroutine"]


def start_coroutine(
    coroutine: Coroutine[Any, Any, None], finish: Callable[[BaseException | None], None]
) -> None:
    """Run a coroutine on the event loop; `finish` is called there with what it raised, or None."""
    import asyncio  # slow to import, and few programs have such kernels

    future = asyncio.run_coroutine_threadsafe(coroutine, _event_loop())
    future.add_done_callback(lambda done: finish(None if done.cancelled() else done.exception()))


@functools.cache
def _event_loop() -> asyncio.AbstractEventLoop:
    import asyncio

    loop = asyncio.new_event_loop()
    threading.Thread(target=loop.run_forever, name="opkernel event loop", daemon=True).start()
    return loop
