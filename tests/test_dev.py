"""`dev.py` speaks clearly where it cannot work: an old Python, no venv, a wrong command."""

import ast
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
DEV = ROOT / "dev.py"

OLD_PYTHON = """
import runpy, sys
sys.version_info = (3, 10, 1)
sys.argv = ["dev.py", "demo"]
runpy.run_path("dev.py", run_name="__main__")
"""

NO_ENSUREPIP = """
import importlib.util, os, runpy, sys
dev = runpy.run_path("dev.py")
find_spec = importlib.util.find_spec
importlib.util.find_spec = lambda name: None if name == "ensurepip" else find_spec(name)
os.environ["PATH"] = ""
sys.exit(dev["main"](["demo"]))
"""


def run(*arguments, folder=ROOT):
    return subprocess.run(
        [sys.executable, *arguments], capture_output=True, text=True, check=False, cwd=folder
    )


def test_an_older_python_can_read_the_file_and_is_refused():
    ast.parse(DEV.read_text(), feature_version=(3, 7))
    done = run("-c", OLD_PYTHON)
    assert done.returncode == 1
    assert done.stderr.startswith("opkernel needs Python 3.11 or newer; this is Python ")
    assert "python3.12 dev.py demo" in done.stderr


def test_a_missing_ensurepip_is_named_with_the_package_that_brings_it(tmp_path):
    for name in ("dev.py", "pyproject.toml", "requirements.lock"):
        shutil.copy(ROOT / name, tmp_path)
    done = run("-c", NO_ENSUREPIP, folder=tmp_path)
    assert done.returncode == 1
    assert "comes without ensurepip" in done.stderr
    assert f"apt install python3.{sys.version_info[1]}-venv" in done.stderr


@pytest.mark.parametrize("arguments", [[], ["build"], ["demo", "extra"]])
def test_wrong_use_prints_the_commands(arguments):
    done = run(str(DEV), *arguments)
    assert done.returncode == 2
    assert "python3 dev.py demo" in done.stdout


def test_an_unknown_stage_lists_those_that_exist():
    done = run(str(DEV), "test", "tets")
    assert done.returncode == 1
    assert "no stage named 'tets'; there are: lint, format, types, floors, tests" in done.stderr
