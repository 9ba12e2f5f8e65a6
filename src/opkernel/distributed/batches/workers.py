"""Batches that are computed side by side, by processes, and come back in their order."""

from __future__ import annotations

import multiprocessing
import signal
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import AbstractContextManager, contextmanager, nullcontext
from functools import cache
from multiprocessing.connection import Connection
from typing import TypeVar

from opkernel.device.blas_threads import one_blas_thread
from opkernel.device.budget import Budget
from opkernel.distributed.batches.batch import Batch
from opkernel.distributed.batches.mapped_model import MappedModel, ModelRequest
from opkernel.distributed.batches.outcome import Outcome, computed, failed
from opkernel.errors import UnavailableError
from opkernel.kernel import under_budget

__all__ = ["Compute", "in_order", "in_processes", "in_this_process"]

Compute = Callable[[Batch], Callable[[], Outcome]]
"""Starts a batch; the result waits for what comes of it."""
_T = TypeVar("_T")


def in_order(calls: Iterable[Callable[[], _T]], ahead: int) -> Iterator[_T]:
    """The results of calls in their order; so many calls are made before the first is waited for."""
    waiting: deque[Callable[[], _T]] = deque()
    for call in calls:
        waiting.append(call)
        if len(waiting) > ahead:
            yield waiting.popleft()()
    while waiting:
        yield waiting.popleft()()


@contextmanager
def in_this_process(model: MappedModel) -> Iterator[Compute]:
    """Compute batches here, when they are waited for."""
    with model:
        yield lambda batch: lambda: computed(model, batch)


@contextmanager
def in_processes(request: ModelRequest, concurrency: int) -> Iterator[Compute]:
    """Compute batches by so many processes, which load the model once each.

    Raises:
        UnavailableError: a process ended before its work was done.
    """
    context = multiprocessing.get_context("spawn")
    theirs, ours = context.Pipe(duplex=False)
    pool = ProcessPoolExecutor(concurrency, context, initializer=_begin, initargs=(request, theirs))
    try:
        yield lambda batch: pool.submit(_run, batch).result
    except BrokenProcessPool as error:
        raise UnavailableError(
            "A worker process ended before its work was done: it was killed, it ran out of memory, "
            "or the program starts workers outside of `if __name__ == '__main__':`"
        ) from error
    finally:
        ours.close()  # ends the processes, also in the middle of a batch that nobody waits for
        pool.shutdown(cancel_futures=True)
        theirs.close()


_request: ModelRequest | None = None
"""In a worker: the model that it has."""


def _begin(request: ModelRequest, parent: Connection) -> None:
    """Make this process a worker: it ends with its parent, and quietly at Ctrl-C."""
    global _request  # the pool gives its calls nothing of the worker's own
    _request = request
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    one_blas_thread.__enter__()  # for good
    threading.Thread(target=_end_with, args=(parent,), daemon=True).start()


def _end_with(parent: Connection) -> None:
    """End this process once the parent closes its end of the pipe, or is no more."""
    parent.poll(None)
    signal.raise_signal(signal.SIGTERM)


@cache
def _model(request: ModelRequest) -> tuple[MappedModel, Budget | None]:
    limit = request.memory_limit_bytes
    return request.load(one_thread=True), None if limit is None else Budget(limit)


def _run(batch: Batch) -> Outcome:
    """In a worker: compute a batch. All errors come back as values, for not every one can be sent."""
    assert _request is not None
    try:
        model, budget = _model(_request)
    except Exception as error:  # as above; modules of users may raise anything
        return failed(error)
    limits: AbstractContextManager[object] = (
        nullcontext() if budget is None else under_budget(budget)
    )
    with limits:
        return computed(model, batch)
