"""Versions: what a directory has, what is swapped while requests run, and what cannot be loaded."""

from __future__ import annotations

import shutil
import threading
import time
import zipfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.serving.conftest import Serve, save

import opkernel
from opkernel.serving import ModelServer, application


def predicted(client: Any, where: str = "half", **body: Any) -> Any:
    return client.post(f"/v1/models/{where}:predict", json={"instances": [0.0], **body}).json()


def states(client: Any, where: str = "half") -> dict[str, str]:
    found = client.get(f"/v1/models/{where}").json()["model_version_status"]
    return {one["version"]: one["state"] for one in found}


def test_the_status_is_as_tensorflow_serving_documents_it(client: Any) -> None:
    expected = {
        "model_version_status": [
            {
                "version": "1",
                "state": "AVAILABLE",
                "status": {"error_code": "OK", "error_message": ""},
            }
        ]
    }
    assert client.get("/v1/models/half").json() == expected
    assert client.get("/v1/models/half/versions/1").json() == expected


def test_the_metadata_is_as_tensorflow_serving_documents_it(client: Any) -> None:
    found = client.get("/v1/models/half/metadata").json()
    assert found["model_spec"] == {"name": "half", "signature_name": "", "version": "1"}
    signature = found["metadata"]["signature_def"]["signature_def"]["serving_default"]
    assert signature.keys() == {"inputs", "outputs", "method_name", "defaults"}
    assert signature["method_name"] == "tensorflow/serving/predict"
    assert signature["defaults"] == {}
    (name,) = signature["outputs"]
    shape = {"dim": [{"size": "-1", "name": ""}], "unknown_rank": False}
    for one in (signature["inputs"]["x"], signature["outputs"][name]):
        assert one.pop("name").endswith(":0")
        assert one == {"dtype": "DT_FLOAT", "tensor_shape": shape}


def test_several_models_and_the_newest_version_of_each(serve: Serve, tmp_path: Path) -> None:
    for place, scale in (("a/1", 1.0), ("a/10", 10.0), ("a/9", 9.0), ("b/2", 2.0)):
        save(tmp_path / place, scale)
    (tmp_path / "a" / "notes").mkdir()
    client = serve(tmp_path)
    assert [predicted(client, name) for name in ("a", "b")] == [{"predictions": [10.0]}, {"predictions": [2.0]}]  # fmt: skip
    assert states(client, "a") == {"10": "AVAILABLE"}


def test_versions_and_labels_that_are_asked_for(serve: Serve, tmp_path: Path) -> None:
    for number in (1, 2, 3):
        save(tmp_path / "half" / str(number), number)
    client = serve(tmp_path / "half", versions="1,2", labels={"stable": 1, "gone": 3})
    assert predicted(client) == {"predictions": [2.0]}
    assert predicted(client, "half/versions/1") == {"predictions": [1.0]}
    assert predicted(client, "half/labels/stable") == {"predictions": [1.0]}
    assert predicted(client, "half/labels/gone") == {
        "error": "Servable not found for request: Specific(half, 3)"
    }
    assert predicted(client, "half/labels/other") == {
        "error": "Unrecognized servable version label: other"
    }


def test_a_saved_model_by_itself_is_version_1(serve: Serve, tmp_path: Path) -> None:
    client = serve(save(tmp_path / "alone"))
    assert predicted(client, "alone/versions/1") == {"predictions": [3.0]}


def test_no_request_is_lost_while_versions_are_swapped(serve: Serve, tmp_path: Path) -> None:
    save(tmp_path / "half" / "1", 1)
    client: Any = serve(tmp_path / "half", max_batch=4, batch_timeout_s=0.0)
    is_over = threading.Event()

    def ask() -> list[float]:
        found = [predicted(client)["predictions"][0]]
        while not is_over.is_set():
            found.append(predicted(client)["predictions"][0])
        return [*found, predicted(client)["predictions"][0]]

    with ThreadPoolExecutor() as threads:
        asking = [threads.submit(ask) for _ in range(4)]
        try:
            for number in (2, 3, 4):
                save(tmp_path / "half" / str(number), number)
                client.server.poll()
        finally:
            is_over.set()
        for one in asking:
            found = one.result()
            assert found == sorted(found)
            assert set(found) <= {1.0, 2.0, 3.0, 4.0}
            assert found[-1] == 4.0
    assert states(client) == {"1": "END", "2": "END", "3": "END", "4": "AVAILABLE"}


def test_an_old_version_goes_when_its_last_request_is_done(serve: Serve, tmp_path: Path) -> None:
    save(tmp_path / "half" / "1", 1)
    server = serve(tmp_path / "half").server
    with server.use("half") as servable:
        save(tmp_path / "half" / "2", 2)
        server.poll()
        x = {"x": np.zeros(1, np.float32)}
        signature = servable.signature("")
        assert [*servable.run(signature, x).values()] == [1.0]
    with pytest.raises(opkernel.errors.FailedPreconditionError, match="closed"):
        servable.model.session.run([])


def test_a_damaged_version_takes_no_others_place(serve: Serve, tmp_path: Path) -> None:
    save(tmp_path / "half" / "1", 1)
    client: Any = serve(tmp_path / "half")
    damaged = tmp_path / "half" / "2"
    damaged.mkdir()
    (damaged / "saved_model.pb").write_bytes(b"\x0a\xff")
    client.server.poll()
    client.server.poll()
    assert predicted(client) == {"predictions": [1.0]}
    (status,) = client.get("/v1/models/half/versions/2").json()["model_version_status"]
    assert (status["state"], status["status"]["error_code"]) == ("END", "DATA_LOSS")
    shutil.rmtree(damaged)
    save(damaged, 2)
    client.server.poll()
    assert predicted(client) == {"predictions": [2.0]}
    shutil.rmtree(damaged)
    client.server.poll()
    assert predicted(client) == {"predictions": [1.0]}


def test_a_look_at_the_directory_that_fails_ends_no_later_ones(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from starlette.testclient import TestClient

    save(tmp_path / "half" / "1", 1)
    server = ModelServer(tmp_path / "half")
    looked, poll = threading.Event(), server.poll

    def failing_once() -> None:
        if not looked.is_set():
            looked.set()
            raise FileNotFoundError("gone")
        poll()

    monkeypatch.setattr(server, "poll", failing_once)
    with TestClient(application(server, poll_s=0.01)) as client:
        for _ in range(30_000):
            if server.versions("half"):
                break
            time.sleep(0.01)
        assert predicted(client) == {"predictions": [1.0]}
    assert looked.is_set()


def test_a_graph_model_of_tensorflow_js_is_a_version(serve: Serve, tmp_path: Path) -> None:
    sample = Path(__file__).resolve().parents[1] / "interop" / "tfjs" / "table.zip"
    with zipfile.ZipFile(sample) as archive:
        archive.extractall(tmp_path / "ids" / "3")
    client = serve(tmp_path)
    found = client.post("/v1/models/ids:predict", json={"inputs": {"words": ["b", "d"]}}).json()
    assert found == {"outputs": [21, 0]}
