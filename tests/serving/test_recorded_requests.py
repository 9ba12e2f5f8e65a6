"""Requests as TensorFlow Serving's guide, its tests and its clients send them, and its answers.

The models compute what those of the guide do: `half_plus_two`, `half_plus_three`; `sensors` gives its inputs back.

Source: TensorFlow Serving g3doc/api_rest.md, g3doc/docker.md, model_servers/http_rest_api_handler_test.cc,
util/json_tensor_test.cc, example/resnet_client.py.
"""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.serving.conftest import ROWS, SERIALIZED, Serve, feature, save_with_methods

import opkernel
from opkernel import raw_ops

TAGS = opkernel.TensorSpec([None], opkernel.string, name="tag")
SIGNALS = opkernel.TensorSpec([None, 5], opkernel.float32, name="signal")
SENSORS = opkernel.TensorSpec([None, 2, 2], opkernel.int32, name="sensor")
IMAGES = opkernel.TensorSpec([None], opkernel.string, name="image_bytes")
ANY_FLOATS = opkernel.TensorSpec(None, opkernel.float32, name="x")
NUMBERS = [
    opkernel.TensorSpec([None], dtype, name=name)
    for name, dtype in (
        ("bool", opkernel.bool),
        ("int8", opkernel.int8),
        ("uint8", opkernel.uint8),
        ("int32", opkernel.int32),
        ("uint32", opkernel.uint32),
        ("int64", opkernel.int64),
        ("uint64", opkernel.uint64),
        ("float", opkernel.float32),
        ("double", opkernel.float64),
    )
]


class HalfPlus(opkernel.Module):
    """x / 2 and a number, in the signatures of TensorFlow's model."""

    def __init__(self, added: float) -> None:
        self.added = opkernel.Variable(np.float32(added))

    @opkernel.function(input_signature=[ANY_FLOATS])
    def predict(self, x):
        return {"y": x * 0.5 + self.added.value}

    @opkernel.function(input_signature=[SERIALIZED])
    def regress(self, inputs):
        return {"outputs": feature(inputs, b"x") * 0.5 + self.added.value}

    @opkernel.function(input_signature=[SERIALIZED])
    def classify(self, inputs):
        return {"scores": feature(inputs, b"x") * 0.5 + self.added.value}


class Sensors(opkernel.Module):
    """Inputs of several types, given back."""

    @opkernel.function(input_signature=[TAGS, SIGNALS, SENSORS])
    def named(self, tag, signal, sensor):
        same = raw_ops.Identity
        return {"tag": same(input=tag), "signal": signal * 1.0, "sensor": same(input=sensor)}

    @opkernel.function(input_signature=[IMAGES])
    def images(self, image_bytes):
        text = raw_ops.Identity(input=image_bytes)
        return {"text": text, "text_bytes": raw_ops.Identity(input=image_bytes)}

    @opkernel.function(input_signature=[TAGS])
    def joined(self, tag):
        return raw_ops.ReduceJoin(inputs=tag, reduction_indices=[0], separator="-")

    @opkernel.function(input_signature=NUMBERS)
    def numbers(self, *inputs):
        named = zip(NUMBERS, inputs, strict=True)
        return {spec.name: raw_ops.Identity(input=value) for spec, value in named}

    @opkernel.function(input_signature=[ROWS])
    def sums(self, x):
        return raw_ops.Sum(input=x, axis=[0, 1])


@pytest.fixture(scope="module")
def models(tmp_path_factory: Any) -> Path:
    directory: Path = tmp_path_factory.mktemp("recorded")
    methods = {
        "regress_x_to_y": "regress",
        "tensorflow/serving/regress": "regress",
        "classify_x_to_y": "classify",
    }
    for place, added in (("two/123", 2.0), ("three/1", 3.0), ("three/2", 3.0)):
        model = HalfPlus(added)
        signatures = {name: getattr(model, method) for name, method in methods.items()}
        signatures["serving_default"] = model.predict
        save_with_methods(model, directory / f"half_plus_{place}", signatures, methods)
    sensors = Sensors()
    signatures = {name: getattr(sensors, name) for name in ("images", "joined", "numbers", "sums")}
    signatures["serving_default"] = sensors.named
    opkernel.save(sensors, directory / "sensors" / "1", signatures=signatures)
    return directory


