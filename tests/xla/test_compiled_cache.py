"""Programs that are kept on disk for other processes."""

import os
import subprocess
import sys

import numpy as np
import pytest

import opkernel
from opkernel import raw_ops

pytestmark = pytest.mark.jax

PROGRAM = """
import numpy as np, opkernel
from opkernel import raw_ops
from opkernel.runtime.engines import program_cache
program_cache._LEAST_S = 0.0
loads = []
loaded = program_cache._loaded
def noted(path, how):
    found = loaded(path, how)
    loads.append(found is not None)
    return found
program_cache._loaded = noted
@opkernel.function(jit_compile=True)
def f(x):
    return raw_ops.Exp(x=raw_ops.MatMul(a=x, b=x)), raw_ops.Neg(x=x)
y, z = f(np.eye(3, dtype=np.float32))
assert np.allclose(y, np.exp(np.eye(3))) and np.allclose(z, -np.eye(3))
print(loads)
"""


def run(folder, **environment):
    """Whether a process found its program under the folder; the names of the files there afterwards."""
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM],
        env={**os.environ, "OPKERNEL_CACHE": str(folder), **environment},
        capture_output=True,
        text=True,
        check=True,
    )
    files = sorted(one.name for one in folder.glob("xla/*"))
    return done.stdout.strip(), files, done.stderr


def test_another_process_finds_the_program(tmp_path):
    folder = tmp_path / "programs"
    first, files, _ = run(folder)
    assert first == "[False]"
    assert len(files) == 1
    assert not {one.stat().st_mode & 0o077 for one in (folder, folder / "xla")} - {0}
    assert run(folder)[:2] == ("[True]", files)
    (folder / "xla" / files[0]).write_bytes(b"no program")
    assert run(folder)[:2] == ("[False]", files)  # compiled anew, and kept again
    assert run(folder)[0] == "[True]"


def test_a_folder_that_others_may_write_to_is_not_used(tmp_path):
    folder = tmp_path / "programs"
    folder.mkdir()
    folder.chmod(0o777)
    found, files, told = run(folder)
    assert (found, files) == ("[]", [])
    assert "others may write to it" in told


def test_it_can_be_off(tmp_path):
    assert run(tmp_path / "programs", OPKERNEL_CACHE="off")[:2] == ("[]", [])


def test_quick_programs_are_not_kept(tmp_path, monkeypatch):
    monkeypatch.setenv("OPKERNEL_CACHE", str(tmp_path))
    monkeypatch.setattr("opkernel.runtime.engines.program_cache._LEAST_S", 1e9)

    @opkernel.function(jit_compile=True)
    def f(x):
        return raw_ops.Neg(x=x)

    assert f(np.float32(1)) == -1
    assert not [*tmp_path.glob("xla/*")]


def test_programs_that_use_other_arguments_are_others():
    """JAX's text of a program leaves out what the program does not use, unless it is asked to keep it."""
    x, y = np.array([1, 2], np.float32), np.array([5, 6], np.float32)
    first = opkernel.function(lambda x, y: raw_ops.Neg(x=x), jit_compile=True)
    second = opkernel.function(lambda x, y: raw_ops.Neg(x=y), jit_compile=True)
    alone = opkernel.function(lambda x: raw_ops.Neg(x=x), jit_compile=True)
    assert first(x, y).tolist() == [-1, -2]
    assert second(x, y).tolist() == [-5, -6]
    assert alone(y).tolist() == [-5, -6]
