"""Requests that come at the same time run once, where that changes no answer."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from tests.serving.conftest import Serve

NEVER_S = 1000.0


def all_at_once(client: Any, bodies: list[Any]) -> list[Any]:
    """The answers to requests, each of a thread of its own; and how many rows ran at once."""
    with ThreadPoolExecutor(len(bodies)) as threads:
        return [*threads.map(lambda body: client.post("/v1/models/half:predict", json=body), bodies)]  # fmt: skip


def ran(client: Any) -> list[int]:
    """Keeps the rows of all runs from here on."""
    rows: list[int] = []
    client.server.observe = lambda name, n: rows.append(n)
    return rows


def test_sixteen_requests_run_once(serve: Serve, saved: Path) -> None:
    client = serve(saved, max_batch=16, batch_timeout_s=NEVER_S)
    rows = ran(client)
    answers = all_at_once(client, [{"instances": [n]} for n in range(16)])
    assert [one.json() for one in answers] == [{"predictions": [n / 2 + 3]} for n in range(16)]
    assert rows == [16]


def test_requests_of_several_rows_get_their_own_back(serve: Serve, saved: Path) -> None:
    client = serve(saved, max_batch=10, batch_timeout_s=NEVER_S)
    rows = ran(client)
    bodies = [
        {
            "signature_name": "pair",
            "inputs": {"x": [[size, k] for k in range(size)], "n": [size] * size},
        }
        for size in (1, 2, 3, 4)
    ]
    answers = all_at_once(client, bodies)
    assert [one.json()["outputs"] for one in answers] == [
        {"next": [size + 1] * size, "sum": [size + k for k in range(size)]} for size in (1, 2, 3, 4)
    ]
    assert rows == [10]


def test_a_bad_request_of_a_batch_harms_no_other(serve: Serve, saved: Path) -> None:
    client = serve(saved, max_batch=4, batch_timeout_s=NEVER_S)
    bodies = [{"signature_name": "finite", "instances": [n]} for n in (1, 2, 3)]
    with ThreadPoolExecutor() as threads:
        bad = '{"signature_name": "finite", "instances": [NaN]}'
        failed = threads.submit(client.post, "/v1/models/half:predict", content=bad)
        answers = all_at_once(client, bodies)
    assert [one.json() for one in answers] == [{"predictions": [n]} for n in (1.0, 2.0, 3.0)]
    assert failed.result().status_code == 400
    assert "not finite" in failed.result().json()["error"]


@pytest.mark.parametrize("name", ["twice", "total"])
def test_outputs_without_the_rows_of_the_inputs_are_computed_apart(
    name: str, serve: Serve, saved: Path
) -> None:
    client = serve(saved, max_batch=3, batch_timeout_s=NEVER_S)
    answers = all_at_once(client, [{"signature_name": name, "inputs": [n]} for n in (1.0, 2.0, 3.0)])  # fmt: skip
    expected = [n if name == "total" else [n, n] for n in (1.0, 2.0, 3.0)]
    assert [one.json()["outputs"] for one in answers] == expected


def test_a_lonely_request_waits_no_longer_than_it_is_told(serve: Serve, saved: Path) -> None:
    client = serve(saved, max_batch=16, batch_timeout_s=0.0)
    rows = ran(client)
    assert client.post("/v1/models/half:predict", json={"instances": [1]}).status_code == 200
    assert rows == [1]


def test_other_shapes_are_other_batches(serve: Serve, saved: Path) -> None:
    client = serve(saved, max_batch=2, batch_timeout_s=NEVER_S)
    rows = ran(client)
    bodies = [{"instances": [n]} for n in (1, 2)]
    wide = [{"signature_name": "pair", "inputs": {"x": [[n, n]], "n": [n]}} for n in (1, 2)]
    answers = all_at_once(client, [*bodies, *wide])
    assert {one.status_code for one in answers} == {200}
    assert rows == [2, 2]