@pytest.fixture
def client(serve: Serve, models: Path) -> Any:
    return serve(models, labels={"stable": 123, "canary": 7})


TWO, THREE, SENSORS_URL = (
    f"/v1/models/{n}" for n in ("half_plus_two", "half_plus_three", "sensors")
)

ANSWERED: list[tuple[str, str, Any]] = [
    # The guide and the page on Docker.
    (f"{TWO}:predict", '{"instances": [1.0, 2.0, 5.0]}', {"predictions": [2.5, 3.0, 4.5]}),
    (f"{THREE}:predict", '{"instances": [1.0,2.0,5.0]}', {"predictions": [3.5, 4.0, 5.5]}),
    (
        f"{THREE}:regress",
        '{"signature_name": "tensorflow/serving/regress", "examples": [{"x": 1.0}, {"x": 2.0}]}',
        {"results": [3.5, 4.0]},
    ),
    # Tests of the handler.
    (f"{TWO}:predict", '{"instances": [[1.0, 2.0], [3.0, 4.0]]}', {"predictions": [[2.5, 3.0], [3.5, 4.0]]}),
    (f"{TWO}/versions/123:predict", '{"instances": [1.0, 2.0]}', {"predictions": [2.5, 3.0]}),
    (f"{TWO}/labels/stable:predict", '{"instances": [1.0, 2.0]}', {"predictions": [2.5, 3.0]}),
    ("/v1/Models/half_plus_two:PREDICT", '{"instances": [1.0]}', {"predictions": [2.5]}),
    ("/v1/models/half%5Fplus%5ftwo:predict", '{"instances": [1.0]}', {"predictions": [2.5]}),
    (
        f"{TWO}/versions/123:predict",
        '{"signature_name": "serving_default", "instances": [3.0, 4.0]}',
        {"predictions": [3.5, 4.0]},
    ),
    (
        f"{TWO}/versions/123:predict",
        '{"signature_name": "serving_default", "inputs": [3.0, 4.0]}',
        {"outputs": [3.5, 4.0]},
    ),
    (f"{TWO}:predict", '{"inputs": {"x": [3.0, 4.0]}}', {"outputs": [3.5, 4.0]}),
    (f"{TWO}:predict", '{"inputs": 3.0}', {"outputs": 3.5}),
    (f"{TWO}:predict", '{"instances": [{"x": 3.0}, {"x": 4}]}', {"predictions": [3.5, 4.0]}),
    (f"{TWO}:predict", '{"instances": [NaN, Infinity, -Infinity, 1e2]}', "[NaN, Infinity, -Infinity, 52.0]"),
    (f"{TWO}:predict", '{"instances": [17999996.0]}', {"predictions": [9e06]}),
    (f"{TWO}:predict", '\ufeff {"instances":\n\t[16777215]}\r\n', {"predictions": [8388610.0]}),
    (
        f"{TWO}:regress",
        '{"signature_name": "regress_x_to_y", "examples": [ { "x": 80.0 } ] }',
        {"results": [42.0]},
    ),
    (
        f"{TWO}/versions/123:regress",
        '{"signature_name": "regress_x_to_y", "context": {"x": 80.0}, "examples": [{}, {"x": [10.0]}]}',
        {"results": [42.0, 7.0]},
    ),
    (
        f"{TWO}:classify",
        '{"signature_name": "classify_x_to_y", "examples": [ { "x": 20.0 } ] }',
        {"results": [[["", 12.0]]]},
    ),
    (
        f"{TWO}/versions/123:classify",
        '{"signature_name": "classify_x_to_y", "examples": [ { "x": 10.0 }, { "x": NaN } ] }',
        '[[["", 7.0]], [["", NaN]]]',
    ),
    # Named tensors of the guide, in rows and in columns.
    (
        f"{SENSORS_URL}:predict",
        """{"instances": [
            {"tag": "foo", "signal": [1, 2, 3, 4, 5], "sensor": [[1, 2], [3, 4]]},
            {"tag": "bar", "signal": [3, 4, 1, 2, 5], "sensor": [[4, 5], [6, 8]]}
        ]}""",
        {
            "predictions": [
                {"sensor": [[1, 2], [3, 4]], "signal": [1.0, 2.0, 3.0, 4.0, 5.0], "tag": "foo"},
                {"sensor": [[4, 5], [6, 8]], "signal": [3.0, 4.0, 1.0, 2.0, 5.0], "tag": "bar"},
            ]
        },
    ),
    (
        f"{SENSORS_URL}:predict",
        """{"inputs": {
            "tag": ["foo", "bar"],
            "signal": [[1, 2, 3, 4, 5], [3, 4, 1, 2, 5]],
            "sensor": [[[1, 2], [3, 4]], [[4, 5], [6, 8]]]
        }}""",
        {
            "outputs": {
                "sensor": [[[1, 2], [3, 4]], [[4, 5], [6, 8]]],
                "signal": [[1.0, 2.0, 3.0, 4.0, 5.0], [3.0, 4.0, 1.0, 2.0, 5.0]],
                "tag": ["foo", "bar"],
            }
        },
    ),
    # Bytes: what the client of ResNet sends, and the guide's.
    (
        f"{SENSORS_URL}:predict",
        '{"signature_name": "images", "instances" : [{"b64": "aGVsbG8="}, {"b64": "d29ybGQ="}]}',
        {
            "predictions": [
                {"text": "hello", "text_bytes": {"b64": "aGVsbG8="}},
                {"text": "world", "text_bytes": {"b64": "d29ybGQ="}},
            ]
        },
    ),
    (
        f"{SENSORS_URL}:predict",
        '{"signature_name": "images", "instances": [{"image_bytes": {"b64": "aGVsbG8"}}, {"image_bytes": "\\u00e9"}]}',
        {
            "predictions": [
                {"text": "hello", "text_bytes": {"b64": "aGVsbG8="}},
                {"text": "é", "text_bytes": {"b64": "w6k="}},
            ]
        },
    ),
    (
        f"{SENSORS_URL}:predict",
        '{"signature_name": "joined", "inputs": {"tag": ["foo", "bar"]}}',
        {"outputs": "foo-bar"},
    ),
    (
        f"{SENSORS_URL}:predict",
        """{"signature_name": "numbers", "inputs": {"bool": [true], "int8": [-128], "uint8": [255], "int32": [-2147483648],
        "uint32": [4294967295], "int64": [-9223372036854775808], "uint64": [18446744073709551615], "float": [0.1],
        "double": [0.1]}}""",
        {
            "outputs": {
                "bool": [True],
                "double": [0.1],
                "float": [0.1],
                "int32": [-(2**31)],
                "int64": [-(2**63)],
                "int8": [-128],
                "uint32": [2**32 - 1],
                "uint64": [2**64 - 1],
                "uint8": [255],
            }
        },
    ),
]  # fmt: skip


