"""The command line tells of a wrong kernel in one line, and asks for nothing on branches."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.cli.conftest import Command

import opkernel
from opkernel import Graph, raw_ops, save_graph
from opkernel.opdef import unchanged_shape

opkernel.register_op(
    "WrongInCommands",
    inputs=["x: float"],
    outputs=["y: float"],
    attrs=["error: string"],
    shape_fn=unchanged_shape,
)


@opkernel.register_kernel("WrongInCommands", device="CPU")
def wrong(x: Any, *, error: str) -> Any:
    raise {"key": KeyError, "runtime": RuntimeError, "assertion": AssertionError}[error]("wrong")


@pytest.fixture(params=["key", "runtime", "assertion"])
def model(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """A model whose kernel fails on a constant, and another output that does not need it."""
    with Graph().as_default() as graph:
        x = opkernel.graph.constant(np.array([1, 2], np.float32))
        attrs = {"error": request.param}
        graph.create_op("WrongInCommands", [x], name="mine", attrs=attrs)
        raw_ops.Neg(x=x, name="right")
    save_graph(graph, tmp_path / "wrong.pb")
    return tmp_path / "wrong.pb"


def test_run_names_the_node_in_one_line(command: Command, model: Path) -> None:
    result = command("run", model)
    assert result.exit_code == 1
    (line,) = result.output.splitlines()
    assert line.startswith("Error: INTERNAL: WrongInCommands: ")
    assert "(node 'mine', inputs float32[2])" in line


def test_what_is_not_asked_for_is_not_told(command: Command, model: Path) -> None:
    result = command("run", model, "--fetch", "right")
    assert result.exit_code == 0
    assert "[-1. -2.]" in result.output


def test_optimize_leaves_the_node_where_it_is(command: Command, model: Path) -> None:
    out = model.with_name("out.pbtxt")
    assert command("optimize", model, "--output", out).exit_code == 0
    assert 'op: "WrongInCommands"' in out.read_text()


def test_run_asks_for_nothing_on_one_branch(command: Command, tmp_path: Path) -> None:
    with Graph().as_default() as graph:
        x, p = (
            opkernel.graph.constant(value)
            for value in (np.array([4, 9], np.float32), np.bool_(True))
        )
        no, yes = graph.create_op("Switch", [x, p], name="switch").outputs
        raw_ops.Exp(x=no, name="nobody_asked")
        inner = graph.create_op("Switch", [yes, p], name="inner").outputs
        within = graph.create_op("Merge", [*inner], name="merged_within").outputs[0]
        raw_ops.Neg(x=within, name="nobody_either")
        graph.create_op("Merge", [raw_ops.Square(x=no), raw_ops.Sqrt(x=yes)], name="merged")
    save_graph(graph, tmp_path / "branch.pb")
    result = command("run", tmp_path / "branch.pb")
    assert result.exit_code == 0, result.output
    assert "[2. 3.]" in result.output
    assert "nobody" not in result.output
    assert "within" not in result.output
