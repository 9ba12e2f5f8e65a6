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


def test_floats_with_values_beyond_every_integer_and_float_are_refused(client: Any) -> None:
    for value, status in (("16777215", 200), ("16777216", 400), ("3.4e38", 200), ("3.5e38", 400)):
        answer = client.post(URL, content=f'{{"instances": [{value}]}}')
        assert answer.status_code == status, value


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
