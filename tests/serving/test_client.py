"""`Client`, by REST and by gRPC, against a process that serves both."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from opkernel.errors import (
    Code,
    DeadlineExceededError,
    InvalidArgumentError,
    NotFoundError,
    UnavailableError,
)
from opkernel.serving import Client

SOURCES = Path(__file__).resolve().parents[2] / "src"


@pytest.fixture(scope="module")
def targets(saved: Path) -> Iterator[dict[str, str]]:
    """Where a process answers by REST and by gRPC."""
    pytest.importorskip("grpc")
    words = ["serve", str(saved), "--port", "0", "--grpc-port", "0", "--label", "old=1"]
    process = subprocess.Popen(
        [sys.executable, "-m", "opkernel", *words],
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": str(SOURCES), "PYTHONUNBUFFERED": "1"},
    )
    try:
        assert process.stdout is not None
        lines = [process.stdout.readline().split() for _ in range(4)]
        yield {"rest": lines[2][-1], "grpc": lines[3][-1]}
    finally:
        process.terminate()
        process.communicate()


@pytest.fixture(params=["rest", "grpc"])
def client(targets: dict[str, str], request: pytest.FixtureRequest) -> Iterator[Client]:
    with Client(targets[request.param], retries=0) as client:
        yield client


def test_arrays_go_in_and_out(client):
    found = client.predict("half", [1, 2, 5])
    (values,) = found.values()
    assert values.dtype == np.float32
    np.testing.assert_array_equal(values, [3.5, 4.0, 5.5])


def test_several_inputs_and_outputs(client):
    inputs = {"x": np.array([[1, 2], [3, 4]]), "n": [2**62 + 1, -(2**63)]}
    found = client.predict("half", inputs, signature_name="pair")
    assert {name: one.dtype for name, one in found.items()} == {"sum": "float32", "next": "int64"}
    assert found["next"].tolist() == [2**62 + 2, -(2**63) + 1]
    assert found["sum"].tolist() == [3, 7]
    only = client.predict("half", inputs, signature_name="pair", outputs=["sum"])
    assert only.keys() == {"sum"}


def test_bytes_and_text(client):
    texts = np.array([b"\xff\x00", "ä".encode(), b"", b"text"], object)
    found = client.predict("half", {"text": texts}, signature_name="echo")
    for name in ("text", "text_bytes"):
        assert found[name].tolist() == texts.tolist()
    assert client.predict("half", {"text": ["ä"]}, signature_name="echo")["text"].tolist() == [
        "ä".encode()
    ]


def test_values_that_are_no_numbers_and_other_shapes(client):
    values = np.array([[np.nan, np.inf], [-np.inf, 16777217]])
    (found,) = client.predict("half", values).values()
    np.testing.assert_array_equal(found, values.astype(np.float32) * np.float32(0.5) + 3)
    (scalar,) = client.predict("half", 1.0).values()
    assert scalar.shape == ()
    assert scalar == 3.5


def test_signatures_and_statuses(client):
    found = client.signatures("half")
    assert {"serving_default", "pair", "regress"} <= found.keys()
    assert found["pair"].inputs["n"].dtype == 9
    assert client.statuses("half") == [(1, "AVAILABLE", Code.OK, "")]


def test_a_version_may_be_asked_for(client):
    assert client.predict("half", [1.0], version=1).keys() == {"output_0"}
    assert client.predict("half", [1.0], label="old").keys() == {"output_0"}
    with pytest.raises(NotFoundError, match="Specific\\(half, 2\\)"):
        client.predict("half", [1.0], version=2)
    with pytest.raises(InvalidArgumentError, match="Unrecognized servable version label: new"):
        client.predict("half", [1.0], label="new")


def test_wrong_calls_are_told(client):
    with pytest.raises(NotFoundError, match="Latest\\(other\\)"):
        client.predict("other", [1.0])
    with pytest.raises(InvalidArgumentError, match=r"'pairs' not found; .*perhaps you mean pair"):
        client.predict("half", [1.0], signature_name="pairs")
    with pytest.raises(InvalidArgumentError, match="n"):
        client.predict("half", {"x": [[1, 2]]}, signature_name="pair")
    with pytest.raises(InvalidArgumentError, match="no tensor: could not convert"):
        client.predict("half", ["text"])
    inputs = {"x": [[1, 2]], "n": [1]}
    for _ in range(2):  # what was asked for in vain is not looked for in the next call
        with pytest.raises(InvalidArgumentError, match="no output 'summ'; perhaps you mean sum"):
            client.predict("half", inputs, signature_name="pair", outputs=["summ"])
        assert client.predict("half", inputs, signature_name="pair").keys() == {"sum", "next"}
    with pytest.raises(InvalidArgumentError, match="not finite"):
        client.predict("half", [np.nan], signature_name="finite")


def test_a_call_has_its_time(client):
    with pytest.raises(DeadlineExceededError):
        client.predict("half", [0.0], signature_name="endless", timeout_s=0.5)
    assert client.predict("half", [1.0])["output_0"] == 3.5


@pytest.mark.parametrize("target", ["http://127.0.0.1:9", "127.0.0.1:9"])
def test_a_server_that_is_not_there(target):
    if ":/" not in target:
        pytest.importorskip("grpc")
    with Client(target, retries=1, timeout_s=5) as client, pytest.raises(UnavailableError):
        client.predict("half", [1.0])
