"""`-` is standard input for every command that reads a model or another file."""

from __future__ import annotations

import io
import tempfile
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner, Result
from tests.cli.conftest import Command

from opkernel.cli.commands import commands

DATA = Path(__file__).resolve().parents[1] / "data"
MODEL = DATA / "graph_with_functions.pb"
OPS = 'op { name: "Mine" input_arg { name: "x" type: DT_FLOAT } }\n'

READERS = {
    "check": ["OPS", "--against", "OTHER"],
    "coverage": ["MODEL"],
    "decompile": ["MODEL", "--fetch", "x"],
    "explain": ["MODEL", "x"],
    "freeze": ["MODEL", "--fetch", "x", "-o", "OUT"],
    "history": ["OPS"],
    "ops": ["--needed-by", "MODEL"],
    "optimize": ["MODEL", "--fetch", "x", "-o", "OUT"],
    "place": ["MODEL"],
    "predict": ["MODEL", "ROWS", "FOLDER", "--overwrite"],
    "run": ["MODEL", "--input", "x=[[1,2,3]]"],
    "shapes": ["MODEL"],
    "show": ["MODEL"],
    "stubs": ["OPS"],
}
"""The commands that read a file, with what they need."""
READ_NO_FILE = {"checkpoint", "doctor", "kernels", "new", "serve", "test"}
NEED_JAX = {"compile"}
"""Those that `test_engines` is about."""


def run(stdin: bytes, *arguments: object) -> Result:
    """What a command does that gets this on standard input."""
    return CliRunner().invoke(commands, [str(one) for one in arguments], input=stdin)


@pytest.fixture
def ops(tmp_path: Path) -> Path:
    """An OpList."""
    path = tmp_path / "ops.pbtxt"
    path.write_text(OPS)
    return path


def test_the_table_has_all_commands() -> None:
    assert {*READERS} | READ_NO_FILE | NEED_JAX == {*commands.commands}


@pytest.mark.parametrize("name", sorted(READERS))
def test_a_command_says_of_standard_input_what_it_says_of_the_file(
    name: str, ops: Path, command: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = tmp_path / "other.pbtxt"
    other.write_text(OPS)
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    rows, folder = tmp_path / "rows.npz", tmp_path / "folder"
    np.savez(rows, x=np.ones((2, 3), np.float32))
    places = {"MODEL": MODEL, "OPS": ops, "OTHER": other, "OUT": tmp_path / "out.pb"}
    places |= {"ROWS": rows, "FOLDER": folder}
    of_file = command(name, *[places.get(one, one) for one in READERS[name]])
    assert of_file.exit_code == 0
    stdin = (ops if "OPS" in READERS[name] else MODEL).read_bytes()
    places.update(MODEL=Path("-"), OPS=Path("-"))
    left = sorted(tmp_path.iterdir())
    done = run(stdin, name, *[places.get(one, one) for one in READERS[name]])
    assert done.exit_code == 0
    expected = of_file.output.replace(str(MODEL), "standard input").replace(
        str(ops), "standard input"
    )
    expected = expected.replace(MODEL.name, "standard input").replace(
        "The ops of ops", "The ops of stdin"
    )
    assert done.output == expected
    assert sorted(tmp_path.iterdir()) == left, "nothing is left of it"


def test_it_stands_for_each_file_that_an_option_names(ops: Path, tmp_path: Path) -> None:
    assert run(OPS.encode(), "check", ops, "--against", "-").exit_code == 0
    assert run(MODEL.read_bytes(), "check", ops, "--against", ops, "--graphs", "-").exit_code == 0
    added = run(OPS.encode(), "history", tmp_path / "new.pbtxt", "--add", "-")
    assert "Mine" in added.output


def test_it_can_be_fed() -> None:
    array = io.BytesIO()
    np.save(array, np.array([[1, 2, 3]], np.float32))
    done = run(array.getvalue(), "run", MODEL, "--input", "x=@-", "--fetch", "x")
    assert done.output == "x:0  float32[1,3]\n[[1. 2. 3.]]\n"


def test_it_is_read_once() -> None:
    done = run(MODEL.read_bytes(), "run", "-", "--input", "x=@-")
    assert (done.exit_code, done.output) == (
        2,
        "Error: standard input (-) can be read once: name a file for one of the two\n",
    )


def test_rows_come_from_it(tmp_path: Path) -> None:
    rows = io.BytesIO()
    np.savez(rows, x=np.ones((2, 3), np.float32))
    done = run(rows.getvalue(), "predict", MODEL, "-", tmp_path / "out")
    assert done.output == f"2 rows in 1 part: written to {tmp_path / 'out'}\n"


def test_errors_call_it_by_its_name() -> None:
    done = run(b"\x1f\x8b\x08\0", "show", "-")
    assert done.exit_code == 1
    assert done.output == (
        "Error: DATA_LOSS: standard input is damaged or no archive: Compressed file ended before the "
        "end-of-stream marker was reached\n"
    )
    assert run(b"", "run", "-").output == "Error: DATA_LOSS: standard input is empty (0 bytes)\n"
