"""Requests that models bring and that run before they serve; the bytes are those of TensorFlow Serving's messages."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.serving.conftest import FLOATS, SERIALIZED, Serve, feature

import opkernel
from opkernel import raw_ops
from opkernel.checkpoint.crc32c import masked_crc32c
from opkernel.proto import Example
from opkernel.types import tensor_to_proto
from opkernel.types.varints import varint


class Summing(opkernel.Module):
    """Adds up all values that it has seen."""

    def __init__(self) -> None:
        self.seen = opkernel.Variable(np.float32(0))

    @opkernel.function(input_signature=[FLOATS])
    def __call__(self, x):
        self.seen.assign_add(raw_ops.Sum(input=x, axis=[0]))
        return x * 0.0 + self.seen.value

    @opkernel.function(input_signature=[SERIALIZED])
    def of_examples(self, inputs):
        self.seen.assign_add(
            raw_ops.Sum(input=feature(inputs, b"x") * feature(inputs, b"times", [1]), axis=[0, 1])
        )
        return {"outputs": self.seen.value + feature(inputs, b"x")}


def _field(number: int, data: bytes) -> bytes:
    return varint(number << 3 | 2) + varint(len(data)) + data


def _record(data: bytes) -> bytes:
    length = len(data).to_bytes(8, "little")
    sums = [masked_crc32c(one).to_bytes(4, "little") for one in (length, data)]
    return length + sums[0] + data + sums[1]


def _example(**features: float) -> bytes:
    example = Example()
    for name, value in features.items():
        example.features.feature[name].float_list.value.append(value)
    return example.SerializeToString()


def _spec(signature: bytes) -> bytes:
    version = _field(2, varint(1 << 3) + varint(7))
    return _field(1, _field(1, b"half") + version + _field(3, signature))


TENSOR = _field(2, tensor_to_proto(np.array([2, 3], np.float32)).SerializeToString())
PREDICT = _spec(b"serving_default") + _field(2, _field(1, b"x") + TENSOR)
EXAMPLES = _field(1, _field(1, _example(x=2.0)) + _field(1, _example(x=3.0)))
WITH_CONTEXT = _field(2, _field(1, _example(x=2.0)) + _field(2, _example(times=10.0)))
TASKS = _field(1, _spec(b"of_examples")) * 2


@pytest.mark.parametrize(
    ("number", "request_bytes", "seen"),
    [
        (6, PREDICT, 5.0),
        (6, _field(2, _field(1, b"x") + TENSOR), 5.0),
        (2, _spec(b"of_examples") + _field(2, EXAMPLES), 5.0),
        (3, _spec(b"of_examples") + _field(2, WITH_CONTEXT), 20.0),
        (4, TASKS + _field(2, EXAMPLES), 10.0),
        (7, PREDICT, 0.0),
    ],
    ids=["predict", "default", "classify", "regress", "multi_inference", "streamed"],
)
def test_requests_run_before_the_model_serves(
    number: int, request_bytes: bytes, seen: float, serve: Serve, tmp_path: Path
) -> None:
    log = _field(1, b"") + _field(number, _field(1, request_bytes))
    client = serve(_saved(tmp_path, _record(log) * 2))
    answer = client.post("/v1/models/half:predict", json={"instances": [0.0]})
    assert answer.json() == {"predictions": [seen * 2]}


@pytest.mark.parametrize(
    ("file", "code", "told"),
    [
        (_record(_field(6, _field(1, PREDICT)))[:-1], "DATA_LOSS", "corrupted record at 0"),
        (_record(b"\xff"), "DATA_LOSS", "no PredictionLog"),
        (_record(_field(5, _field(1, _spec(b"")))), "UNIMPLEMENTED", "session_run_log"),
        (_record(_field(6, _field(1, _spec(b"no")))), "INVALID_ARGUMENT", '"no" not found'),
    ],
)
def test_a_model_whose_requests_fail_does_not_serve(
    file: bytes, code: str, told: str, serve: Serve, tmp_path: Path
) -> None:
    client = serve(_saved(tmp_path, file))
    (version,) = client.get("/v1/models/half").json()["model_version_status"]
    assert (version["state"], version["status"]["error_code"]) == ("END", code)
    assert told in version["status"]["error_message"]


def _saved(folder: Path, requests: bytes) -> Path:
    """A directory with a model that has such requests."""
    model: Any = Summing()
    directory = folder / "half" / "1"
    opkernel.save(
        model,
        directory,
        signatures={"serving_default": model.__call__, "of_examples": model.of_examples},
    )
    (directory / "assets.extra").mkdir()
    (directory / "assets.extra" / "tf_serving_warmup_requests").write_bytes(requests)
    return folder / "half"