@pytest.mark.parametrize(("path", "body", "expected"), ANSWERED)
def test_what_is_answered(client: Any, path: str, body: str, expected: Any) -> None:
    answer = client.post(path, content=body.encode())
    assert answer.status_code == 200, answer.text
    assert answer.headers["content-type"] == "application/json"
    if isinstance(expected, str):  # it has what equals nothing
        assert expected in answer.text
    else:
        assert answer.json() == expected


REFUSED: list[tuple[str, str, str, int, str]] = [
    ("POST", "/v1/models/half:predict", '{"instances": [1.0,5.0]}', 404, "Servable not found for request: Latest(half)"),
    ("POST", f"{TWO}/versions/99:predict", '{"instances": [1]}', 404, "Servable not found for request: Specific(half_plus_two, 99)"),
    ("POST", f"{TWO}/labels/canary:predict", '{"instances": [1]}', 404, "Servable not found for request: Specific(half_plus_two, 7)"),
    ("POST", f"{TWO}99:predict", '{"instances": [1]}', 404, "Servable not found for request: Latest(half_plus_two99)"),
    ("GET", "/v1/models/half", "", 404, "Could not find any versions of model half"),
    ("GET", "/v1/models/half/metadata", "", 404, "Servable not found for request: Latest(half)"),
    ("GET", "/v1/foo", "", 400, "Malformed request: GET /v1/foo"),
    ("POST", "/v1/foo", "", 400, "Malformed request: POST /v1/foo"),
    ("GET", "/v1/models", "", 400, "Missing model name in request."),
    ("POST", "/v1/models", "", 400, "Malformed request: POST /v1/models"),
    ("GET", f"{TWO}:predict", "", 400, "Malformed request: GET /v1/models/half_plus_two:predict"),
    ("PUT", f"{TWO}:predict", "", 400, "Malformed request: PUT /v1/models/half_plus_two:predict"),
    ("POST", f"{TWO}/metadata", "", 400, "Malformed request: POST /v1/models/half_plus_two/metadata"),
    ("GET", "/v1/models/foo/version/50:predict", "", 400, "Malformed request: GET /v1/models/foo/version/50:predict"),
    ("POST", "/v1/models/foo/version/50:regress", "", 400, "Malformed request: POST /v1/models/foo/version/50:regress"),
    ("POST", "/v1/models/foo/versions/HELLO:regress", "", 400, "Malformed request: POST /v1/models/foo/versions/HELLO:regress"),
    ("POST", "/v1/models/foo/versions/18446744073709551615:regress", "", 400, "Failed to convert version: 18446744073709551615 to numeric."),
    ("POST", f"{TWO}:predict", "", 400, "JSON Parse error: The document is empty"),
    ("POST", f"{TWO}:predict", "instances = [1, 2]", 400, "JSON Parse error: "),
    ("POST", f"{TWO}:predict", '{"instances": [1, 2]', 400, "JSON Parse error: "),
    ("POST", f"{TWO}:predict", '{"instances": [1e400]}', 400, "Number too big to be stored in double"),
    ("POST", f"{TWO}:predict", '{"instances": [-1e400]}', 400, "Number too big to be stored in double"),
    ("POST", f"{TWO}/labels/none:predict", '{"instances": [1]}', 400, "Unrecognized servable version label: none"),
    ("POST", f"{TWO}:predict", "[1, 2]", 400, "object"),
    ("POST", f"{TWO}:predict", "{}", 400, "Missing 'inputs' or 'instances' key"),
    ("POST", f"{TWO}:predict", '{"signature_name": 5, "instances": [1]}', 400, "must be a string value"),
    ("POST", f"{TWO}:predict", '{"signature_name": "foo", "instances": [1]}', 400, 'Serving signature name: "foo" not found in signature def'),
    ("POST", f"{TWO}:predict", '{"instances": [1], "inputs": [1]}', 400, "only one of 'inputs' or 'instances' keys to exist"),
    ("POST", f"{TWO}:predict", '{"instances": ["1"]}', 400, 'JSON Value: "1" Type: String is not of expected type: float'),
    ("POST", f"{TWO}:predict", '{"instances": [true]}', 400, "JSON Value: true Type: True is not of expected type: float"),
    ("POST", f"{TWO}:predict", '{"instances": [{"b64": "aGVsbG8="}]}', 400, "Type: Object is not of expected type: float"),
    ("POST", f"{TWO}:predict", '{"instances": [[1, 2], [3, 4], [5, 6, 7]]}', 400, "unexpected size"),
    ("POST", f"{TWO}:predict", '{"instances": [{"y": 1}]}', 400, "keys must be equal to: x"),
    ("POST", f"{TWO}:predict", '{"inputs": {"y": 1}}', 400, "Missing named input: x in 'inputs' object."),
    ("POST", f"{TWO}:regress", '{"examples": [{"x": 1.0}]}', 400, "Expected the one input 'inputs'"),
    ("POST", f"{TWO}:classify", '{"signature_name": "classify_x_to_y"}', 400, "'examples'"),
    ("POST", f"{TWO}:classify", '{"signature_name": "classify_x_to_y", "examples": []}', 400, "'examples' value is an empty array"),
    ("POST", f"{TWO}:classify", '{"signature_name": "classify_x_to_y", "examples": [{"x": 1e400}]}', 400, "x"),
    ("POST", f"{SENSORS_URL}:predict", '{"instances": [1]}', 400, "expected"),
    ("POST", f"{SENSORS_URL}:predict", '{"inputs": [1]}', 400, "expected"),
    ("POST", f"{SENSORS_URL}:predict", '{"signature_name": "images", "instances": [{"b64": "**"}]}', 400, "Unable to base64 decode"),
    ("POST", f"{SENSORS_URL}:predict", '{"signature_name": "sums", "instances": [[1, 2]]}', 400, "has no shape information"),
    ("GET", "/statuspage", "", 404, ""),
]  # fmt: skip


