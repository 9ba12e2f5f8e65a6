"""The requests that a model brings, to be run before it serves: `assets.extra/tf_serving_warmup_requests`.

They are TFRecords of PredictionLogs.

Source: TensorFlow Serving servables/tensorflow/saved_model_warmup.cc, servables/tensorflow/util.cc.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from opkernel.checkpoint.crc32c import masked_crc32c
from opkernel.errors import DataLossError, UnimplementedError
from opkernel.proto import POOL, DecodeError, message_class
from opkernel.types import tensor_from_proto

_FILE = Path("assets.extra", "tf_serving_warmup_requests")
_INPUTS = "inputs"
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
    inputs = {_INPUTS: _serialized(request.input)}
    for task in request.tasks if kind == "multi_inference_log" else [request]:
        yield task.model_spec.signature_name, inputs


def _serialized(examples: Any) -> Any:
    """Examples as a signature takes them; the context is part of each."""
    context = examples.example_list_with_context.context.SerializeToString()
    found = examples.example_list.examples or examples.example_list_with_context.examples
    array = np.empty(len(found), object)
    array[:] = [context + one.SerializeToString() for one in found]
    return array


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
