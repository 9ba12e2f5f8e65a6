"""`opkernel run` on graphs with variables: `--init`, and what is said where they have no value."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from tests.cli.conftest import Command

import opkernel
from opkernel import DataType, Graph, save_graph


@pytest.fixture
def with_variable(tmp_path: Path) -> Path:
    """`y` is a variable plus `x`; `init` sets the variable to a placeholder."""
    graph = Graph()
    float_scalar = {"dtype": DataType.DT_FLOAT, "shape": []}
    with graph.as_default():
        x = opkernel.placeholder("float32", [], name="x")
        start = opkernel.placeholder("float32", [], name="start")
    v = graph.create_op("VariableV2", attrs=float_scalar, name="v").outputs[0]
    set_it = graph.create_op("Assign", [v, start], name="v/Assign")
    graph.create_op("AddV2", [v, x], name="y")
    graph.create_op("NoOp", name="init", control_inputs=[set_it])
    path = tmp_path / "variable.pb"
    save_graph(graph, path)
    return path


def test_the_message_names_the_option(command: Command, with_variable: Path) -> None:
    done = command("run", with_variable, "--input", "x=1", "--fetch", "y")
    assert done.exit_code == 1
    assert done.output.startswith(
        "Error: FAILED_PRECONDITION: AddV2: Attempting to use uninitialized value v (node 'y', "
    )
    assert done.output.endswith(
        "; run 'init' first, which sets 'v' (by 'v/Assign'); or feed 'v:0' "
        "(--init init runs that operation first)\n"
    )


@pytest.mark.parametrize("options", [["--init", "init"], ["--init", "v/Assign", "--init", "init"]])
def test_init_runs_an_operation_first(
    options: list[str], command: Command, with_variable: Path
) -> None:
    feeds = ["--input", "x=1", "--input", "start=41", "--fetch", "y"]
    done = command("run", with_variable, *options, *feeds, "--repeat", "2", "--json")
    assert '"value": 42.0' in done.output


def test_a_profile_reads_variables(command: Command, with_variable: Path, tmp_path: Path) -> None:
    out = tmp_path / "y.npz"
    feeds = ["--input", "x=1", "--input", "start=41", "--fetch", "y", "--output", out]
    done = command("run", with_variable, "--init", "init", *feeds, "--profile")
    assert done.exit_code == 0
    with np.load(out) as found:
        assert found["y:0"] == 42


def test_an_init_that_does_not_exist(command: Command, with_variable: Path) -> None:
    done = command("run", with_variable, "--init", "nope", "--fetch", "y")
    assert done.exit_code == 1
    assert "'nope', does not exist in the graph" in done.output