@pytest.mark.parametrize(("method", "path", "body", "status", "told"), REFUSED)
def test_what_is_refused(
    client: Any, method: str, path: str, body: str, status: int, told: str
) -> None:
    answer = client.request(method, path, content=body.encode())
    assert (answer.status_code, answer.headers["content-type"]) == (status, "application/json")
    assert answer.json().keys() == {"error"}
    assert told in answer.json()["error"]


def test_the_state_of_a_model_and_its_signatures(client: Any) -> None:
    available = {
        "model_version_status": [
            {
                "version": "123",
                "state": "AVAILABLE",
                "status": {"error_code": "OK", "error_message": ""},
            }
        ]
    }
    for path in (TWO, f"{TWO}/versions/123", f"{TWO}/labels/stable"):
        assert client.get(path).json() == available
    for path in (f"{TWO}/metadata", f"{TWO}/versions/123/metadata"):
        found = client.get(path).json()
        assert found["model_spec"] == {
            "name": "half_plus_two",
            "signature_name": "",
            "version": "123",
        }
        signatures = found["metadata"]["signature_def"]["signature_def"]
        assert signatures["regress_x_to_y"]["method_name"] == "tensorflow/serving/regress"
        predict = signatures["serving_default"]
        assert predict["method_name"] == "tensorflow/serving/predict"
        assert predict["inputs"]["x"] == {
            "dtype": "DT_FLOAT",
            "tensor_shape": {"dim": [], "unknown_rank": True},
            "name": "serving_default_x:0",
        }
        assert predict["outputs"].keys() == {"y"}


