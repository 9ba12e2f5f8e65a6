"""`opkernel test`: what it prints, what it saves, how it ends."""

import importlib.util
import json
import subprocess
import sys

import pytest

from opkernel.kernel import global_kernel_registry
from opkernel.opdef import global_op_registry
from opkernel.registrations import registered_by

MODULE = """
import numpy as np
import opkernel
from opkernel.opdef import unchanged_shape

GOOD, BAD = (
    opkernel.register_op(name, inputs=["x: float"], outputs=["y: float"], shape_fn=unchanged_shape)
    for name in ("CliGood", "CliBad")
)

@opkernel.register_kernel(GOOD, device="CPU")
def good(x):
    return x + np.float32(1)

@opkernel.register_kernel(BAD, device="CPU")
def bad(x):
    return x + np.float32(1) if x.ndim < 2 else np.float32(0)

@opkernel.register_gradient(GOOD)
def gradient(op, grad):
    return grad
"""


WRONG_GRADIENT = MODULE.replace(
    "    return grad", "    return opkernel.gradients.nodes.Mul(grad, 77)"
)


@pytest.fixture
def module(tmp_path, monkeypatch):
    """A file that registers an op with a right kernel and one with a wrong one."""
    path = tmp_path / "cli_test_ops.py"
    path.write_text(MODULE)
    monkeypatch.setattr(sys, "path", list(sys.path))
    monkeypatch.delitem(sys.modules, "cli_test_ops", raising=False)
    return path


def test_ops_by_name(command):
    result = command("test", "--op", "Relu", "--op", "LogicalA*", "--calls", 5)
    assert result.exit_code == 0
    assert result.output.splitlines() == [
        "ok      LogicalAnd  1 kernel, 5 calls; gradient not checked: none is registered",
        "ok      Relu        1 kernel, 5 calls; gradient ok, 1 call",
        "2 ops: 2 passed",
    ]


def test_the_ops_of_a_module_and_a_failing_call(command, module, tmp_path):
    result = command("test", module, "--calls", 40, "--save", tmp_path / "found")
    assert result.exit_code == 1
    lines = [line.strip() for line in result.output.splitlines()]
    assert lines[0] == "FAILED  CliBad"
    assert "the kernel bad (CPU) gives output 0 the shape [], where the shape" in lines[1]
    assert lines[2] == "CliBad"
    assert lines[3].startswith("x: float[")
    assert lines[4].startswith("saved as ")
    assert lines[5:] == [
        "ok      CliGood  1 kernel, 40 calls; gradient ok, 8 calls",
        "2 ops: 1 passed, 1 failed",
    ]
    assert sorted(path.name for path in (tmp_path / "found").iterdir()) == [
        "cli_bad.pbtxt",
        "test_cli_bad.py",
    ]


def test_the_saved_case_fails_under_pytest_until_the_kernel_is_right(command, module, tmp_path):
    cases = tmp_path / "cases"
    command("test", module, "--op", "CliBad", "--save", cases)

    def run_case():
        return subprocess.run(
            [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "test_cli_bad.py"],
            cwd=cases,
            capture_output=True,
            text=True,
            check=False,
        )

    failed = run_case()
    assert failed.returncode == 1
    assert "the kernel bad (CPU) gives output 0 the shape []" in failed.stdout
    module.write_text(MODULE.replace("if x.ndim < 2 else np.float32(0)", ""))
    assert run_case().returncode == 0


def test_a_wrong_gradient(command, module, tmp_path):
    cases = tmp_path / "cases"
    module.write_text(WRONG_GRADIENT)
    result = command("test", module, "--op", "CliGood", "--save", cases)
    assert result.exit_code == 1
    lines = [line.strip() for line in result.output.splitlines()]
    assert lines[0] == "FAILED  CliGood"
    assert lines[1].startswith("the gradient of input 0 ('x') is ")
    assert "finite differences of 0.008 give" in lines[1]
    assert lines[2:4] == ["CliGood", "x: float[] = 0.14361000061035156"]
    assert lines[-1] == "1 op: 1 failed"
    case = (cases / "test_cli_good.py").read_text()
    assert "the gradient of input 0 ('x') is " in case


