"""Programs written by `opkernel decompile` compute what the models compute."""

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.cli.conftest import Command

MODELS = Path(__file__).parents[3] / "shared" / "models"

FLOAT = 'attr { key: "T" value { type: DT_FLOAT } }'
SMALL = f"""
node {{ name: "x" op: "Placeholder" attr {{ key: "dtype" value {{ type: DT_FLOAT }} }} }}
node {{ name: "pad" op: "Const" attr {{ key: "dtype" value {{ type: DT_FLOAT }} }}
  attr {{ key: "value" value {{ tensor {{ dtype: DT_FLOAT tensor_shape {{}} float_val: inf }} }} }} }}
node {{ name: "np" op: "Minimum" input: "x" input: "pad" {FLOAT} }}
node {{ name: "relu" op: "Relu" input: "np" {FLOAT} }}
node {{ name: "y" op: "Relu" input: "relu" {FLOAT} }}
"""
STRANGE = f"""
node {{ name: "x" op: "Placeholder" attr {{ key: "dtype" value {{ type: DT_FLOAT }} }} }}
node {{ name: "lgamma" op: "Lgamma" input: "x" {FLOAT} }}
node {{ name: "y" op: "Digamma" input: "lgamma" {FLOAT} }}
"""


def done(command: Command, *arguments: Any) -> Any:
    """What a command gives that must succeed."""
    result = command(*arguments)
    assert result.exit_code == 0, result.output
    return result


def run(program: Path, feeds: dict[str, Any], *flags: str) -> dict[str, Any]:
    """What a program computes in a Python of its own."""
    inputs, results = program.with_name("inputs.npz"), program.with_name("results.npz")
    np.savez(inputs, **feeds)
    command = [sys.executable, *flags, str(program), str(inputs), str(results)]
    subprocess.run(command, check=True, capture_output=True, cwd=program.parent)
    with np.load(results) as found:
        return dict(found)