PREDICT = b'{"instances": [1.0, 2.0, 5.0]}'
PREDICTED = {"predictions": [2.5, 3.0, 4.5]}


@pytest.mark.parametrize(
    "content_type", ["application/json", "application/x-www-form-urlencoded", "text/plain"]
)
def test_the_type_of_the_body_does_not_matter(client: Any, content_type: str) -> None:
    """Curl, as the guide calls it, says that it sends a form."""
    answer = client.post(f"{TWO}:predict", content=PREDICT, headers={"content-type": content_type})
    assert answer.json() == PREDICTED


def test_a_body_may_come_in_parts(client: Any) -> None:
    def parts() -> Iterator[bytes]:
        yield from (PREDICT[:5], b"", PREDICT[5:])

    assert client.post(f"{TWO}:predict", content=parts()).json() == PREDICTED


def test_a_body_may_be_compressed(client: Any, serve: Serve, models: Path) -> None:
    headers = {"content-encoding": "gzip"}
    answer = client.post(f"{TWO}:predict", content=gzip.compress(PREDICT), headers=headers)
    assert answer.json() == PREDICTED
    for damaged in (PREDICT, gzip.compress(PREDICT)[:-9], gzip.compress(PREDICT) + b"more"):
        answer = client.post(f"{TWO}:predict", content=damaged, headers=headers)
        assert (answer.status_code, answer.json().keys()) == (400, {"error"})
    bomb = gzip.compress(b" " * 100_000)
    limited = serve(models, max_request_bytes=1000)
    answer = limited.post(f"{TWO}:predict", content=bomb, headers=headers)
    assert answer.status_code == 413
    answer = client.post(f"{TWO}:predict", content=PREDICT, headers={"content-encoding": "br"})
    assert (answer.status_code, "br" in json.loads(answer.text)["error"]) == (415, True)