def test_a_gradient_of_no_op(command, module):
    source = MODULE.replace("register_gradient(GOOD)", "register_gradient('CliPlian')")
    module.write_text(source.replace("CliGood", "CliPlain"))
    result = command("test", module, "--op", "CliPlain", "--calls", 5)
    assert result.exit_code == 0
    lines = result.output.splitlines()
    hint = (
        "gradient not checked: none is registered; one is registered for CliPlian, which is no op"
    )
    assert hint in lines[0]
    assert lines[2].startswith(f"Note: The gradient of 'CliPlian' is registered at {module}:")
    assert "there is no such op; perhaps you mean CliPlain" in lines[2]


SHAPES = """
import opkernel
def register(name, shape_fn):
    op = opkernel.register_op(name, inputs=["x: float"], outputs=["y: float"], shape_fn=shape_fn)
    opkernel.register_kernel(op, device="CPU")(lambda x: x + x)
register("CliReturns", lambda c: c.input(0))
register("CliSetsList", lambda c: c.set_output(0, [None, 3]))
"""


def test_wrong_shape_functions(command, module):
    module.write_text(SHAPES)
    result = command("test", module, "--calls", 5)
    assert result.exit_code == 1
    assert (
        "the shape function of CliReturns returned [] and left output 1 of 1 without a shape; it "
        "must call c.set_output(0, shape)"
    ) in result.output
    assert (
        "not tested: the shape function refused all calls, with Output 0 must have exactly 1 shape"
    ) in result.output


def test_json(command):
    result = command("test", "--op", "Relu", "--op", "TensorListLength", "--calls", 3, "--json")
    rows = json.loads(result.output)
    assert [(row["op"], row["status"], row["calls"]) for row in rows] == [
        ("Relu", "passed", 3),
        ("TensorListLength", "untested", 0),
    ]
    assert "a variant, cannot be drawn" in rows[1]["skipped"]


def test_nothing_tested_is_no_success(command):
    result = command("test", "--op", "TensorListLength")
    assert result.exit_code == 1
    assert "not tested: values for 'input_handle'" in result.output


@pytest.mark.parametrize(
    ("arguments", "what", "status"),
    [
        ([], "name what to test", 2),
        (["--op", "Rleu"], "there is no op 'Rleu'; perhaps you mean", 1),
        (["--op", "Nothing*"], "there is no op 'Nothing*'", 1),
        (["no_such_module"], "there is no module or file 'no_such_module'", 2),
        (["json"], "json registers no kernel", 2),
        (["--op", "Relu", "--calls", "0"], "0 is not in the range", 2),
    ],
)
def test_wrong_use(command, arguments, what, status):
    result = command("test", *arguments)
    assert (result.exit_code, what in result.output) == (status, True), result.output


def test_a_module_that_fails_to_import(command, tmp_path, monkeypatch):
    monkeypatch.setattr(sys, "path", list(sys.path))
    path = tmp_path / "cli_broken.py"
    path.write_text("1 / 0")
    result = command("test", path)
    assert result.exit_code == 1
    assert "division by zero" in result.output


def test_without_hypothesis(command, monkeypatch):
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    result = command("test", "--op", "Relu")
    assert result.exit_code == 1
    assert "pip install 'opkernel[test]'" in result.output


def test_run_with_a_sanitizer(command, model):
    result = command("run", model, "--input", "x=[[1, 2, 3]]", "--fetch", "x_out", "--sanitize")
    assert result.exit_code == 0
    assert "[1. 2. 3.]" in result.output


@pytest.fixture(autouse=True)
def _forget_the_module():
    """The files of all tests are one module, whose ops are those that any of them declared."""
    yield
    kernels, ops = global_kernel_registry(), global_op_registry()
    for registration in kernels.registrations():
        if registration.owner == "cli_test_ops":
            kernels.unregister(registration)
    for name, owner in ops.owners().items():
        if owner == "cli_test_ops":
            ops.unregister(name)
    for registrations, name in registered_by("cli_test_ops".__eq__):
        registrations.remove(name)
