"""Servable: one version of a model, loaded, warmed up, with a Batcher for each of its signatures.

The first call of a batch leads it: it waits until the batch is full or its time is over, and runs it.
Where that fails, or the outputs cannot be split, each call runs by itself, so that a bad call
harms no other.

A model may bring requests to be run before it serves, `assets.extra/tf_serving_warmup_requests`: TFRecords of
PredictionLogs.

Source: TensorFlow Serving servables/tensorflow/saved_model_bundle_factory.cc, batching/batching_session.cc,
servables/tensorflow/saved_model_warmup.cc, servables/tensorflow/util.cc.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Hashable, Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from opkernel.checkpoint.crc32c import masked_crc32c
from opkernel.device.budget import check_time, current_budget
from opkernel.device.permissions import NO_PERMISSIONS, Permissions
from opkernel.errors import DataLossError, InvalidArgumentError, OpError, UnimplementedError
from opkernel.graph import TensorSpec
from opkernel.graph.io.signature_names import DEFAULT_SIGNATURE
from opkernel.interop import Signature, load_as_session
from opkernel.messages import did_you_mean
from opkernel.proto import POOL, DecodeError, message_class
from opkernel.records import dataclass, field
from opkernel.runtime import SessionConfig
from opkernel.types import tensor_from_proto

Tensors = Mapping[str, Any]


class _Batch:
    """Calls that are joined.

    Attributes:
        rows: The first sizes of the calls, in their order.
        is_full: Set when no further call joins.
        is_done: Set when `outputs` has those of each call, or none.
    """

    def __init__(self) -> None:
        self.calls: list[Tensors] = []
        self.rows: list[int] = []
        self.outputs: list[dict[str, Any]] | None = None
        self.is_full = threading.Event()
        self.is_done = threading.Event()


class Batcher:
    """Runs a signature.

    Args:
        signature: The signature.
        max_rows: The most rows of a batch.
        wait_s: How long the first call of a batch waits for others.
        observe: Told the number of rows whenever the signature runs.
    """

    def __init__(
        self,
        signature: Signature,
        max_rows: int,
        wait_s: float,
        observe: Callable[[int], None] = lambda rows: None,
    ) -> None:
        self._signature = signature
        self._max_rows = max_rows
        self._wait_s = wait_s
        self._observe = observe
        self._joins = max_rows > 1 and _has_open_first_sizes(signature)
        self._open: dict[Hashable, _Batch] = {}
        self._lock = threading.Lock()

    def run(self, inputs: Tensors) -> dict[str, Any]:
        """The outputs of a call."""
        rows = _rows(inputs) if self._joins else None
        if rows is None or not 0 < rows < self._max_rows:
            return self._run_alone(inputs, rows or 1)
        key = tuple((name, x.dtype, x.shape[1:]) for name, x in sorted(inputs.items()))
        batch, number = self._joined(key, inputs, rows)
        if number == 0:
            self._lead(key, batch)
        elif not batch.is_done.wait(_seconds_left()):
            check_time("waiting for a batch")
        if batch.outputs is None:
            return self._run_alone(inputs, rows)
        return batch.outputs[number]

    def _joined(self, key: Hashable, inputs: Tensors, rows: int) -> tuple[_Batch, int]:
        """The batch that a call joins, and its number in it."""
        with self._lock:
            batch = self._open.get(key)
            if batch is not None and sum(batch.rows) + rows > self._max_rows:
                batch.is_full.set()
                batch = None
            if batch is None:
                batch = self._open[key] = _Batch()
            batch.calls.append(inputs)
            batch.rows.append(rows)
            if sum(batch.rows) == self._max_rows:
                del self._open[key]
                batch.is_full.set()
            return batch, len(batch.calls) - 1

    def _lead(self, key: Hashable, batch: _Batch) -> None:
        try:
            batch.is_full.wait(self._wait_s)
            with self._lock:
                if self._open.get(key) is batch:
                    del self._open[key]
            if len(batch.calls) > 1:
                batch.outputs = self._run_together(batch)
        except OpError:
            batch.outputs = None  # each call finds its own error
        finally:
            batch.is_done.set()

    def _run_together(self, batch: _Batch) -> list[dict[str, Any]] | None:
        joined = {name: np.concatenate([one[name] for one in batch.calls]) for name in batch.calls[0]}  # fmt: skip
        total = sum(batch.rows)
        outputs = self._run_alone(joined, total)
        if any(np.shape(value)[:1] != (total,) for value in outputs.values()):
            self._joins = False
            return None
        ends = np.cumsum(batch.rows)
        bounds = zip(ends - batch.rows, ends, strict=True)
        return [{name: one[start:end] for name, one in outputs.items()} for start, end in bounds]

    def _run_alone(self, inputs: Tensors, rows: int) -> dict[str, Any]:
        self._observe(rows)
        return self._signature(**inputs)


def _rows(inputs: Tensors) -> int | None:
    """The first size that all inputs have; None where they have none in common."""
    sizes = {np.shape(one)[:1] for one in inputs.values()}
    return sizes.pop()[0] if len(sizes) == 1 and () not in sizes else None


def _has_open_first_sizes(signature: Signature) -> bool:
    """Whether calls can be joined: the first sizes of all inputs and outputs are not fixed."""
    specs = [*signature.inputs.values(), *signature.outputs.values()]
    return bool(signature.inputs) and all(
        isinstance(spec, TensorSpec)
        and (spec.shape.rank is None or (spec.shape.rank > 0 and spec.shape.as_list()[0] is None))
        for spec in specs
    )


def _seconds_left() -> float | None:
    budget = current_budget()
    return None if budget is None else budget.seconds_left


_FILE = Path("assets.extra", "tf_serving_warmup_requests")
EXAMPLES_INPUT = "inputs"
"""The input of signatures that take examples."""

_PredictionLog: Any = message_class(POOL.FindMessageTypeByName("tensorflow.serving.PredictionLog"))

Call = tuple[str, dict[str, Any]]


def warmup_calls(model: Path) -> Iterator[Call]:
    """The signature and the inputs of each request; none where there is no such file.

    Raises:
        DataLossError: the file is damaged.
        UnimplementedError: a request is for a session, which no server of models takes.
    """
    file = model / _FILE
    if not file.is_file():
        return
    for record in _records(file.read_bytes(), file):
        try:
            log = _PredictionLog.FromString(record)
        except DecodeError as error:
            raise DataLossError(f"{file} is damaged: a record is no PredictionLog") from error
        yield from _calls(log)


def _calls(log: Any) -> Iterator[Call]:
    kind = log.WhichOneof("log_type")
    if kind is None:
        return  # of a kind that is newer
    if kind == "session_run_log":
        raise UnimplementedError("Unsupported log_type for warmup: session_run_log")
    request = getattr(log, kind).request
    if kind == "predict_log":
        inputs = {name: tensor_from_proto(value) for name, value in request.inputs.items()}
        yield request.model_spec.signature_name, inputs
        return
    inputs = {EXAMPLES_INPUT: serialized_examples(request.input)}
    for task in request.tasks if kind == "multi_inference_log" else [request]:
        yield task.model_spec.signature_name, inputs


def serialized_examples(examples: Any) -> Any:
    """Examples as a signature takes them; the context is part of each."""
    context = examples.example_list_with_context.context.SerializeToString()
    found = examples.example_list.examples or examples.example_list_with_context.examples
    return np.array([context + one.SerializeToString() for one in found], object)


def _records(data: bytes, file: Path) -> Iterator[bytes]:
    """The data of TFRecords: each with its length before it, and a checksum after either."""
    start = 0
    while start < len(data):
        length = int.from_bytes(data[start : start + 8], "little")
        record = data[start + 12 : start + 12 + length]
        parts = (
            (data[start : start + 8], data[start + 8 : start + 12]),
            (record, data[start + 12 + length : start + 16 + length]),
        )
        if any(masked_crc32c(part) != int.from_bytes(check, "little") for part, check in parts):
            raise DataLossError(f"{file} is damaged: corrupted record at {start}")
        yield record
        start += 16 + length


_CONFIG = SessionConfig(operation_timeout_in_ms=86_400_000, checks_feed_shapes=False)
"""Steps have the time of their requests. Only a session with a limit of its own looks at the clock."""


@dataclass(frozen=True)
class ServingOptions:
    """The options of a server.

    Attributes:
        jit: The engine that compiles parts of the models, as for a Session.
        max_batch: The most rows that requests are joined to; with 1 none are joined.
        batch_timeout_s: How long a request waits for others to join.
        max_request_bytes: The largest body of a request.
        timeout_s: The longest that a request may take.
        labels: Names of versions, for the paths with `/labels/NAME`.
        permissions: What the graphs of the models may read and write.
    """

    jit: str = ""
    max_batch: int = 1
    batch_timeout_s: float = 0.001
    max_request_bytes: int = 64 << 20
    timeout_s: float = 30.0
    labels: Mapping[str, int] = field(default_factory=dict)
    permissions: Permissions = NO_PERMISSIONS


class Servable:
    """A model that answers.

    Attributes:
        name: The name of the model.
        version: Its version.
        model: The model, as TensorFlow Serving loads it.

    Args:
        path: Its directory.
        observe: Told the rows of each batch that runs.
    """

    def __init__(
        self,
        name: str,
        version: int,
        path: Path,
        options: ServingOptions,
        observe: Callable[[int], None] = lambda rows: None,
    ) -> None:
        self.name = name
        self.version = version
        self.model = load_as_session(path, permissions=options.permissions, jit=options.jit)
        self.model.session_options["config"] = _CONFIG
        self._batchers = {
            key: Batcher(signature, options.max_batch, options.batch_timeout_s, observe)
            for key, signature in self.model.signatures.items()
        }
        self._uses = 0
        self._is_retired = False
        self._lock = threading.Lock()
        self.model.session  # noqa: B018  # reads the checkpoint
        for signature_name, inputs in warmup_calls(path):
            self.signature(signature_name)(**inputs)

    def signature(self, name: str) -> Signature:
        """A signature; that of the name `serving_default` for an empty name.

        Raises:
            InvalidArgumentError: there is none.
        """
        known = self.model.signatures
        if (name or DEFAULT_SIGNATURE) not in known:
            raise InvalidArgumentError(
                f'Serving signature name: "{name or DEFAULT_SIGNATURE}" not found in signature def; '
                f"the model has {', '.join(known) or 'none'}{did_you_mean(name, known)}"
            )
        return known[name or DEFAULT_SIGNATURE]

    def run(self, signature: Signature, inputs: dict[str, Any]) -> dict[str, Any]:
        """The outputs of a signature, perhaps computed together with those of other calls."""
        return self._batchers[signature.name].run(inputs)

    def begin_use(self) -> bool:
        """Keep the model until `end_use`; False where it was retired before."""
        with self._lock:
            if not self._is_retired:
                self._uses += 1
            return not self._is_retired

    def end_use(self) -> None:
        """Let the model go, if it is retired and nobody else uses it."""
        with self._lock:
            self._uses -= 1
            ends = self._is_retired and not self._uses
        if ends:
            self.model.close()

    def retire(self) -> None:
        """Take no further uses; the model is closed when the last one ends."""
        with self._lock:
            ends = not self._is_retired and not self._uses
            self._is_retired = True
        if ends:
            self.model.close()
