"""Work that waits now and then, written as a generator; no thread is blocked meanwhile."""

import threading
from collections.abc import Callable, Generator
from contextvars import copy_context
from functools import partial

from opkernel.errors import as_op_error
from opkernel.kernel import OpKernelContext
from opkernel.ops.data_flow.waiting import Done

__all__ = ["Wait", "Waits", "run_waits"]

Wait = Callable[[Done], None]
"""Starts to wait; the function that it is given is to be called when the wait is over."""

Waits = Generator[Wait, None, None]
"""Work of one kernel: it goes on after each wait, unless the kernel has failed then."""


def run_waits(waits: Waits, ctx: OpKernelContext, done: Done, *, takes_long: bool = False) -> None:
    """Do the work, of which an error is the kernel's status, and call `done` in the end.

    Work that takes long has a thread of its own. So has work after a wait, as whoever ends the wait has
    other things to do.
    """
    context = copy_context()  # the budget of the step, among others

    def go_on() -> None:
        try:
            while ctx.status is None and (wait := next(waits, None)) is not None:
                if not _is_over_at_once(wait, later):
                    return
            waits.close()
        except Exception as error:  # whatever goes wrong belongs to the kernel
            waits.close()
            ctx.set_status(as_op_error(error))
        done()

    def later() -> None:
        _on_thread(partial(context.run, go_on))

    if takes_long:
        later()
    else:
        go_on()


def _is_over_at_once(wait: Wait, later: Done) -> bool:
    """Start a wait; `later` is called at its end, unless it is over at once."""
    first = threading.Lock()  # taken by what comes first: the end, or the return of the call

    def end() -> None:
        if not first.acquire(blocking=False):
            later()

    wait(end)
    return not first.acquire(blocking=False)


def _on_thread(work: Callable[[], None]) -> None:
    """Have a new thread do the work, or the calling one where the system gives no more threads."""
    try:
        threading.Thread(target=work, name="opkernel reader", daemon=True).start()
    except RuntimeError:
        work()
