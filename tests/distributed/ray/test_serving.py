"""Models on Ray Serve: the answers of one machine, by several processes."""

from __future__ import annotations

import json
import socket
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.serving.conftest import save, save_reader

from opkernel import Permissions
from opkernel.distributed import serve
from opkernel.serving import ServingOptions

# Ray Serve has warnings of its own.
pytestmark = [pytest.mark.ray, pytest.mark.filterwarnings("ignore")]


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> Path:
    pytest.importorskip("starlette", reason="needs opkernel[serve]")
    directory = tmp_path_factory.mktemp("models")
    save(directory / "half" / "1")
    save_reader(directory / "reader" / "1")
    (directory.parent / "opened.txt").write_text("content")
    (directory.parent / "closed.txt").write_text("secret")
    return directory


@pytest.fixture(scope="module")
def url(models: Path, ray: object) -> Iterator[str]:
    allowed = Permissions(read=[models.parent / "opened.txt"])
    options = ServingOptions(max_batch=4, max_request_bytes=1000, permissions=allowed)
    limit, port = 1 << 20, _free_port()
    with serve(models, options, num_replicas=2, port=port, memory_limit_bytes=limit) as served:
        yield served.url


def _free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port: int = listener.getsockname()[1]
        return port


def _asked(url: str, body: Any = None) -> tuple[int, Any]:
    """The status and the answer of a request."""
    data = None if body is None else json.dumps(body).encode()
    try:
        with urllib.request.urlopen(url, data, timeout=60) as answer:
            return answer.status, json.load(answer)
    except urllib.error.HTTPError as error:
        with error:
            return error.code, json.load(error)


def test_replicas_answer_as_one_process_does(url: str) -> None:
    predict = f"{url}/v1/models/half:predict"
    for number in range(20):
        assert _asked(predict, {"instances": [number]}) == (200, {"predictions": [number / 2 + 3]})
    regress = {"signature_name": "regress", "examples": [{"x": 1.0}]}
    assert _asked(f"{url}/v1/models/half:regress", regress) == (200, {"results": [3.5]})
    (version,) = _asked(f"{url}/v1/models/half")[1]["model_version_status"]
    assert (version["version"], version["state"]) == ("1", "AVAILABLE")
    assert _asked(f"{url}/healthz") == (200, {"status": "ok", "not_served": []})


def test_wrong_requests_are_refused_by_replicas(url: str) -> None:
    predict = f"{url}/v1/models/half:predict"
    assert _asked(f"{url}/v1/models/other:predict", {"instances": [1]})[0] == 404
    assert _asked(predict, {"instances": ["a"]})[0] == 400
    assert _asked(predict, {"instances": [0] * 1000})[0] == 413
    status, told = _asked(predict, {"signature_name": "large", "inputs": [1.0]})
    assert (status, "1048576" in told["error"]) == (429, True)


def test_replicas_read_what_they_may(url: str, models: Path) -> None:
    read = f"{url}/v1/models/reader:predict"
    opened, closed = (str(models.parent / name) for name in ("opened.txt", "closed.txt"))
    assert _asked(read, {"inputs": [opened]}) == (200, {"outputs": ["content"]})
    status, told = _asked(read, {"inputs": [closed]})
    assert (status, "the graph may not" in told["error"]) == (403, True)


def test_replicas_find_new_versions(url: str, models: Path) -> None:
    made = save(models.parent / "made", 4.0)
    made.rename(models / "half" / "2")
    asked = (_asked(f"{url}/v1/models/half:predict", {"instances": [0]}) for _ in range(10_000))
    found = [answer["predictions"][0] for _, answer in _until_all_new(asked)]
    assert set(found) == {3.0, 4.0}


def _until_all_new(answers: Iterator[Any]) -> Iterator[Any]:
    """The answers until the last hundred are of the newer version."""
    new = 0
    for answer in answers:
        yield answer
        new = new + 1 if answer[1] == {"predictions": [4.0]} else 0
        if new == 100:
            return
