"""Workers that compute batches: this process, others beside it, or those of a Ray cluster.

Batches come back in their order, each as its outputs and the rows that failed (`Outcome`). A Ray cluster computes
them by Ray Data (the extra `ray`).
"""

from __future__ import annotations

import importlib
import logging
import multiprocessing
import pickle
import signal
import sys
import threading
import warnings
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import AbstractContextManager, nullcontext
from functools import partial
from multiprocessing.connection import Connection
from typing import Any

import numpy as np

from opkernel.device.budget import Budget
from opkernel.device.intra_op import one_blas_thread
from opkernel.distributed.batches.data_files import forget_files
from opkernel.distributed.batches.mapped_model import MappedModel, ModelSource
from opkernel.distributed.batches.rows import ArrayRows, Batch, Rows
from opkernel.distributed.ray_library import start_ray
from opkernel.errors import (
    Code,
    InvalidArgumentError,
    OpError,
    UnavailableError,
    as_op_error,
    error_of_code,
)
from opkernel.interrupts import contextmanager
from opkernel.kernel import under_budget
from opkernel.libraries import library
from opkernel.opdef import UnregisteredOpError
from opkernel.records import dataclass
from opkernel.types import Array, TensorShape

_OF_THE_MODEL = {Code.CANCELLED, Code.DEADLINE_EXCEEDED, Code.UNAVAILABLE, Code.UNIMPLEMENTED}
"""The codes of errors that every row would meet."""


@dataclass(frozen=True)
class Failure:
    """Why a row has no outputs; `row` is None where it is the model that failed."""

    row: int | None
    code: Code
    message: str

    def error(self) -> OpError:
        """The error to raise for it."""
        where = "" if self.row is None else f"Row {self.row}: "
        return error_of_code(self.code, f"{where}{self.message}")


@dataclass(frozen=True)
class Outcome:
    """The outputs of the rows that did not fail, by name, and those that did."""

    outputs: Mapping[str, Array]
    failures: tuple[Failure, ...] = ()


def failed(error: Exception, row: int | None = None) -> Outcome:
    """No outputs, for this reason."""
    told = as_op_error(error)
    return Outcome({}, (Failure(row, told.code, told.message),))


def computed(model: MappedModel, batch: Batch) -> Outcome:
    """Read and run a batch; where it fails, its rows are run one by one."""
    rows = batch.rows
    try:
        if not rows.are_separate:  # then none of them can be read, or fits, without the others
            rows = ArrayRows(model.fitted(rows.read()))
    except Exception as error:  # readers may raise anything
        return failed(error)
    try:
        return Outcome(_outputs(model, rows))
    except Exception as error:  # and so may kernels of users
        told = as_op_error(error)
        if told.code in _OF_THE_MODEL or isinstance(told, UnregisteredOpError):
            return failed(told)
        if len(rows) == 1:
            return failed(told, batch.first_row)
    return _joined(
        [_row(model, batch.first_row, rows, i) for i in range(len(rows))], batch.first_row
    )


def _row(model: MappedModel, first_row: int, rows: Rows, index: int) -> Outcome:
    try:
        return Outcome(_outputs(model, rows.part(index, index + 1)))
    except Exception as error:  # as above
        return failed(error, first_row + index)


def _outputs(model: MappedModel, rows: Rows) -> dict[str, Array]:
    inputs = model.fitted(rows.read()) if rows.are_separate else rows.read()
    outputs = {name: _array(value) for name, value in model.run(inputs).items()}
    for name, array in outputs.items():
        if array.shape[:1] != (len(rows),):
            raise InvalidArgumentError(
                f"Output {name!r} has shape {TensorShape(array.shape)} for {len(rows)} rows, and a "
                f"row of each output belongs to a row of the inputs"
            )
    return outputs


def _array(value: Any) -> Array:
    return np.asarray(value, object) if isinstance(value, bytes) else np.asarray(value)


