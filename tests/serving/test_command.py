"""`opkernel serve`: a process that serves, and what it says when it cannot."""

from __future__ import annotations

import importlib.util
import json
import os
import shutil
import socket
import subprocess
import sys
import urllib.request
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from opkernel.cli.commands import commands
from opkernel.device.permissions import Permissions
from opkernel.serving import ModelServer, ServingOptions, serve

SOURCES = Path(__file__).resolve().parents[2] / "src"


def test_a_process_serves_until_it_is_told_to_end(saved: Path, tmp_path: Path) -> None:
    served = shutil.copytree(saved, tmp_path / "half")
    command = [
        sys.executable,
        "-m",
        "opkernel",
        "serve",
        str(served),
        "--port",
        "0",
        "--max-batch",
        "4",
    ]
    process = subprocess.Popen(
        command,
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": str(SOURCES), "PYTHONUNBUFFERED": "1"},
    )
    try:
        assert process.stdout is not None
        assert process.stdout.readline() == "half version 1 LOADING\n"
        assert process.stdout.readline() == "half version 1 AVAILABLE\n"
        told, _, url = process.stdout.readline().strip().rpartition(" ")
        assert told == "serving at"
        body = json.dumps({"instances": [1, 2]}).encode()
        with urllib.request.urlopen(f"{url}/v1/models/half:predict", body) as answer:
            assert json.load(answer) == {"predictions": [3.5, 4.0]}
        shutil.copytree(saved / "1", tmp_path / "copied").rename(served / "2")
        lines = [process.stdout.readline() for _ in range(3)]
        assert lines == [
            "half version 2 LOADING\n",
            "half version 2 AVAILABLE\n",
            "half version 1 END\n",
        ]
    finally:
        process.terminate()
        process.communicate()


def ended(directory: Path, *options: str) -> subprocess.CompletedProcess[str]:
    """`opkernel serve`, which ends soon."""
    words = [sys.executable, "-m", "opkernel", "serve", str(directory), "--port", "0", *options]
    environment = {**os.environ, "PYTHONPATH": str(SOURCES)}
    return subprocess.run(
        words, capture_output=True, text=True, env=environment, timeout=100, check=False
    )


def test_a_server_ends_after_the_time_that_was_asked_for(saved: Path, tmp_path: Path) -> None:
    done = ended(shutil.copytree(saved, tmp_path / "half"), "--timeout", "1")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.endswith("half version 1 END\n")


def test_models_without_versions_are_told(saved: Path, tmp_path: Path) -> None:
    shutil.copytree(saved, tmp_path / "models" / "half")
    (tmp_path / "models" / "other" / "newest").mkdir(parents=True)
    done = ended(tmp_path / "models", "--timeout", "1")
    assert "half version 1 AVAILABLE" in done.stdout
    told = f"No versions found of other in {tmp_path / 'models'}: versions are called by numbers"
    assert done.stderr.count(told) == 1
    done = ended(tmp_path / "models" / "other", "--timeout", "1")
    assert done.returncode == 0
    assert f"{tmp_path / 'models' / 'other'} has no models" in done.stderr


@pytest.mark.parametrize(
    ("options", "told"),
    [
        (["--timeout", "-1"], "--timeout -1: expected more than 0"),
        (["--versions", "newest"], "--versions newest: expected latest, all, or numbers, as 1,3"),
        (["--label", "stable"], "--label stable: expected a name and a version, as stable=3"),
        (["--host", "no.such.address.invalid."], "--host no.such.address.invalid. --port 8501"),
    ],
)
def test_wrong_options_are_told(saved: Path, options: list[str], told: str) -> None:
    done = CliRunner().invoke(commands, ["serve", str(saved), *options])
    assert done.exit_code == 2
    assert told in done.output


def test_limits_and_permissions_reach_the_server(
    saved: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    served: list[ModelServer] = []
    monkeypatch.setattr("opkernel.serving.serve", lambda server, *_: served.append(server))
    options = ["--timeout-s=2", "--max-request-bytes=10", "--label=old=1", "--port=0"]
    allowed = [f"--allow-read={tmp_path}", f"--allow-write={tmp_path / 'out'}"]
    done = CliRunner().invoke(commands, ["serve", str(saved), *options, *allowed])
    assert done.exit_code == 0, done.output
    (server,) = served
    assert server.options == ServingOptions(
        timeout_s=2.0,
        max_request_bytes=10,
        labels={"old": 1},
        permissions=Permissions((str(tmp_path),), (str(tmp_path / "out"),)),
    )


def test_without_the_libraries_the_error_names_the_extra(
    saved: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    there = importlib.util.find_spec

    def find_spec(name: str, package: str | None = None) -> Any:
        return None if name == "uvicorn" else there(name, package)

    monkeypatch.setattr(importlib.util, "find_spec", find_spec)
    done = CliRunner().invoke(commands, ["serve", str(saved), "--port", "0"])
    assert done.exit_code == 1
    assert "needs the library uvicorn: pip install 'opkernel[serve]'" in done.output


def test_connections_do_not_wait_for_acknowledgements(
    saved: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import uvicorn

    monkeypatch.setattr(uvicorn.Server, "run", lambda self, sockets: None)
    with socket.create_server(("127.0.0.1", 0)) as listener:
        serve(ModelServer(saved), listener)
        with socket.create_connection(listener.getsockname()):
            connection, _ = listener.accept()
            with connection:
                assert connection.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY) != 0
