"""Ops from type hints under mypy --strict: right calls pass, wrong ones are found."""

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]

USER = """
from __future__ import annotations

from typing import NamedTuple, TypeVar

import numpy as np

import opkernel
from opkernel import DataType, float32, int32
from opkernel.custom_ops import Tensor

T = TypeVar("T")


class Top(NamedTuple):
    values: Tensor["T"]
    indices: Tensor[int32]


@opkernel.op(types={"T": ["float", float32]}, traits="pointwise")
def clip(x: Tensor["T"], low: float, high: float = 1.0) -> Tensor["T"]:
    return np.clip(x, low, high)


@opkernel.op
def top(xs: list[Tensor["T"]], k: int) -> Top:
    return Top(xs[0][:k], np.int32(k))


@opkernel.op
def stub(x: Tensor["float"], kind: DataType) -> Tensor["float"]: ...


@clip.shape_fn
def clip_shape(c: opkernel.InferenceContext) -> None:
    c.set_output(0, c.input(0))


@clip.gradient
def clip_gradient(op: opkernel.Operation, grad: opkernel.Tensor) -> opkernel.Tensor:
    return grad


@clip.kernel(device="GPU")
def clip_gpu(x: Tensor["T"], low: float, high: float) -> Tensor["T"]:
    return x


clip_gradient.__name__
print(clip([1.0], 0), clip(np.zeros(2), low=0.5, high=2.0).shape, clip_gpu(1, 2, 3), clip.name)
print(top([1, 2], k=1).values)
"""
WRONG = {
    'clip(1, "a")': 'incompatible type "str"; expected "float"',
    "clip(1)": 'Missing positional argument "low"',
    "clip(1, 2, lowest=3)": 'Unexpected keyword argument "lowest"',
    "top([1], 1).nope": '"Top" has no attribute "nope"',
    "stub(1, 2)": 'incompatible type "int"; expected "DataType"',
    "clip.kernel()": 'Missing named argument "device"',
    'opkernel.op(nam="X")': 'Unexpected keyword argument "nam"',
}


def mypy(file: Path) -> str:
    pytest.importorskip("mypy", reason="mypy is in the `dev` extra")
    command = [sys.executable, "-m", "mypy", "--strict", "--no-error-summary", str(file)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    return done.stdout + done.stderr


def test_mypy_accepts_right_ops_and_calls_and_finds_wrong_ones(tmp_path: Path) -> None:
    user = tmp_path / "user.py"
    user.write_text(USER)
    assert mypy(user) == ""
    user.write_text(USER + "\n".join(WRONG))
    found = mypy(user)
    start = len(USER.splitlines())
    for line, (call, message) in enumerate(WRONG.items(), start + 1):
        assert any(f":{line}:" in told and message in told for told in found.splitlines()), (
            call,
            found,
        )
