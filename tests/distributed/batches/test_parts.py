"""Predictions in a folder: parts are whole, and a run goes on where another ended."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner, Result
from tests.distributed.batches.conftest import Told, X, Y

import opkernel
from opkernel.cli.commands import commands
from opkernel.cli.options import HINT
from opkernel.distributed import predict
from opkernel.errors import (
    AlreadyExistsError,
    FailedPreconditionError,
    InvalidArgumentError,
    UnavailableError,
    UnimplementedError,
)

SOURCES = Path(__file__).resolve().parents[3] / "src"
Run = Callable[..., Any]


def command(*arguments: object) -> Result:
    return CliRunner().invoke(commands, ["predict", *map(str, arguments)])


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """An .npz file of which row 7 fails."""
    text = ["0", "1", "2", "3", "4", "5", "6", "seven", "8", "9"]
    np.savez(tmp_path / "in.npz", x=X, text=np.array(text))
    return tmp_path / "in.npz"


@pytest.fixture
def run(graph: Path, data: Path, tmp_path: Path) -> Run:
    """Predicts into `out`; gives what predict gives, after it is done, and the values."""

    def done(**options: Any) -> Any:
        options = {"batch_size": 3, "output": tmp_path / "out", "on_error": "skip", **options}
        found = predict(graph, data, **options)
        batches = [*found]
        return found, {name: np.concatenate([b[name] for b in batches]) for name in batches[0]}

    return done


def check_values(values: Any) -> None:
    np.testing.assert_array_equal(values["y:0"], np.delete(Y, 7, axis=0))
    assert values["number:0"].tolist() == [0, 1, 2, 3, 4, 5, 6, 8, 9]
    assert values["loud:0"].tolist() == [b"%d" % one for one in (0, 1, 2, 3, 4, 5, 6, 8, 9)]


def damage(out: Path, what: str) -> None:
    part = out / "part-00001.npz"
    if what == "missing":
        part.unlink()
    elif what == "damaged":
        content = bytearray(part.read_bytes())
        content[len(content) // 2] ^= 1
        part.write_bytes(content)
    elif what == "cut":
        part.write_bytes(part.read_bytes()[:100])
    else:  # the process ended while it wrote the line
        lines = (out / "parts.jsonl").read_bytes()
        (out / "parts.jsonl").write_bytes(lines[:-5])


@pytest.mark.parametrize("what", ["missing", "damaged", "cut", "line"])
def test_only_what_is_missing_is_computed_again(run: Run, tmp_path: Path, what: str) -> None:
    first, values = run()
    assert (first.batches, first.computed, first.rows) == (4, 4, 10)
    check_values(values)
    damage(tmp_path / "out", what)
    for computed in (1, 0):
        again, values = run()
        assert (again.batches, again.computed, again.skipped) == (4, computed, first.skipped)
        check_values(values)


def test_files_that_a_killed_run_left_unfinished_go(run: Run, tmp_path: Path) -> None:
    run()
    (tmp_path / "out" / "part-00002.npz.tempstate123").write_bytes(b"PK")
    (tmp_path / "out" / "mine.npz.tempstate123").write_bytes(b"PK")
    run()
    assert [one.name for one in (tmp_path / "out").glob("*tempstate*")] == ["mine.npz.tempstate123"]


def test_a_run_that_was_killed_as_it_began(run: Run, tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "manifest.json.tempstate123").write_bytes(b"{")
    assert run()[0].computed == 4
    (tmp_path / "out" / "parts.jsonl").unlink()
    assert run()[0].computed == 4


def test_another_run_is_not_continued(run: Run, data: Path, graph: Path, tmp_path: Path) -> None:
    run()
    with pytest.raises(FailedPreconditionError, match="batch_size was 3, and is 4"):
        run(batch_size=4)
    assert run(batch_size=4, overwrite=True)[0].computed == 3
    assert not (tmp_path / "out" / "part-00003.npz").exists()
    with pytest.raises(FailedPreconditionError, match="data in memory is not compared"):
        predict(graph, {"x": X, "text": ["1"] * 10}, batch_size=4, output=tmp_path / "out")
    data.write_bytes(data.read_bytes() + b"\0")
    with pytest.raises(FailedPreconditionError, match="the input is another"):
        run(batch_size=4)
    graph.write_bytes(graph.read_bytes() + b"\x12\0")  # an empty library
    with pytest.raises(FailedPreconditionError, match="the model is another"):
        run(batch_size=4)


def test_a_folder_of_others_is_left_alone(graph: Path, data: Path, tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "mine.txt").write_text("mine")
    with pytest.raises(AlreadyExistsError, match=r"is not empty, and has no manifest\.json"):
        predict(graph, data, output=tmp_path / "out")
    [*predict(graph, data, output=tmp_path / "out", overwrite=True, on_error="skip")]
    assert (tmp_path / "out" / "mine.txt").read_text() == "mine"


def test_an_error_leaves_the_parts_before_it(run: Run, tmp_path: Path) -> None:
    with pytest.raises(InvalidArgumentError, match="Row 7"):
        run(on_error="raise")
    assert sorted(one.name for one in (tmp_path / "out").glob("part*.npz")) == [
        "part-00000.npz", "part-00001.npz",
    ]  # fmt: skip
    assert run()[0].computed == 2


def test_strings_that_files_cannot_hold(tmp_path: Path) -> None:
    graph = opkernel.Graph()
    with graph.as_default():
        text = opkernel.placeholder(opkernel.string, [None], name="text")
        opkernel.raw_ops.StringUpper(input=text, name="loud")
    opkernel.save_graph(graph, tmp_path / "graph.pb")
    found = predict(tmp_path / "graph.pb", {"text": [b"a\0"]}, output=tmp_path / "out")
    with pytest.raises(UnimplementedError, match="strings that end in zero bytes"):
        next(found)


def test_the_command_tells_what_failed(graph: Path, data: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    done = command(graph, data, out, "--batch-size", 4)
    assert done.exit_code == 1
    assert f"10 rows in 3 parts: written to {out}\n" in done.output
    assert "1 row failed (7): failed.jsonl has the reasons\n" in done.output
    (failed,) = map(json.loads, (out / "failed.jsonl").read_text().splitlines())
    assert (failed["row"], failed["code"]) == (7, "INVALID_ARGUMENT")
    assert "seven" in failed["message"]
    with np.load(out / "part-00001.npz") as part:
        np.testing.assert_array_equal(part["y:0"], Y[4:7])
        assert part["loud:0"].tolist() == [b"4", b"5", b"6"]
    manifest = json.loads((out / "manifest.json").read_text())
    assert {name: manifest[name] for name in ("complete", "parts", "rows", "failed")} == {
        "complete": True, "parts": 3, "rows": 10, "failed": 1,
    }  # fmt: skip
    (out / "part-00002.npz").unlink()
    done = command(graph, data, out, "--batch-size", 4, "--json")
    assert json.loads(done.stdout) == {
        "output": str(out), "rows": 10, "failed": 1, "parts": 3, "computed": 1,
    }  # fmt: skip


def test_the_command_takes_a_saved_model_and_processes(saved_model: Path, tmp_path: Path) -> None:
    np.savez(tmp_path / "in.npz", x=X)
    words = (saved_model, tmp_path / "in.npz", tmp_path / "out", "--concurrency", 1)
    done = command(*words, "--signature_def", "serving_default", "--tag_set", "serve")
    assert done.exit_code == 0, done.output
    with np.load(tmp_path / "out" / "part-00000.npz") as part:
        np.testing.assert_array_equal(part["y"], Y)


def test_the_command_knows_the_ops_of_a_library(told: Told, tmp_path: Path) -> None:
    np.savez(tmp_path / "in.npz", x=np.ones(2, np.float32))
    words = (told.model, tmp_path / "in.npz", tmp_path / "out")
    done = command(*words)
    assert done.exit_code == 1
    assert done.output.endswith(f"; {HINT}\n")
    done = command(*words, "--library", told.library)
    assert done.output == f"2 rows in 1 part: written to {tmp_path / 'out'}\n"


def test_a_process_that_ends_leaves_whole_parts(told: Told, tmp_path: Path) -> None:
    np.savez(tmp_path / "in.npz", x=np.array([1, 2, 3, 4, 5, -1], np.float32))
    options: dict[str, Any] = {"batch_size": 1, "libraries": [told.library.stem]}
    found = predict(
        told.model, tmp_path / "in.npz", output=tmp_path / "out", concurrency=1, **options
    )
    assert next(found)["y:0"].tolist() == [2]
    with pytest.raises(UnavailableError):
        list(found)
    again = predict(told.model, tmp_path / "in.npz", output=tmp_path / "out", **options)
    assert [next(again)["y:0"].tolist() for _ in range(3)] == [[2], [3], [4]]
    assert again.computed < 3


@pytest.mark.skipif(sys.platform == "win32", reason="processes get no SIGINT there")
@pytest.mark.skipif(
    signal.getsignal(signal.SIGINT) is signal.SIG_IGN,
    reason="Ctrl-C is ignored here, and would be in a process started from here",
)
def test_an_interrupted_command_goes_on(told: Told, tmp_path: Path) -> None:
    np.savez(tmp_path / "in.npz", x=np.array([1, 2, -3, 4, 5], np.float32))
    words = ["predict", told.model, "in.npz", "out", "--library", told.library]
    words += ["--batch-size", 1, "--concurrency", 1]
    env = {**os.environ, "PYTHONPATH": str(SOURCES)}

    def process() -> subprocess.CompletedProcess[str]:
        line = [sys.executable, "-m", "opkernel", *map(str, words)]
        return subprocess.run(
            line, cwd=tmp_path, env=env, capture_output=True, text=True, check=False
        )

    done = process()
    assert (done.returncode, done.stdout) == (130, "")
    parts = sorted((tmp_path / "out").iterdir())
    assert not [one for one in parts if "tempstate" in one.name]
    assert not (tmp_path / "out" / "part-00003.npz").exists()
    done = process()
    assert done.returncode == 0, done.stderr
    values = [np.load(tmp_path / "out" / f"part-{n:05}.npz")["y:0"].tolist() for n in range(5)]
    assert values == [[2], [3], [-2], [5], [6]]
