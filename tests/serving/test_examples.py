"""`:classify` and `:regress`: examples in JSON become `tf.Example`s."""

from __future__ import annotations

from typing import Any

import pytest


def regress(client: Any, **body: Any) -> Any:
    return client.post("/v1/models/half:regress", json={"signature_name": "regress", **body})


def test_regress_gives_a_value_for_each_example(client: Any) -> None:
    answer = regress(client, examples=[{"x": 1.0}, {"x": [2.0], "times": 3.0}])
    assert answer.json() == {"results": [3.5, 6.0]}


def test_the_context_is_part_of_each_example_and_the_example_wins(client: Any) -> None:
    answer = regress(client, context={"times": 2.0}, examples=[{"x": 1.0}, {"x": 1.0, "times": 4.0}])  # fmt: skip
    assert answer.json() == {"results": [4.0, 5.0]}


def test_classify_gives_labels_with_scores(client: Any) -> None:
    body = {"signature_name": "classify", "examples": [{"x": 1.0}, {"x": 2.5}]}
    answer = client.post("/v1/models/half/versions/1:classify", json=body)
    assert answer.json() == {
        "results": [[["1.0", 1.0], ["2.0", 2.0]], [["2.5", 2.5], ["5.0", 5.0]]]
    }


@pytest.mark.parametrize(
    ("body", "told"),
    [
        ({}, "'examples'"),
        ({"examples": []}, "empty"),
        ({"examples": [1]}, "JSON object"),
        ({"examples": [{"x": 1.0}], "context": []}, "JSON object"),
        ({"examples": [{"x": None}]}, "Feature: x"),
        ({"examples": [{"x": [1.0, "a"]}]}, "Feature: x"),
        ({"examples": [{"x": {"b65": ""}}]}, "base64"),
        ({"examples": [{"x": 2**63}]}, "beyond int64"),
        ({"examples": [{"x": 1e39}]}, "beyond float"),
        ({"examples": [{"x": "text"}]}, "x"),
        ({"examples": [{"y": 1.0}]}, "x"),
        ({"examples": [{"x": 1.0}], "signature_name": "classify"}, "Expected the output 'outputs'"),
    ],
)
def test_wrong_examples_are_told(client: Any, body: Any, told: str) -> None:
    answer = regress(client, **body)
    assert answer.status_code == 400
    assert told in answer.json()["error"]
