"""The requests that a model brings, to be run before it serves: `assets.extra/tf_serving_warmup_requests`.

They are TFRecords of PredictionLogs. Those of Predict are run, others are passed over. Of the messages
only the fields are read that say what to run.

Source: TensorFlow Serving servables/tensorflow/saved_model_warmup.cc, apis/prediction_log.proto,
predict.proto, model.proto.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from opkernel.checkpoint.crc32c import masked_crc32c
from opkernel.checkpoint.varint import read_varint
from opkernel.errors import DataLossError
from opkernel.proto import DecodeError, TensorProto
from opkernel.types import tensor_from_proto

__all__ = ["warmup_calls"]

_FILE = Path("assets.extra", "tf_serving_warmup_requests")
_PREDICT_LOG = 6  # of PredictionLog
_REQUEST = 1  # of PredictLog
_MODEL_SPEC, _INPUTS = 1, 2  # of PredictRequest
_SIGNATURE_NAME = 3  # of ModelSpec
_KEY, _VALUE = 1, 2  # of an entry of a map
_VARINT, _EIGHT, _BYTES, _FOUR = 0, 1, 2, 5  # how fields are encoded


def warmup_calls(model: Path) -> Iterator[tuple[str, dict[str, Any]]]:
    """The signature and the inputs of each request; none where there is no such file.

    Raises:
        DataLossError: the file is damaged.
    """
    file = model / _FILE
    if not file.is_file():
        return
    for record in _records(file.read_bytes(), file):
        for log in _fields(record, _PREDICT_LOG):
            for request in _fields(log, _REQUEST):
                yield _call(request, file)


def _call(request: bytes, file: Path) -> tuple[str, dict[str, Any]]:
    names = [n for spec in _fields(request, _MODEL_SPEC) for n in _fields(spec, _SIGNATURE_NAME)]
    inputs = {}
    for entry in _fields(request, _INPUTS):
        key = b"".join(_fields(entry, _KEY)).decode(errors="replace")
        try:
            inputs[key] = tensor_from_proto(TensorProto.FromString(b"".join(_fields(entry, _VALUE))))  # fmt: skip
        except DecodeError as error:
            raise DataLossError(f"{file} is damaged: input {key!r} is no tensor") from error
    return (names[-1].decode(errors="replace") if names else ""), inputs


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


def _fields(message: bytes, wanted: int) -> Iterator[bytes]:
    """The values of a field of bytes, text or messages."""
    position = 0
    while position < len(message):
        tag, position = read_varint(message, position)
        encoding = tag & 7
        if encoding == _VARINT:
            _, position = read_varint(message, position)
        elif encoding in (_EIGHT, _FOUR):
            position += 8 if encoding == _EIGHT else 4
        elif encoding == _BYTES:
            size, position = read_varint(message, position)
            if tag >> 3 == wanted:
                yield message[position : position + size]
            position += size
        else:
            raise DataLossError("A warm-up request is damaged")
