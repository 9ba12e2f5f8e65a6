"""A crash at any moment of a save leaves the old SavedModel or the new one, whole."""

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import opkernel

ROOT = Path(__file__).resolve().parent.parent.parent

# Each child of the process saves, and ends at another one of its steps on files; one lives to the end.
SCRIPT = """
import os, sys
import numpy as np
import opkernel

class Constant(opkernel.Module):
    def __init__(self, value):
        self.value = opkernel.Variable(np.full((100,), value, np.float32))
        self.again = opkernel.Variable(np.full((3,), value, np.float32))

STEPS = ("open", "os.mkdir", "os.rename", "os.remove", "os.rmdir", "os.chmod", "os.listdir", "ctypes.dlsym", "shutil.rmtree")
path = sys.argv[1]
opkernel.save(Constant(0), path)
opkernel.load(path).value.numpy()
for last in range(1, 1000):
    process = os.fork()
    if process == 0:
        left = last
        def count(event, arguments):
            global left
            if event in STEPS:
                left -= 1
                if left == 0:
                    os._exit(9)
        model = Constant(last)
        sys.addaudithook(count)
        opkernel.save(model, path)
        os._exit(0)
    status = os.waitstatus_to_exitcode(os.waitpid(process, 0)[1])
    loaded = opkernel.load(path)
    value = {*loaded.value.numpy().tolist(), *loaded.again.numpy().tolist()}
    assert len(value) == 1, value
    print(last, int(*value), status, flush=True)
    if status == 0:
        break
    assert status == 9, status
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="the system makes no processes by fork")
def test_a_crash_leaves_the_old_or_the_new_one(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT, str(tmp_path / "model")],
        env={**os.environ, "PYTHONPATH": str(ROOT / "src")},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    runs = [tuple(map(int, line.split())) for line in done.stdout.splitlines()]
    assert len(runs) > 10
    previous = 0
    for last, value, _ in runs:
        assert value in (previous, last)
        previous = value
    assert runs[-1][1:] == (len(runs), 0)  # the last save was not disturbed


@pytest.mark.parametrize("where", ["_flush", "_put_in_place"])
def test_an_error_at_the_end_leaves_the_old_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, where: str
) -> None:
    from opkernel.interop import saving

    def fail(*_: object) -> None:
        raise OSError(28, "No space left on device")

    module: Any = opkernel.Module()
    module.value = opkernel.Variable(1.0)
    opkernel.save(module, tmp_path / "model")
    module.value.assign(2.0)
    with monkeypatch.context() as patch:
        patch.setattr(saving, where, fail)
        with pytest.raises(opkernel.errors.ResourceExhaustedError, match="No space left"):
            opkernel.save(module, tmp_path / "model")
    assert os.listdir(tmp_path) == ["model"]
    loaded: Any = opkernel.load(tmp_path / "model")
    assert float(loaded.value) == 1
