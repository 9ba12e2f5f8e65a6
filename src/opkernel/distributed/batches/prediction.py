"""predict: a model mapped over a data set."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from functools import partial
from typing import Any, Literal, Self

from opkernel.device.budget import current_budget
from opkernel.device.permissions import NO_PERMISSIONS, Permissions
from opkernel.distributed.batches.batch import Array, Batch, cut, fitted
from opkernel.distributed.batches.data_files import DataSet, data_set, digest_of_files
from opkernel.distributed.batches.mapped_model import MappedModel, ModelRequest
from opkernel.distributed.batches.outcome import Outcome
from opkernel.distributed.batches.parts import PartFolder
from opkernel.distributed.batches.workers import Compute, in_order, in_processes, in_this_process
from opkernel.errors import Code, InvalidArgumentError

__all__ = ["Predictions", "predict"]

_AHEAD = 2
"""The batches that are under way for each process."""


def predict(
    model: str | os.PathLike[str],
    data: Any,
    *,
    batch_size: int = 32,
    concurrency: int | None = None,
    signature: str | None = None,
    jit: str = "",
    output: str | os.PathLike[str] | None = None,
    permissions: Permissions | None = None,
    on_error: Literal["raise", "skip"] = "raise",
    tags: Sequence[str] | str | None = None,
    libraries: Sequence[str] = (),
    overwrite: bool = False,
) -> Predictions:
    """Map a model over a data set.

        for outputs in predict("model", {"x": x}, concurrency=4):
            print(outputs["y"])

    With `concurrency`, a program starts its work under `if __name__ == "__main__":`, as
    `multiprocessing` asks for.

    Args:
        model: The path of a SavedModel, or of a graph.
        data: A mapping of names to arrays, whose first axes count the rows; an iterable of such
            mappings; an `.npz` file, a Parquet file, or a folder of such files, which are taken in
            the order of their names. A batch has rows of one mapping or file.
        batch_size: How many rows the model gets at once; the last batch may have fewer.
        concurrency: How many processes compute. By default this one does.
        signature: The signature of a SavedModel: `serving_default`, or the only one.
        jit: The engine that compiles parts of the model, as for a Session.
        output: A folder for the outputs, a file for each batch. Batches whose file is there are
            not computed again.
        permissions: What the graph of the model may read and write.
        on_error: What to do about a row that fails: raise its error, or leave it out, and list it in
            `Predictions.skipped`.
        tags: The tags of the MetaGraph to take.
        libraries: Modules that each process imports first, for their ops and kernels.
        overwrite: Whether what another run has written to `output` is deleted first.

    Returns:
        The outputs of the batches in order, as dicts of arrays; a batch of which every row is left out gives
        none. Nothing is computed before it is asked for.

    Raises:
        NotFoundError: there is no such file or signature.
        InvalidArgumentError: the model is no such file, or the data does not fit the model.
        FailedPreconditionError: `output` has the outputs of another run.
        UnavailableError: a process ended before its work was done.
        OpError: a row failed; the message says which.
    """
    if batch_size < 1 or (concurrency is not None and concurrency < 1):
        raise InvalidArgumentError(
            f"batch_size is {batch_size} and concurrency {concurrency}; neither may be less than 1"
        )
    if on_error not in ("raise", "skip"):
        raise InvalidArgumentError(f"on_error is {on_error!r}, and may be 'raise' or 'skip'")
    budget = current_budget()
    request = ModelRequest(
        os.path.abspath(model),
        tuple(tags) if isinstance(tags, list) else tags,
        signature,
        jit,
        permissions or NO_PERMISSIONS,
        tuple(libraries),
        None if budget is None else budget.memory_limit_bytes,
    )
    loaded = request.load()
    source = data_set(data, loaded.inputs, batch_size)
    folder = None
    if output is not None:
        run = _run_of(request, source, batch_size)
        folder = PartFolder(os.fspath(output), run, overwrite=overwrite)
    compute = in_this_process(loaded)
    if concurrency is not None:
        loaded.close()
        compute = in_processes(request, concurrency)
    batches = cut(source.chunks, loaded, batch_size)
    ahead = _AHEAD * (concurrency or 0)
    return Predictions(loaded, batches, compute, ahead, folder, is_strict=on_error == "raise")


def _run_of(request: ModelRequest, source: DataSet, batch_size: int) -> dict[str, Any]:
    """What must be the same where a run goes on."""
    return {
        "model_sha256": digest_of_files(_files_of(request.path)),
        "signature": request.signature or "",
        "batch_size": batch_size,
        "input_sha256": source.digest,
    }


def _files_of(model: str) -> list[str]:
    """The files of a model, in an order of their own."""
    if os.path.basename(model).startswith("saved_model.pb"):
        model = os.path.dirname(model)
    if not os.path.isdir(model):
        return [model]
    found = [os.path.join(folder, one) for folder, _, names in os.walk(model) for one in names]
    return sorted(found)


class Predictions(Iterator[dict[str, Array]]):
    """The outputs of batches, in order; closing it ends the processes.

    Attributes:
        skipped: The rows that were left out so far: their number, status code and message.
        rows: How many rows were taken so far.
        batches: How many batches.
        computed: How many of these were computed, and not read from the folder of an earlier run.
    """

    def __init__(
        self,
        model: MappedModel,
        batches: Iterator[Batch],
        compute: AbstractContextManager[Compute],
        ahead: int,
        folder: PartFolder | None,
        *,
        is_strict: bool,
    ) -> None:
        self.skipped: list[tuple[int, Code, str]] = []
        self.rows = self.batches = self.computed = 0
        self._model = model
        self._folder = folder
        self._is_strict = is_strict
        self._outputs = self._run(batches, compute, ahead)

    def __next__(self) -> dict[str, Array]:
        return next(self._outputs)

    def close(self) -> None:
        """End the work that is under way."""
        self._outputs.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def _run(
        self, batches: Iterator[Batch], compute: AbstractContextManager[Compute], ahead: int
    ) -> Any:  # a generator
        with compute as start:
            calls = (self._started(batch, start) for batch in batches)
            for batch, outcome, is_new in in_order(calls, ahead):
                self._check(outcome)
                if is_new and self._folder is not None:
                    self._folder.write(batch, outcome)
                self.rows += batch.rows
                self.batches += 1
                self.computed += is_new
                if outcome.outputs:  # there are none where all rows failed
                    yield dict(outcome.outputs)
        if self._folder is not None:
            self._folder.finish()

    def _started(self, batch: Batch, start: Compute) -> Callable[[], tuple[Batch, Outcome, bool]]:
        """Start a batch, or read what came of it; with whether it is new."""
        earlier = None if self._folder is None else self._folder.read(batch)
        if earlier is not None:
            return lambda: (batch, earlier, False)
        return partial(_waited, batch, start(fitted(batch, self._model)))

    def _check(self, outcome: Outcome) -> None:
        """List the rows that failed, or raise their error."""
        for failure in outcome.failures:
            if self._is_strict or failure.row is None:
                raise failure.error()
            self.skipped.append((failure.row, failure.code, failure.message))


def _waited(batch: Batch, wait: Callable[[], Outcome]) -> tuple[Batch, Outcome, bool]:
    return batch, wait(), True