@pytest.mark.parametrize("flag", [[], ["--numpy"]])
@pytest.mark.parametrize(
    "model",
    [
        *("bert_tiny", "conv_mix", "functional_control_flow", "lstm_lowered", "mlp"),
        *("mobilenet_v2", "v1_control_flow"),
    ],
)
def test_programs_of_models(command: Command, tmp_path: Path, model: str, flag: list[str]) -> None:
    if not (MODELS / model).exists():
        pytest.skip("the models are not here")
    manifest = json.loads((MODELS / model / "manifest.json").read_text())
    with np.load(MODELS / model / "case.npz") as stored:
        case = dict(stored)
    program = tmp_path / "model.py"
    fetches = [text for name in manifest["fetches"] for text in ("--fetch", name)]
    done(
        command, "decompile", str(MODELS / model / "graph.pb"), "-o", str(program), *fetches, *flag
    )
    source = program.read_text()
    if flag:
        assert "opkernel" not in source.replace("`opkernel decompile`", "")
    feeds = {name: case[f"feed:{name}"] for name in manifest["feeds"]}
    found = run(program, feeds)
    for name in manifest["fetches"]:
        wanted = case[f"fetch:{name}"]
        assert found[name].dtype == wanted.dtype
        np.testing.assert_allclose(found[name], wanted, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("flag", [[], ["--numpy"]])
def test_names_of_the_program_and_of_the_model_do_not_meet(
    command: Command, tmp_path: Path, flag: list[str]
) -> None:
    (tmp_path / "small.pbtxt").write_text(SMALL)
    program = tmp_path / "model.py"
    done(command, "decompile", str(tmp_path / "small.pbtxt"), "-o", str(program), *flag)
    x = np.array([-1, 2, 3], np.float32)
    np.testing.assert_array_equal(run(program, {"x:0": x})["y:0"], [0, 2, 3])


@pytest.mark.parametrize("flag", [[], ["--numpy"]])
def test_a_program_without_arguments_prints_its_usage(
    command: Command, tmp_path: Path, flag: list[str]
) -> None:
    (tmp_path / "small.pbtxt").write_text(SMALL)
    program = tmp_path / "model.py"
    program.write_text(done(command, "decompile", tmp_path / "small.pbtxt", *flag).stdout)
    failed = subprocess.run(
        [sys.executable, str(program)], capture_output=True, text=True, check=False
    )
    assert failed.returncode == 1
    assert "Traceback" not in failed.stderr
    assert "python THIS_FILE INPUTS.npz [RESULTS.npz]" in failed.stderr
    assert "    x:0  float32 <unknown>" in failed.stderr


def test_a_printed_program_without_large_weights_runs(command: Command, tmp_path: Path) -> None:
    (tmp_path / "small.pbtxt").write_text(SMALL)
    printed = done(command, "decompile", tmp_path / "small.pbtxt")
    (tmp_path / "model.py").write_text(printed.stdout)
    x = np.array([-1, 2, 3], np.float32)
    np.testing.assert_array_equal(run(tmp_path / "model.py", {"x:0": x})["y:0"], [0, 2, 3])


def test_a_program_without_feeds_needs_no_arguments(command: Command, tmp_path: Path) -> None:
    (tmp_path / "small.pbtxt").write_text(SMALL)
    printed = done(command, "decompile", tmp_path / "small.pbtxt", "--fetch", "pad", "--numpy")
    (tmp_path / "model.py").write_text(printed.stdout)
    for files in ([], [tmp_path / "results.npz"]):
        ran = subprocess.run(
            [sys.executable, tmp_path / "model.py", *files],
            capture_output=True,
            text=True,
            check=True,
        )
    assert ran.stdout == ""
    with np.load(tmp_path / "results.npz") as results:
        assert results["pad:0"] == np.inf


def test_a_printed_program_says_that_its_weights_need_a_file(
    command: Command, tmp_path: Path
) -> None:
    weights = " ".join(f"float_val: {i}" for i in range(5000))
    tensor = f"dtype: DT_FLOAT tensor_shape {{ dim {{ size: 5000 }} }} {weights}"
    value = f'attr {{ key: "value" value {{ tensor {{ {tensor} }} }} }}'
    (tmp_path / "large.pbtxt").write_text(
        f'node {{ name: "w" op: "Const" attr {{ key: "dtype" value {{ type: DT_FLOAT }} }} {value} }}'
        'node { name: "x" op: "Placeholder" attr { key: "dtype" value { type: DT_FLOAT } } }'
        f'node {{ name: "y" op: "AddV2" input: "x" input: "w" {FLOAT} }}'
    )
    printed = done(command, "decompile", tmp_path / "large.pbtxt")
    assert "The program does not run without its weights, 20.0 kB: -o " in printed.output
    assert (
        "Its weights are in the file beside it that ends in .npz: -o writes both." in printed.stdout
    )
    written = done(command, "decompile", tmp_path / "large.pbtxt", "-o", tmp_path / "model.py")
    assert "does not run" not in written.output
    results = run(tmp_path / "model.py", {"x:0": np.float32(1)})
    np.testing.assert_array_equal(results["y:0"], np.arange(5000, dtype=np.float32) + 1)


def test_it_is_printed_where_no_file_is_named(command: Command, tmp_path: Path) -> None:
    (tmp_path / "small.pbtxt").write_text(SMALL)
    printed = done(
        command, "decompile", str(tmp_path / "small.pbtxt"), "--fetch", "relu", "--numpy"
    )
    assert re.search(r"^def plan\(x\):$", printed.stdout, re.MULTILINE)
    assert "FETCHES = ['relu:0']" in printed.stdout


def test_ops_without_numpy_source_are_named(command: Command, tmp_path: Path) -> None:
    (tmp_path / "strange.pbtxt").write_text(STRANGE)
    failed = command("decompile", tmp_path / "strange.pbtxt", "--numpy")
    assert failed.exit_code == 1
    assert "with NumPy alone for op Lgamma, op Digamma" in failed.output
