"""A loop has three forms, which give the same; the compiled one is made beside the calls, and once."""

import os
import stat
import subprocess
import sys
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import opkernel
from opkernel.errors import UnimplementedError
from opkernel.providers.loops import Loop, loop, loops_run, part_of_loops

pytest.importorskip("numba")


@part_of_loops
def doubled(x: Any) -> Any:
    return x * 2


def by_numpy(x: Any, start: Any) -> Any:
    return np.add.accumulate(np.concatenate([[start], x * 2]), dtype=x.dtype)[1:]


def running(x: Any, start: Any) -> Any:
    out = np.empty(x.size, x.dtype)
    for i in range(x.size):
        start = start + doubled(x[i])
        out[i] = start
    return out


def new_loop(**options: Any) -> Loop:
    return Loop(running, **options)


X = np.array([1, 2, 3], np.int64)
SUMS = [12, 16, 22]


@pytest.mark.parametrize("form", ["numpy", "plain", "compiled"])
def test_the_forms_give_the_same(form: Any) -> None:
    with loops_run(form):
        assert new_loop(otherwise=by_numpy)(X, np.int64(10)).tolist() == SUMS


@pytest.mark.parametrize(
    "x",
    [
        X,
        np.arange(12)[1:7:2] * 0 + X,
        np.repeat(X, 2)[::2],
        np.frombuffer(b"\0" + X.tobytes(), np.int64, offset=1),
        X.astype(np.int32),
        X.astype(np.float32),
        np.broadcast_to(np.int64(1), (3,)),
    ],
    ids=["plain", "sliced", "strided", "unaligned", "int32", "float", "broadcast"],
)
def test_arrays_of_any_layout_and_type(x: Any) -> None:
    read_only = x.view()
    read_only.flags.writeable = False
    one = new_loop()
    with loops_run("compiled"):
        found = one(read_only, x.dtype.type(10)), one(x, x.dtype.type(10))
    expected = (10 + 2 * np.cumsum(x)).tolist()
    assert [array.tolist() for array in found] == [expected, expected]
    assert found[0].dtype == x.dtype


def test_an_array_among_the_arguments_is_filled() -> None:
    @loop
    def fill(out: Any) -> None:
        for i in range(out.size):
            out[i] = i

    out = np.zeros(4, np.float32)
    with loops_run("compiled"):
        assert fill(out) is None
    assert out.tolist() == [0, 1, 2, 3]


def test_little_work_is_not_compiled(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("opkernel.runtime.engines.late_work.in_background", pytest.fail)
    one = new_loop(otherwise=by_numpy)
    for _ in range(100):
        assert one(X, np.int64(10)).tolist() == SUMS


def test_much_work_is_compiled_beside_the_calls_and_once(monkeypatch: pytest.MonkeyPatch) -> None:
    compiled: list[object] = []
    made = Loop._made

    def noted(self: Loop, kind: Any) -> Any:
        compiled.append(kind)
        return made(self, kind)

    monkeypatch.setattr(Loop, "_made", noted)
    monkeypatch.setattr(sys.modules[Loop.__module__], "_PAYS_S", 0)
    called: list[int] = []

    def noting(x: Any, start: Any) -> Any:
        called.append(1)
        return by_numpy(x, start)

    one = new_loop(otherwise=noting)
    while not one._compiled:
        assert one(X, np.int64(10)).tolist() == SUMS
        time.sleep(0.01)
    before = len(called)
    assert one(X, np.int64(10)).tolist() == SUMS
    assert (len(called), len(compiled)) == (before, 1)


def test_a_loop_that_does_not_compile_goes_on_without(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(sys.modules[Loop.__module__], "_PAYS_S", 0)

    def odd(x: Any) -> Any:
        return next(iter({id(x): x}.values())) if vars() else None

    one = Loop(odd)
    assert one(X) is X
    (asked,) = one._asked.values()
    asked.result(timeout=300)
    assert one(X) is X
    assert "odd stays uncompiled" in caplog.text


def test_without_numba(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "numba", None)
    monkeypatch.setattr(sys.modules[Loop.__module__], "_PAYS_S", 0)
    one = new_loop(otherwise=by_numpy)
    assert one(X, np.int64(10)).tolist() == SUMS
    with loops_run("compiled"), pytest.raises(UnimplementedError, match=r"opkernel\[numba\]"):
        one(X, np.int64(10))


PROGRAM = """
import sys, numpy as np
from opkernel.providers.loops import loops_run
from own_loops import total
with loops_run("compiled"):
    print(total(np.arange(5)))
import numba
print(numba.config.CACHE_DIR)
"""
OWN = """
from opkernel.providers.loops import loop
@loop
def total(x):
    sum = 0
    for value in x:
        sum += value
    return sum
"""


def test_what_is_compiled_is_kept_for_other_processes(tmp_path: Path) -> None:
    (tmp_path / "own_loops.py").write_text(OWN)
    cache = tmp_path / "cache"

    def run() -> str:
        environment = {**os.environ, "OPKERNEL_CACHE": str(cache), "PYTHONPATH": str(tmp_path)}
        environment["PYTHONPATH"] += os.pathsep + str(Path(opkernel.__file__).parents[1])
        done = subprocess.run(
            [sys.executable, "-c", PROGRAM],
            env=environment,
            capture_output=True,
            text=True,
            check=True,
        )
        return done.stdout

    def kept() -> dict[str, int]:
        return {path.name: path.stat().st_mtime_ns for path in cache.rglob("*.nb?")}

    assert run() == "10\n\n"
    first = kept()
    assert [name.partition(".")[0] for name in first] == ["own_loops", "own_loops"]
    assert run() == "10\n\n"
    assert kept() == first


@pytest.mark.skipif(not hasattr(os, "getuid"), reason="folders have no owner here")
def test_a_folder_that_others_may_write_to_is_not_used(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tmp_path.chmod(stat.S_IRWXU | stat.S_IRWXG)
    monkeypatch.setenv("OPKERNEL_CACHE", str(tmp_path))
    with loops_run("compiled"):
        assert new_loop()(X, np.int64(10)).tolist() == SUMS
    assert not [*tmp_path.rglob("*.nb?")]


def test_compiling_leaves_the_filters_of_warnings_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """Another thread may be within `catch_warnings`: the end of a second such block would undo its filters."""
    monkeypatch.setattr(warnings, "catch_warnings", pytest.fail)
    with loops_run("compiled"):
        assert new_loop()(X, np.int64(10)).tolist() == SUMS
