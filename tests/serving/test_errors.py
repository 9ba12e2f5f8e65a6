"""Requests that are wrong, too large, too slow or too much: each gets its status, and nothing else is lost."""

from __future__ import annotations

import asyncio
import json
import time
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.serving.conftest import Serve, save_reader

import opkernel
from opkernel.device.budget import Budget
from opkernel.kernel import under_budget
from opkernel.serving import ModelServer, answer, model_request

URL = "/v1/models/half:predict"

WRONG: list[tuple[bytes, str]] = [
    (b"", "JSON Parse error: The document is empty"),
    (b"{", "JSON Parse error"),
    (b"\xff", "JSON Parse error"),
    (b"[" * 100_000, "JSON Parse error"),
    (b'{"instances": [' + b"1" * 5000 + b"]}", "JSON Parse error"),
    (b"[]", "has to be an object"),
    (b"{}", "Missing 'inputs' or 'instances' key"),
    (b'{"instances": [1], "inputs": [1]}', "only one of"),
    (b'{"instances": 1}', "to be a list/array"),
    (b'{"instances": []}', "No values in 'instances'"),
    (b'{"instances": ["a"]}', '"a" Type: String is not of expected type: float'),
    (b'{"instances": [true]}', "true Type: True is not of expected type: float"),
    (b'{"instances": [null]}', "null Type: Null is not of expected type: float"),
    (b'{"instances": [1, [2]]}', "unexpected level"),
    (b'{"instances": [[1], 2]}', "incorrect level"),
    (b'{"instances": [[1, 2], [3]]}', "unexpected size: 1"),
    (b'{"inputs": ' + b"[" * 70 + b"]" * 70 + b"}", "deeper than 32"),
    (b'{"instances": [1], "signature_name": 1}', "'signature_name' key must be a string"),
    (b'{"instances": [1], "signature_name": "no"}', '"no" not found in signature def'),
    (b'{"instances": [{"y": 1}]}', "keys must be equal to: x"),
    (b'{"instances": [{"x": 1}, 2]}', "got list at item 1"),
    (b'{"instances": [1, {"x": 2}]}', "got object at item 1"),
    (b'{"inputs": {"y": 1}}', "Missing named input: x"),
    (b'{"instances": [1], "signature_name": "pair"}', "2 inputs"),
    (
        b'{"inputs": {"x": [[1, 2]], "n": [1.5]}, "signature_name": "pair"}',
        "1.5 Type: Number is not of expected type: int64",
    ),
    (b'{"inputs": {"x": [[1, 2]], "n": [9223372036854775808]}, "signature_name": "pair"}', "int64"),
    (b'{"instances": [{"b64": "*"}], "signature_name": "echo"}', "Unable to base64 decode"),
    (b'{"instances": ["\\ud800"], "signature_name": "echo"}', "no text of Unicode"),
    (b'{"instances": [1], "signature_name": "total"}', "has no rows"),
]


@pytest.mark.parametrize(("body", "told"), WRONG)
def test_a_wrong_body_is_told(client: Any, body: bytes, told: str) -> None:
    answer = client.post(URL, content=body)
    assert answer.status_code == 400
    assert told in answer.json()["error"]


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [
        ("GET", "/v1/models/other", 404),
        ("GET", "/v1/models/other/metadata", 404),
        ("POST", "/v1/models/other:predict", 404),
        ("POST", "/v1/models/half/versions/2:predict", 404),
        ("POST", f"/v1/models/half/versions/{'9' * 5000}:predict", 400),
        ("GET", "/v1/models/half/versions/x", 400),
        ("GET", URL, 400),
        ("POST", "/v1/models/half", 400),
        ("POST", "/v1/models/half:explain", 400),
        ("DELETE", "/v1/models/half", 400),
        ("GET", "/nowhere", 404),
        ("POST", "/healthz", 405),
    ],
)
def test_a_wrong_path_is_told(client: Any, method: str, path: str, status: int) -> None:
    answer = client.request(method, path)
    assert answer.status_code == status
    assert answer.json().keys() == {"error"}


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(
            st.sampled_from(["x", "n", "b64", "text", "a"]) | st.text(max_size=3), inner, max_size=3
        )
    ),
    max_leaves=10,
)
SIGNATURE = st.sampled_from(["serving_default", "pair", "echo", "regress", "classify", "finite"])
BODIES = st.fixed_dictionaries(
    {},
    optional={
        "instances": JSON,
        "inputs": JSON,
        "examples": JSON,
        "context": JSON,
        "signature_name": SIGNATURE | JSON,
    },
).map(lambda body: json.dumps(body).encode()) | st.binary(max_size=20)
PARTS = st.sampled_from(["/v1", "/models", "/half", "/versions", "/1", "/labels", ":predict", "/metadata", ":classify", "%00", "//", ".."])  # fmt: skip
PATHS = st.sampled_from([URL, "/v1/models/half:classify", "/v1/models/half:regress"]) | st.lists(PARTS | st.text(st.characters(codec="ascii", exclude_categories=["Cc"]), max_size=4), max_size=6).map(lambda parts: "/" + "".join(parts))  # fmt: skip


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=300)
@given(st.sampled_from(["GET", "POST", "PUT"]), PATHS, BODIES)
def test_no_request_is_the_servers_fault(client: Any, method: str, path: str, body: bytes) -> None:
    try:
        answer = client.request(method, f"http://testserver{path}", content=body)
    except ValueError:  # the client takes no such path, or one of another host
        return
    assert answer.status_code < 500, answer.text
    if answer.status_code >= 400:
        assert answer.json().keys() == {"error"}
    assert client.post(URL, json={"instances": [1]}).json() == {"predictions": [3.5]}


