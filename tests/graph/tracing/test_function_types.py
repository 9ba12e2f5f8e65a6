"""What a type checker knows of functions: the signature of the Python function."""

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]

USER = """
from typing import Any

import opkernel


@opkernel.function
def scaled(x: Any, factor: float = 2.0, *, name: str = "s") -> int:
    return 3


class Net:
    @opkernel.function(reduce_retracing=True)
    def call(self, x: Any) -> str:
        return ""


scaled([1], factor=3.0, name="t").bit_length()
Net().call(x=1).upper()
scaled.get_concrete_function(1)
"""
WRONG = {
    "scaled()": 'Missing positional argument "x"',
    "scaled(1, fctor=3.0)": 'Unexpected keyword argument "fctor"',
    'scaled(1, "3")': 'Argument 2 to "__call__" of "Function" has incompatible type "str"',
    "scaled(1).upper()": '"int" has no attribute "upper"',
    "Net().call()": 'Missing positional argument "x"',
    "Net().call(1).bit_length()": '"str" has no attribute "bit_length"',
    "opkernel.Sesion": 'Module has no attribute "Sesion"',
}


def test_mypy_finds_wrong_calls_and_no_others(tmp_path: Path) -> None:
    pytest.importorskip("mypy", reason="mypy is in the `dev` extra")
    user = tmp_path / "user.py"
    user.write_text(USER + "\n".join(WRONG))
    done = subprocess.run(
        [sys.executable, "-m", "mypy", "--strict", str(user)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    errors = [line for line in done.stdout.splitlines() if ": error: " in line]
    first = USER.count("\n") + 1
    assert len(errors) == len(WRONG), done.stdout
    for number, (error, told) in enumerate(zip(errors, WRONG.values(), strict=True), first):
        assert f"user.py:{number}: " in error
        assert told in error