def _joined(rows: list[Outcome], first_row: int) -> Outcome:
    """The outcomes of single rows as one; rows of another shape than the first cannot stand beside it."""
    good: list[Mapping[str, Array]] = []
    failures: list[Failure] = []
    for number, row in enumerate(rows, first_row):
        failures += row.failures
        if row.failures:
            continue
        if good and _shapes(row.outputs) != _shapes(good[0]):
            message = (
                f"Its outputs have shapes {_shapes(row.outputs)}, and the first {_shapes(good[0])}"
            )
            failures.append(Failure(number, Code.INVALID_ARGUMENT, message))
        else:
            good.append(row.outputs)
    names = good[0] if good else ()
    return Outcome({n: np.concatenate([one[n] for one in good]) for n in names}, tuple(failures))


def _shapes(outputs: Mapping[str, Array]) -> dict[str, tuple[int, ...]]:
    return {name: array.shape[1:] for name, array in outputs.items()}


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
def in_processes(request: ModelSource, concurrency: int) -> Iterator[Compute]:
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

    def __init__(self, request: ModelSource) -> None:
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


def _begin(request: ModelSource, parent: Connection) -> None:
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


_TRIES = 3
"""How often a batch is tried whose worker is lost."""
_BLOCKS_A_WORKER = 32
"""Batches go to workers in blocks: so many at least, that all workers end at about the same time."""


def on_ray(request: ModelSource, concurrency: int | None) -> AbstractContextManager[Compute]:
    """Compute batches by actors of Ray, which load the model once each.

    Args:
        request: The model.
        concurrency: How many actors; by default as many as the cluster has processors.

    Raises:
        UnimplementedError: Ray is not installed.
        UnavailableError: within the block, workers were lost, again and again.
    """
    ray = library("ray", "A model on workers of Ray")
    importlib.import_module("ray.data")  # of the same extra, and no attribute before
    return _on_cluster(ray, request, concurrency)


@contextmanager
def _on_cluster(ray: Any, request: ModelSource, concurrency: int | None) -> Iterator[Compute]:
    is_ours = start_ray(ray)
    if is_ours:
        logging.getLogger("ray.data").setLevel(logging.ERROR)  # it tells plans, and what we raise
    try:
        processors = max(int(ray.cluster_resources().get("CPU", 1)), 1)
        yield partial(_outcomes, ray, request, concurrency or processors)
    except ray.exceptions.RayError as error:
        raise UnavailableError(
            f"A worker of Ray ended {_TRIES} times before its work was done: it was killed, or it ran "
            f"out of memory ({error})"
        ) from error
    finally:
        if is_ours:
            ray.shutdown()


def _outcomes(
    ray: Any, request: ModelSource, concurrency: int, batches: Iterable[Batch]
) -> Iterator[Outcome]:
    """The outcomes of batches, which are all put into the object store first."""
    items = [{"batch": pickle.dumps(batch, 5)} for batch in batches]
    if not items:
        return
    concurrency = min(len(items), concurrency)  # Ray warns of workers that have nothing to do
    blocks = min(len(items), concurrency * _BLOCKS_A_WORKER)
    data = ray.data.from_items(items, override_num_blocks=blocks)
    del items
    data.context.execution_options.preserve_order = True
    data.context.enable_progress_bars = False
    with warnings.catch_warnings():  # Ray has no other words yet for tries that end
        warnings.simplefilter("ignore", DeprecationWarning)
        done = data.map_batches(
            _Actor,
            batch_size=1,
            batch_format="pyarrow",
            fn_constructor_args=(request, tuple(sys.path)),
            compute=ray.data.ActorPoolStrategy(size=concurrency),
            num_cpus=1,
            max_restarts=-1,
            max_task_retries=_TRIES - 1,
        )
    for row in done.iter_rows():
        yield pickle.loads(row["outcome"])  # of a worker of ours


class _Actor:
    """A worker among the actors of Ray Data.

    Args:
        request: The model.
        path: Where the program finds modules; a worker on the same machine finds them there, too.
    """

    def __init__(self, request: ModelSource, path: tuple[str, ...]) -> None:
        sys.path += [one for one in path if one not in sys.path]
        self._worker = BatchWorker(request)

    def __call__(self, table: Any) -> dict[str, list[bytes]]:
        batches = [pickle.loads(one.as_buffer()) for one in table["batch"]]
        return {"outcome": [pickle.dumps(self._worker.run(batch), 5) for batch in batches]}
