"""`opkernel new`: what it writes works as it is, and it writes over nothing."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from tests.cli.conftest import SOURCES, Command


def test_a_package_whose_tests_pass(command: Command, tmp_path: Path):
    done = command("new", "row_norm", "--into", tmp_path)
    assert done.exit_code == 0
    written = [line for line in done.output.splitlines() if line.startswith(str(tmp_path))]
    assert len(written) == 7
    folder = tmp_path / "row_norm"
    tests = subprocess.run(
        [sys.executable, "-W", "error", "-m", "pytest", "-q", "-p", "no:cacheprovider"],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": f"{SOURCES}{os.pathsep}{folder / 'src'}"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert tests.returncode == 0, tests.stdout
    assert "8 passed" in tests.stdout


@pytest.mark.parametrize("check", [["check", "--select", "E,F,I,UP,B,D1"], ["format", "--check"]])
def test_what_it_writes_is_well_formed(command: Command, tmp_path: Path, check: list[str]):
    pytest.importorskip("ruff")
    command("new", "row_norm", "--into", tmp_path)
    done = subprocess.run(
        [sys.executable, "-m", "ruff", *check, "--isolated", "--line-length", "100", "src"],
        cwd=tmp_path / "row_norm",
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize(
    ("name", "problem"),
    [
        ("RowNorm", "is no name for a package"),
        ("row-norm", "is no name for a package"),
        ("../up", "is no name for a package"),
        ("1st", "is no name for a package"),
        ("_hidden", "is no name for a package"),
        ("lambda", "is no name for a package"),
        ("", "is no name for a package"),
        ("json", "is the name of another module"),
        ("opkernel", "is the name of another module"),
        ("mat_mul", "there is an op MatMul already"),
        ("numpy", "there is a module 'numpy' already"),
    ],
)
def test_names_that_will_not_do(command: Command, tmp_path: Path, name: str, problem: str):
    done = command("new", name, "--into", tmp_path)
    assert done.exit_code == 2
    assert problem in done.output
    assert list(tmp_path.iterdir()) == []


def test_folders_are_written_into_only_by_force(command: Command, tmp_path: Path):
    readme = tmp_path / "row_norm" / "README.md"
    other = tmp_path / "row_norm" / "notes.txt"
    readme.parent.mkdir()
    readme.write_text("mine")
    other.write_text("mine")
    done = command("new", "row_norm", "--into", tmp_path)
    assert done.exit_code == 2
    assert "is there already" in done.output
    assert readme.read_text() == "mine"
    assert command("new", "row_norm", "--into", tmp_path, "--force").exit_code == 0
    assert "RowNorm" in readme.read_text()
    assert other.read_text() == "mine"


def test_where_nothing_can_be_written(command: Command, tmp_path: Path):
    (tmp_path / "row_norm").write_text("a file")
    done = command("new", "row_norm", "--into", tmp_path, "--force")
    assert done.exit_code == 2
    assert "cannot write" in done.output
