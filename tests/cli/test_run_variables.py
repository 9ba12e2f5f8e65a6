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


@pytest.fixture
def with_table(tmp_path: Path) -> Path:
    """`found` looks `key` up in a table that `init_all_tables` fills."""
    with Graph().as_default() as graph:
        table = opkernel.raw_ops.HashTableV2(
            key_dtype=opkernel.string, value_dtype=opkernel.int64, name="words"
        )
        fill = opkernel.raw_ops.InitializeTableV2(
            table_handle=table, keys=["a", "b"], values=np.array([7, 8]), name="fill"
        )
        key = opkernel.placeholder("string", [None], name="key")
        default = np.int64(-1)
        opkernel.raw_ops.LookupTableFindV2(
            table_handle=table, keys=key, default_value=default, name="found"
        )
        graph.create_op("NoOp", name="init_all_tables", control_inputs=[fill])
    save_graph(graph, tmp_path / "table.pb")
    return tmp_path / "table.pb"


@pytest.mark.parametrize("options", [[], ["--jit", "off"]])
def test_a_table_that_is_not_filled(options: list[str], command: Command, with_table: Path) -> None:
    arguments = ["run", with_table, "--input", 'key=["b","c"]', "--fetch", "found", *options]
    done = command(*arguments)
    assert done.exit_code == 1
    assert done.output.startswith(
        "Error: FAILED_PRECONDITION: LookupTableFindV2: Table not initialized. (node 'found', "
    )
    assert done.output.endswith(
        "; run 'init_all_tables' first, which sets 'words' (by 'fill') "
        "(--init init_all_tables runs that operation first)\n"
    )
    done = command(*arguments, "--init", "init_all_tables", "--json")
    assert '"value": [8, -1]' in done.output.replace("\n", "").replace("  ", "")
