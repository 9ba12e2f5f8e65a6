"""The command as a process: what only the operating system can tell."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from tests.cli.conftest import SOURCES, Process
from tests.cli.test_run import ENDLESS

ENVIRONMENT = {**os.environ, "PYTHONPATH": str(SOURCES)}


def test_run(process: Process, model: Path, tmp_path: Path):
    done = process(
        "run", model, "--input", "x=[[1,2,3]]", "--fetch", "x_out", "--json",
        "--output", tmp_path / "r.npz",
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (0, "")
    assert json.loads(done.stdout)["x_out:0"]["value"] == [[1.0, 2.0, 3.0]]
    with np.load(tmp_path / "r.npz") as results:
        assert results["x_out:0"].tolist() == [[1.0, 2.0, 3.0]]


@pytest.mark.parametrize(
    ("arguments", "status"),
    [(["show", "{model}"], 0), (["run", "{model}"], 1), (["run"], 2), (["nope"], 2), (["-h"], 0)],
)
def test_exit_status(process: Process, model: Path, arguments: list[str], status: int):
    done = process(*(argument.format(model=model) for argument in arguments))
    assert done.returncode == status
    assert ("Error: " in done.stderr) == (status != 0)
    assert "Traceback" not in done.stderr
    assert bool(done.stdout) == (status == 0)


def test_version(process: Process):
    done = process("--version")
    assert done.returncode == 0
    assert done.stdout.startswith("opkernel, version ")


def test_a_closed_pipe_is_silent(model: Path):
    with subprocess.Popen(
        [sys.executable, "-m", "opkernel", "kernels"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=ENVIRONMENT,
    ) as running:
        assert running.stdout is not None
        assert running.stderr is not None
        running.stdout.close()
        assert running.stderr.read() == b""


@pytest.mark.skipif(
    signal.getsignal(signal.SIGINT) is not signal.default_int_handler,
    reason="Ctrl-C is not handled here, and would not be in a process started from here",
)
def test_ctrl_c_is_silent(text_model: Callable[[str], Path], tmp_path: Path):
    library = tmp_path / "says_when_it_is_loaded.py"
    library.write_text("print('loaded', flush=True)")
    command = ["run", str(text_model(ENDLESS)), "--library", str(library), "--timeout", "600"]
    with subprocess.Popen(
        [sys.executable, "-m", "opkernel", *command],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=ENVIRONMENT,
    ) as running:
        assert running.stdout is not None
        assert running.stdout.readline() == b"loaded\n"
        running.send_signal(signal.SIGINT)
        _, message = running.communicate()
    assert running.returncode == 130
    assert message == b""


def test_running_loads_no_terminal_library(model: Path):
    script = (
        "import sys\n"
        "from opkernel.cli.commands import commands\n"
        f"commands(['run', {str(model)!r}, '--input', 'x=[[1,2,3]]', '--fetch', 'x_out'],"
        " standalone_mode=False)\n"
        "heavy = {'scipy', 'google.protobuf.text_format'}\n"
        "print(sorted(heavy & set(sys.modules)))"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True, env=ENVIRONMENT
    )
    assert done.stdout.splitlines()[-1] == "[]"