def test_a_request_that_is_too_large(serve: Serve, saved: Path) -> None:
    client = serve(saved, max_request_bytes=20)
    assert client.post(URL, content=b'{"instances": [1.0]}').status_code == 200
    answer = client.post(URL, content=b'{"instances": [1.00]}')
    assert (answer.status_code, answer.json()) == (413, {"error": "The request is larger than 20 bytes"})  # fmt: skip


@pytest.mark.parametrize(("message", "status"), [(None, 408), ({"type": "http.disconnect"}, 400)])
def test_a_body_that_does_not_come(message: Any, status: int) -> None:
    from starlette.exceptions import HTTPException
    from starlette.requests import Request

    from opkernel.serving.asgi_application import received_body

    async def receive() -> Any:
        if message is None:
            await asyncio.Event().wait()
        return message

    request = Request({"type": "http", "headers": []}, receive)
    with pytest.raises(HTTPException) as caught:
        asyncio.run(received_body(request, 10, 0.01))
    assert caught.value.status_code == status


def test_a_request_that_takes_too_long_is_given_up(serve: Serve, saved: Path) -> None:
    client = serve(saved, timeout_s=0.5)
    answer = client.post(URL, json={"signature_name": "endless", "instances": [1.0]})
    assert answer.status_code == 504
    assert "Timed out" in answer.json()["error"]


def test_a_step_that_nobody_waits_for_stops(saved: Path) -> None:
    server = ModelServer(saved)
    server.poll()
    body = b'{"signature_name": "endless", "instances": [1.0]}'
    with (
        under_budget(Budget(deadline=time.monotonic() + 0.2)),
        pytest.raises(opkernel.errors.DeadlineExceededError),
    ):
        answer(server, model_request("POST", URL), body)


def test_a_model_that_takes_too_much_memory(serve: Serve, saved: Path) -> None:
    with under_budget(Budget(1 << 20)):
        client = serve(saved)
    answer = client.post(URL, json={"signature_name": "large", "inputs": [1.0]})
    assert answer.status_code == 429
    assert "1048576" in answer.json()["error"]
    assert client.post(URL, json={"instances": [1]}).status_code == 200


def test_a_model_reads_the_files_that_are_open(serve: Serve, tmp_path: Path) -> None:
    save_reader(tmp_path / "half" / "1")
    for name in ("open", "closed"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "text").write_text(name)
    client = serve(tmp_path / "half", permissions=opkernel.Permissions(read=[tmp_path / "open"]))
    assert client.post(URL, json={"inputs": [f"{tmp_path}/open/text"]}).json() == {
        "outputs": ["open"]
    }
    answer = client.post(URL, json={"inputs": [f"{tmp_path}/open/../closed/text"]})
    assert answer.status_code == 403
    assert "may not read this file" in answer.json()["error"]


def test_what_is_beside_the_models(client: Any, serve: Serve, tmp_path: Path) -> None:
    client.post(URL, json={"instances": [1]})
    client.post(URL, json={})
    assert client.get("/healthz").json() == {"status": "ok", "not_served": []}
    metrics = client.get("/metrics").text
    assert 'opkernel_requests_total{method="predict",model="half",status="200"} 1.0' in metrics
    assert 'opkernel_requests_total{method="predict",model="half",status="400"} 1.0' in metrics
    (model,) = client.get("/overview").json()["models"]
    assert (model["name"], model["latencies"]["requests"]) == ("half", 1)
    assert "half_plus" not in model["signatures"]
    page = client.get("/")
    assert page.headers["content-type"].startswith("text/html")
    assert "http" not in page.text.replace("http-equiv", ""), "the page asks no other host"
    assert serve(tmp_path).get("/healthz").status_code == 503
