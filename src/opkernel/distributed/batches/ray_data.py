"""Batches that the workers of a Ray cluster compute, by Ray Data (the extra `ray`)."""

from __future__ import annotations

import importlib
import logging
import pickle
import sys
import warnings
from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager
from functools import partial
from typing import Any

from opkernel.distributed.batches.mapped_model import ModelRequest
from opkernel.distributed.batches.outcome import Outcome
from opkernel.distributed.batches.rows import Batch
from opkernel.distributed.batches.workers import BatchWorker, Compute
from opkernel.distributed.ray_library import start_ray
from opkernel.errors import UnavailableError
from opkernel.interrupts import contextmanager
from opkernel.libraries import library

_TRIES = 3
"""How often a batch is tried whose worker is lost."""
_BLOCKS_A_WORKER = 32
"""Batches go to workers in blocks: so many at least, that all workers end at about the same time."""


def on_ray(request: ModelRequest, concurrency: int | None) -> AbstractContextManager[Compute]:
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
def _on_cluster(ray: Any, request: ModelRequest, concurrency: int | None) -> Iterator[Compute]:
    is_ours = start_ray(ray)
    if is_ours:
        logging.getLogger("ray.data").setLevel(logging.ERROR)  # it tells plans, and what we raise
    try:
        yield partial(_outcomes, ray, request, concurrency or _processors(ray))
    except ray.exceptions.RayError as error:
        raise UnavailableError(
            f"A worker of Ray ended {_TRIES} times before its work was done: it was killed, or it ran "
            f"out of memory ({error})"
        ) from error
    finally:
        if is_ours:
            ray.shutdown()


def _processors(ray: Any) -> int:
    return max(int(ray.cluster_resources().get("CPU", 1)), 1)


def _outcomes(
    ray: Any, request: ModelRequest, concurrency: int, batches: Iterable[Batch]
) -> Iterator[Outcome]:
    """The outcomes of batches, which are all put into the object store first."""
    items = [{"batch": pickle.dumps(batch, 5)} for batch in batches]
    if not items:
        return
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

    def __init__(self, request: ModelRequest, path: tuple[str, ...]) -> None:
        sys.path += [one for one in path if one not in sys.path]
        self._worker = BatchWorker(request)

    def __call__(self, table: Any) -> dict[str, list[bytes]]:
        batches = [pickle.loads(one.as_buffer()) for one in table["batch"]]
        return {"outcome": [pickle.dumps(self._worker.run(batch), 5) for batch in batches]}
