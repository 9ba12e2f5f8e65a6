"""Batches that are computed here, or side by side by processes, and come back in their order."""

from __future__ import annotations

import multiprocessing
import signal
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import AbstractContextManager, nullcontext
from functools import partial
from multiprocessing.connection import Connection

from opkernel.device.blas_threads import one_blas_thread
from opkernel.device.budget import Budget
from opkernel.distributed.batches.data_files import forget_files
from opkernel.distributed.batches.mapped_model import MappedModel, ModelRequest
from opkernel.distributed.batches.outcome import Outcome, computed, failed
from opkernel.distributed.batches.rows import Batch
from opkernel.errors import UnavailableError
from opkernel.interrupts import contextmanager
from opkernel.kernel import under_budget

Compute = Callable[[Iterable[Batch]], Iterator[Outcome]]
"""What comes of batches, in their order."""

_AHEAD = 2
"""The batches that are under way for each process."""


@contextmanager
def in_this_process(model: MappedModel) -> Iterator[Compute]:
    """Compute batches here, when they are asked for."""
    try:
        with model:
            yield partial(map, partial(computed, model))
    finally:
        forget_files()


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
        yield partial(_in_order, lambda batch: pool.submit(_run, batch), _AHEAD * concurrency)
    except BrokenProcessPool as error:
        raise UnavailableError(
            "A worker process ended before its work was done: it was killed, it ran out of memory, "
            "or the program starts workers outside of `if __name__ == '__main__':`"
        ) from error
    finally:
        ours.close()  # ends the processes, also in the middle of a batch that nobody waits for
        pool.shutdown(cancel_futures=True)
        theirs.close()


def _in_order(
    submit: Callable[[Batch], Future[Outcome]], ahead: int, batches: Iterable[Batch]
) -> Iterator[Outcome]:
    """Submit batches, so many before the first is waited for."""
    waiting: deque[Future[Outcome]] = deque()
    for batch in batches:
        waiting.append(submit(batch))
        if len(waiting) > ahead:
            yield waiting.popleft().result()
    while waiting:
        yield waiting.popleft().result()


class BatchWorker:
    """Computes batches in a process that is there for nothing else, on one thread.

    Args:
        request: The model, which is loaded for the first batch.
    """

    def __init__(self, request: ModelRequest) -> None:
        self._request = request
        self._model: MappedModel | None = None
        limit = request.memory_limit_bytes
        self._budget = None if limit is None else Budget(limit)
        one_blas_thread.hold(self)

    def run(self, batch: Batch) -> Outcome:
        """Compute a batch. All errors come back as values, for not every one can be sent."""
        try:
            if self._model is None:
                self._model = self._request.load(one_thread=True)
        except Exception as error:  # as above; modules of users may raise anything
            return failed(error)
        limits: AbstractContextManager[object] = (
            nullcontext() if self._budget is None else under_budget(self._budget)
        )
        with limits:
            return computed(self._model, batch)


_worker: BatchWorker | None = None
"""In a worker process: it."""


def _begin(request: ModelRequest, parent: Connection) -> None:
    """Make this process a worker: it ends with its parent, and quietly at Ctrl-C."""
    global _worker  # the pool gives its calls nothing of the worker's own
    _worker = BatchWorker(request)
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    threading.Thread(target=_end_with, args=(parent,), daemon=True).start()


def _end_with(parent: Connection) -> None:
    """End this process once the parent closes its end of the pipe, or is no more."""
    parent.poll(None)
    signal.raise_signal(signal.SIGTERM)


def _run(batch: Batch) -> Outcome:
    assert _worker is not None
    return _worker.run(batch)
