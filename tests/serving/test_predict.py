"""`:predict`: what models compute, in both formats, against the models themselves and literals."""

from __future__ import annotations

import base64
import json
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.serving.conftest import Serve

import opkernel
from opkernel.serving.json_tensors import from_json

INTEROP = Path(__file__).resolve().parents[1] / "interop" / "data"
URL = "/v1/models/half:predict"
B64 = {"b64": base64.b64encode(b"\xff\x00").decode()}

ANSWERS: list[tuple[dict[str, Any], Any]] = [
    ({"instances": [1.0, 2.0, 5]}, {"predictions": [3.5, 4.0, 5.5]}),
    ({"inputs": [1.0, 2.0, 5]}, {"outputs": [3.5, 4.0, 5.5]}),
    ({"inputs": {"x": [1.0]}}, {"outputs": [3.5]}),
    ({"instances": [{"x": 1.0}, {"x": 2}]}, {"predictions": [3.5, 4.0]}),
    ({"signature_name": "", "inputs": []}, {"outputs": []}),
    ({"signature_name": "total", "inputs": [1.5, 2]}, {"outputs": 3.5}),
    (
        {"signature_name": "pair", "instances": [{"x": [1, 2], "n": 7}, {"x": [3, 4], "n": -8}]},
        {"predictions": [{"next": 8, "sum": 3.0}, {"next": -7, "sum": 7.0}]},
    ),
    (
        {"signature_name": "pair", "inputs": {"x": [[1, 2]], "n": [7, 2**62]}},
        {"outputs": {"next": [8, 2**62 + 1], "sum": [3.0]}},
    ),
    (
        {"signature_name": "echo", "instances": ["é", B64, {"b64": ""}]},
        {
            "predictions": [
                {"text": "é", "text_bytes": {"b64": "w6k="}},
                {"text": B64, "text_bytes": B64},  # no text of UTF-8
                {"text": "", "text_bytes": {"b64": ""}},
            ]
        },
    ),
    (
        {"signature_name": "echo", "inputs": {"text": ["a"]}},
        {"outputs": {"text": ["a"], "text_bytes": [{"b64": "YQ=="}]}},
    ),
]


@pytest.mark.parametrize(("body", "expected"), ANSWERS)
def test_the_answer_has_the_form_of_the_request(client: Any, body: Any, expected: Any) -> None:
    answer = client.post(URL, content=json.dumps(body))
    assert (answer.status_code, answer.json()) == (200, expected)
    assert answer.headers["content-type"] == "application/json"


def test_numbers_are_as_short_as_their_type_allows_and_may_be_no_numbers(client: Any) -> None:
    answer = client.post(URL, content='{"instances": [NaN, Infinity, -Infinity, -5.8, 1e30, 4]}')
    # float32(-5.8) / 2 + 3 is 0.0999999, which is not 0.1.
    expected = str(np.float32(-5.8) * np.float32(0.5) + np.float32(3))
    assert answer.text == f'{{"predictions": [NaN, Infinity, -Infinity, {expected}, 5e+29, 5.0]}}'


@pytest.mark.parametrize(
    ("number", "half"),
    [
        ("16777216", "8388611.0"),
        ("16777217", "8388611.0"),
        ("18446744073709551616", "9.223372e+18"),
        ("3.5e38", "Infinity"),
        ("-1.7976931348623157e308", "-Infinity"),
        ("Inf", "Infinity"),
        ("-Inf", "-Infinity"),
        ("-NaN", "NaN"),
    ],
)
def test_numbers_are_rounded_to_floats_and_large_ones_are_infinite(
    client: Any, number: str, half: str
) -> None:
    answer = client.post(URL, content=f'{{"instances": [{number}]}}')
    assert answer.text == f'{{"predictions": [{half}]}}'


def test_what_is_too_large_for_half_is_infinite() -> None:
    found = from_json([65504, 65520, 1e39, 2049], opkernel.float16)
    expected = np.array([65504, np.inf, np.inf, 2048], np.float16)
    np.testing.assert_array_equal(found, expected)


def test_integers_keep_all_digits() -> None:
    numbers = [2**63 - 1, -(2**63), 2**53 + 1]
    assert from_json(numbers, opkernel.int64).tolist() == numbers
    assert from_json([2**64 - 1], opkernel.uint64).tolist() == [2**64 - 1]


@pytest.mark.parametrize(
    "body",
    [
        '{"instances": [1.0]} and more, {"',
        ' \r\n{"instances": [1.0]}{"instances": [2.0]}',
        '{"other": [Inf, "Inf]"], "instances": [1.0]}',
        '{"other": ' + "[" * 5000 + '"]"' + "]" * 5000 + ', "instances": [1.0]}',
        '{"instances": [1.0], "other": ' + '{"a":' * 5000 + "1" + "}" * 5000 + "} more",
    ],
)
def test_what_no_request_has_does_not_count(client: Any, body: str) -> None:
    answer = client.post(URL, content=body)
    assert (answer.status_code, answer.json()) == (200, {"predictions": [3.5]})


def test_values_need_not_have_the_shape_of_the_placeholder(serve: Serve, tmp_path: Path) -> None:
    class Half(opkernel.Module):
        @opkernel.function(input_signature=[opkernel.TensorSpec([None, 1], opkernel.float32)])
        def __call__(self, x):
            return x * 0.5 + 2.0

    opkernel.save(Half(), tmp_path / "half_plus_two" / "1")
    client = serve(tmp_path / "half_plus_two")
    answer = client.post(
        "/v1/models/half_plus_two:predict", content='{"instances": [1.0, 2.0, 5.0]}'
    )
    assert answer.json() == {"predictions": [2.5, 3.0, 4.5]}


@pytest.mark.parametrize("name", ["linear", "features", "text_classifier", "transformer", "partitioned"])  # fmt: skip
def test_models_of_tensorflow_answer_as_when_they_are_called(
    name: str, serve: Serve, tmp_path: Path
) -> None:
    with zipfile.ZipFile(INTEROP / f"{name}.zip") as archive:
        archive.extractall(tmp_path / name / "3")
    signature = opkernel.load(tmp_path / name / "3").signatures["serving_default"]
    inputs = {key: _values(spec) for key, spec in signature.inputs.items()}
    expected = signature(**inputs)
    url = f"/v1/models/{name}/versions/3:predict"
    columns = {key: _json(value) for key, value in inputs.items()}
    client = serve(tmp_path / name)
    by_column = client.post(url, json={"inputs": columns}).json()["outputs"]
    rows = [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]
    by_row = client.post(url, json={"instances": rows}).json()["predictions"]
    (value,) = expected.values()
    assert np.array_equal(np.array(by_column, value.dtype), value)
    assert by_row == by_column


def _values(spec: Any) -> Any:
    """Two rows of values of a spec."""
    shape = [2, *[size or 3 for size in spec.shape.as_list()[1:]]]
    numbers = np.arange(np.prod(shape)).reshape(shape)
    if spec.dtype == opkernel.string:
        return np.vectorize(lambda n: b"word %d" % n, otypes=[object])(numbers)
    return (numbers % 2).astype(spec.dtype.as_numpy_dtype)


def _json(value: Any) -> Any:
    if value.dtype == object:
        value = np.vectorize(lambda text: text.decode(), otypes=[object])(value)
    return value.tolist()
