"""`opkernel stubs`: what a type checker makes of them."""

import os
import re
import subprocess
import sys
from keyword import iskeyword
from pathlib import Path

import pytest
from tests.cli.conftest import Command

from opkernel.opdef import global_op_registry
from opkernel.ops.loader import all_op_names

ROOT = Path(__file__).resolve().parents[2]

PLUGIN = """
import opkernel
from opkernel.opdef import unknown_shape
from opkernel.raw_ops import __getattr__

opkernel.register_op(
    "StubTestOp",
    inputs=["values: N * T", "in: int32"],
    outputs=["count: T", "rest: N * T"],
    attrs=["T: type", "N: int >= 1", "mode: {'A', 'B'} = 'A'", "dtype: type", "sizes: list(int) = []",
           "shape: shape", "f: func", "rate: float = 0.1", "flag: bool", "text: string"],
    shape_fn=unknown_shape,
    doc='Says "it" \\\\ twice.',
)
opkernel.register_op("StubTestNone", inputs=["x: float"], shape_fn=unknown_shape)


def other_function() -> None:
    pass
"""
USER = """
import numpy as np
import stub_test_plugin as plugin
import opkernel
from opkernel import raw_ops

product = raw_ops.MatMul(a=np.ones((2, 2)), b=[[1.0], [2.0]], transpose_a=True, name="m")
found = raw_ops.Unique(x=[1, 1], out_idx=opkernel.int64)
raw_ops.MaxPool(input=product, ksize=[1, 2, 2, 1], strides=(1, 1, 1, 1), padding="SAME")
print(found.y, found.idx)
both = plugin.StubTestOp(
    values=[1, product], in_=2, mode="B", dtype="float32", shape=[2, None], f="g", flag=True, text=b"t"
)
print(both.count, both.rest[0])
plugin.StubTestNone(x=1.0)
plugin.other_function()
raw_ops.ParseExampleV2
"""
WRONG = {
    "raw_ops.Matmul(a=1, b=2)": 'Module has no attribute "Matmul"; maybe "MatMul"?',
    "raw_ops.StubTestNone(x=1.0)": 'Module has no attribute "StubTestNone"',
    'raw_ops.MaxPool(input=1, ksize=[1], strides=[1], padding="SAMEX")': "Literal['SAMEX']",
    "raw_ops.MatMul(a=1)": 'Missing named argument "b"',
    "raw_ops.MatMul(1, 2)": "Too many positional arguments",
    "raw_ops.AddV2(x=1, y=2, T=opkernel.int32)": 'Unexpected keyword argument "T"',
    "found.nope": 'has no attribute "nope"',
    "plugin.StubTestNone(x=1.0).name": 'Item "None" of "Operation | None"',
}  # fmt: skip


@pytest.fixture
def plugin(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "stub_test_plugin.py").write_text(PLUGIN)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def mypy(file: Path, *stubs: Path) -> str:
    pytest.importorskip("mypy", reason="mypy is in the `dev` extra")
    done = subprocess.run(
        [sys.executable, "-m", "mypy", "--strict", str(file), *map(str, stubs)],
        cwd=ROOT,
        env={**os.environ, "MYPYPATH": str(file.parent / "out")},
        capture_output=True,
        text=True,
        check=False,
    )
    return done.stdout + done.stderr


def test_mypy_accepts_right_calls_and_finds_wrong_ones(command: Command, plugin: Path) -> None:
    done = command("stubs", "stub_test_plugin", "--out", "out")
    stub = plugin / "out" / "stub_test_plugin.pyi"
    assert (done.exit_code, done.stdout) == (0, f"{Path('out') / stub.name}: 2 ops\n")
    user = plugin / "user.py"
    user.write_text(USER)
    assert mypy(user, stub) == "Success: no issues found in 2 source files\n"
    user.write_text(USER + "\n".join(WRONG))
    told = mypy(user)
    assert [fact for fact in WRONG.values() if fact not in told] == []


def test_the_catalogue_is_the_shipped_stub(command: Command, tmp_path: Path) -> None:
    done = command("stubs", "--out", tmp_path)
    assert done.exit_code == 0
    written = (tmp_path / "opkernel" / "raw_ops.pyi").read_text()
    shipped = (ROOT / "src" / "opkernel" / "raw_ops.pyi").read_text()
    assert written.partition("\n")[2] == shipped.partition("\n")[2]


def test_every_op_with_a_name_of_python_has_a_function(command: Command) -> None:
    found = set(re.findall(r"^def (\w+)\(", command("stubs").stdout, re.MULTILINE))
    names = {op.name for op in global_op_registry().export().op if not op.name.startswith("_")}
    shipped = names & all_op_names()
    assert {op for op in shipped if op.isidentifier() and not iskeyword(op)} <= found


def test_stubs_are_printed(command: Command, plugin: Path) -> None:
    done = command("stubs", "stub_test_plugin")
    assert done.exit_code == 0
    assert (
        "def StubTestNone(\n    *,\n    x: _Input,\n    name: str | None = None,\n)" in done.stdout
    )
    assert '"""Says \\"it\\" \\\\ twice."""' in done.stdout


def test_no_such_module(command: Command) -> None:
    done = command("stubs", "no_such_module")
    assert done.exit_code == 2
    assert "no_such_module" in done.output


def test_a_module_without_ops(command: Command) -> None:
    done = command("stubs", "json")
    assert done.exit_code == 2
    assert "'json' registers no ops" in done.output


@pytest.mark.parametrize(
    "op",
    [
        'name: "Wrong" attr { name: "T" type: "ty+e" }',
        'name: "Wrong" input_arg { name: "x" type_attr: "T" }',
        'name: "Wrong" input_arg { name: "x" type: DT_FLOAT number_attr: "N" }',
        'name: "no op" attr { name: "T" type: "type" }',
    ],
)
def test_ops_that_break_the_rules_of_declarations_are_refused(
    command: Command, tmp_path: Path, op: str
):
    file = tmp_path / "ops.pbtxt"
    file.write_text(f"op {{ {op} }}")
    done = command("stubs", file)
    assert done.exit_code == 1
    assert done.output.startswith("Error: INVALID_ARGUMENT: ")
