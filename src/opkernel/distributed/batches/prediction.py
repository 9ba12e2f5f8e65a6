"""predict: a model mapped over a data set."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager
from itertools import chain
from typing import Any, Literal

from opkernel.device.budget import current_budget
from opkernel.device.permissions import NO_PERMISSIONS, Permissions
from opkernel.distributed.batches.data_files import DataSet, data_set, digest_of_files
from opkernel.distributed.batches.mapped_model import MappedModel, ModelSource
from opkernel.distributed.batches.parts import PartFolder
from opkernel.distributed.batches.rows import Batch, cut
from opkernel.distributed.batches.workers import (
    Compute,
    Outcome,
    in_processes,
    in_this_process,
    on_ray,
)
from opkernel.errors import Code, InvalidArgumentError
from opkernel.interrupts import Closing
from opkernel.types import Array


def predict(
    model: str | os.PathLike[str],
    data: Any,
    *,
    batch_size: int = 32,
    concurrency: int | None = None,
    workers: Literal["processes", "ray"] = "processes",
    signature: str | None = None,
    jit: str = "",
    output: str | os.PathLike[str] | None = None,
    permissions: Permissions | None = None,
    on_error: Literal["raise", "skip"] = "raise",
    tags: Sequence[str] | str | None = None,
    libraries: Sequence[str] = (),
    overwrite: bool = False,
    image_size: tuple[int, int] | None = None,
) -> Predictions:
    """Map a model over a data set.

        for outputs in predict("model", {"x": x}, concurrency=4):
            print(outputs["y"])

    With `concurrency`, a program starts its work under `if __name__ == "__main__":`.

    Args:
        model: The path of a SavedModel, or of a graph.
        data: A mapping of names to arrays, whose first axes count the rows; an iterable of such mappings; an
            `.npz`, `.npy`, Parquet, CSV or JSON lines file; a folder of such files or of images, in the order of names.
        batch_size: How many rows the model gets at once; the last batch may have fewer.
        concurrency: How many workers compute. By default this process does; of Ray, all processors.
        workers: Processes of this machine, or those of a Ray cluster (the extra `ray`).
        signature: The signature of a SavedModel: `serving_default`, or the only one.
        jit: The engine that compiles parts of the model, as for a Session.
        output: A folder for the outputs, a file for each batch. What is there is not computed again.
        permissions: What the graph of the model may read and write.
        on_error: Raise the error of a row that fails, or leave it out, and list it in `Predictions.skipped`.
        tags: The tags of the MetaGraph to take.
        libraries: Modules that each process imports first, for their ops and kernels.
        overwrite: Whether what another run has written to `output` is deleted first.
        image_size: The height and width that images are resized to.

    Returns:
        The outputs of the batches in order. Nothing is computed before it is asked for.

    Raises:
        NotFoundError: there is no such file or signature.
        InvalidArgumentError: the model is no such file, or the data does not fit the model.
        FailedPreconditionError: `output` has the outputs of another run.
        UnimplementedError: a library is not installed; the message says how to install it.
    """
    _check(batch_size, concurrency, on_error, workers)
    request = _request(model, tags, signature, jit, permissions, libraries)
    loaded = request.load()
    source = data_set(data, loaded, batch_size, image_size)
    folder = _folder(output, overwrite, request, source, batch_size, image_size)
    compute = _compute(loaded, request, workers, concurrency)
    batches = cut(source.chunks, batch_size)
    return Predictions(batches, source.count, compute, folder, is_strict=on_error == "raise")


def _request(
    model: str | os.PathLike[str],
    tags: Sequence[str] | str | None,
    signature: str | None,
    jit: str,
    permissions: Permissions | None,
    libraries: Sequence[str],
) -> ModelSource:
    budget = current_budget()
    return ModelSource(
        os.path.abspath(model),
        tuple(tags) if isinstance(tags, list) else tags,
        signature,
        jit,
        permissions or NO_PERMISSIONS,
        tuple(libraries),
        None if budget is None else budget.memory_limit_bytes,
    )


def _compute(
    loaded: MappedModel, request: ModelSource, workers: str, concurrency: int | None
) -> AbstractContextManager[Compute]:
    """What computes; the model stays loaded here if it is this process."""
    if workers == "processes" and concurrency is None:
        return in_this_process(loaded)
    loaded.close()
    if concurrency is None or workers == "ray":
        return on_ray(request, concurrency)
    return in_processes(request, concurrency)


def _check(batch_size: int, concurrency: int | None, on_error: str, workers: str) -> None:
    if batch_size < 1 or (concurrency is not None and concurrency < 1):
        raise InvalidArgumentError(
            f"batch_size is {batch_size} and concurrency {concurrency}; neither may be less than 1"
        )
    for name, value, first, second in (
        ("on_error", on_error, "raise", "skip"),
        ("workers", workers, "processes", "ray"),
    ):
        if value not in (first, second):
            raise InvalidArgumentError(f"{name} is {value!r}, and may be {first!r} or {second!r}")


def _folder(
    output: str | os.PathLike[str] | None,
    overwrite: bool,
    request: ModelSource,
    source: DataSet,
    batch_size: int,
    image_size: tuple[int, int] | None,
) -> PartFolder | None:
    """The folder of the parts, and what must be the same where a run goes on."""
    if output is None:
        return None
    run = {
        "model_sha256": digest_of_files(_files_of(request.path)),
        "signature": request.signature or "",
        "batch_size": batch_size,
        "image_size": "x".join(map(str, image_size or ())),
        "input_sha256": source.digest,
    }
    return PartFolder(os.fspath(output), run, overwrite=overwrite)


def _files_of(model: str) -> list[str]:
    """The files of a model, in an order of their own."""
    if os.path.basename(model).startswith("saved_model.pb"):
        model = os.path.dirname(model)
    if not os.path.isdir(model):
        return [model]
    found = [os.path.join(folder, one) for folder, _, names in os.walk(model) for one in names]
    return sorted(found)


class Predictions(Closing, Iterator[dict[str, Array]]):
    """The outputs of batches, in order; closing it ends the workers.

    A batch of which every row is left out gives none. The next one raises UnavailableError where a
    process ended before its work was done, and the OpError of a row that failed, which names the row.

    Attributes:
        skipped: The rows that were left out so far: their number, status code and message.
        rows: How many rows were taken so far.
        total: How many rows there are; None where only the end of the data tells.
        batches: How many batches were taken so far.
        computed: How many of these were computed, and not read from the folder of an earlier run.
    """

    def __init__(
        self,
        batches: Iterator[Batch],
        total: int | None,
        compute: AbstractContextManager[Compute],
        folder: PartFolder | None,
        *,
        is_strict: bool,
    ) -> None:
        self.skipped: list[tuple[int, Code, str]] = []
        self.rows = self.batches = self.computed = 0
        self.total = total
        self._folder = folder
        self._is_strict = is_strict
        self._outputs = self._run(batches, compute)

    def __next__(self) -> dict[str, Array]:
        return next(self._outputs)

    def close(self) -> None:
        """End the work that is under way."""
        self._outputs.close()

    def _run(
        self, batches: Iterator[Batch], compute: AbstractContextManager[Compute]
    ) -> Any:  # a generator
        with compute as outcomes:
            for batch, outcome, is_new in self._in_order(batches, outcomes):
                self._check(outcome)
                if is_new and self._folder is not None:
                    self._folder.write(batch, outcome)
                self.rows += len(batch.rows)
                self.batches += 1
                self.computed += is_new
                if outcome.outputs:  # there are none where all rows failed
                    yield dict(outcome.outputs)
        if self._folder is not None:
            self._folder.finish()

    def _in_order(
        self, batches: Iterator[Batch], compute: Compute
    ) -> Iterator[tuple[Batch, Outcome, bool]]:
        """What comes of each batch; whether it is new, and not of an earlier run."""
        for batch in batches:
            if self._has(batch):
                yield self._read(batch)
            else:
                yield from self._merged(chain([batch], batches), compute)

    def _merged(
        self, batches: Iterator[Batch], compute: Compute
    ) -> Iterator[tuple[Batch, Outcome, bool]]:
        """The same where some batches have to be computed."""
        earlier: deque[Batch] = deque()
        missing: deque[Batch] = deque()

        def found_missing() -> Iterator[Batch]:
            for batch in batches:
                if self._has(batch):
                    earlier.append(batch)
                else:
                    missing.append(batch)
                    yield batch

        for outcome in compute(found_missing()):
            batch = missing.popleft()
            while earlier and earlier[0].number < batch.number:
                yield self._read(earlier.popleft())
            yield batch, outcome, True
        while earlier:
            yield self._read(earlier.popleft())

    def _has(self, batch: Batch) -> bool:
        return self._folder is not None and self._folder.has(batch)

    def _read(self, batch: Batch) -> tuple[Batch, Outcome, bool]:
        assert self._folder is not None
        return batch, self._folder.read(batch), False

    def _check(self, outcome: Outcome) -> None:
        """List the rows that failed, or raise their error."""
        for failure in outcome.failures:
            if self._is_strict or failure.row is None:
                raise failure.error()
            self.skipped.append((failure.row, failure.code, failure.message))
