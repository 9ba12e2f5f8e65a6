"""`opkernel explain` tells what runs in the place of a node, and why."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.cli.conftest import Command

from opkernel import Graph, raw_ops, save_graph

FUNCTIONS = Path(__file__).resolve().parents[1] / "data" / "graph_with_functions.pb"


@pytest.fixture
def told(command: Command, tmp_path: Path) -> Callable[[str], dict[str, Any]]:
    """What is told of a node of a dense layer with some element-wise nodes."""
    with Graph().as_default() as graph:
        x = raw_ops.Placeholder(dtype="float32", shape=[None, 2], name="x")
        w = raw_ops.Const(value=[[1.0, 2.0], [3.0, 4.0]], dtype="float32", name="w")
        kept = raw_ops.Identity(input=w, name="read")
        dense = raw_ops.MatMul(a=x, b=kept, name="matmul")
        bias = raw_ops.BiasAdd(value=dense, bias=[1.0, 2.0], name="bias")
        relu = raw_ops.Relu(features=bias, name="relu")
        one, two = (raw_ops.Const(value=v, dtype="float32", name=f"c{v}") for v in (1.0, 2.0))
        three = raw_ops.AddV2(x=one, y=two, name="three")
        times = raw_ops.Mul(x=relu, y=three, name="times")
        more = raw_ops.AddV2(x=raw_ops.Exp(x=times, name="exp"), y=times, name="more")
        raw_ops.Identity(input=raw_ops.Tanh(x=more, name="tanh"), name="out")
    save_graph(graph, tmp_path / "dense.pb")

    def explain(node: str) -> dict[str, Any]:
        done = command("explain", tmp_path / "dense.pb", node, "--json")
        assert done.exit_code == 0, done.output
        found: dict[str, Any] = json.loads(done.output)["in_steps"]
        return found

    return explain


@pytest.mark.parametrize("node", ["matmul", "bias"])
def test_the_fused_call_that_a_node_became_part_of(
    told: Callable[[str], dict[str, Any]], node: str
) -> None:
    found = told(node)
    assert found["sentence"] == "Steps run it as part of relu (_FusedMatMul)."
    assert found["runs_as"] == ["relu"]
    assert found["because"] == ["fusion: relu does MatMul and BiasAdd and Relu at once"]
    (statement,) = found["statements"]
    assert statement.startswith("relu = fused(x, ")


def test_the_last_of_the_fused(told: Callable[[str], dict[str, Any]]) -> None:
    found = told("relu")
    assert found["sentence"] == "Steps run it as _FusedMatMul."
    assert found["because"] == ["fusion: does MatMul and BiasAdd and Relu at once"]


def test_what_is_left_out(told: Callable[[str], dict[str, Any]]) -> None:
    found = told("read")
    assert found["sentence"] == "Steps do without it."
    assert found["because"] == ["identities: passed on w:0"]


def test_what_is_computed_beforehand(told: Callable[[str], dict[str, Any]]) -> None:
    found = told("three")
    assert found["sentence"] == "Plans have its value as a constant."
    assert found["because"] == ["constant_folding: is constant"]


def test_what_is_computed_together(told: Callable[[str], dict[str, Any]]) -> None:
    found = told("exp")
    assert "together with others, tile by tile" in found["sentence"]
    group, alone = found["statements"]
    assert group.endswith(" nodes")
    assert alone.startswith("exp_1 = exp(times)")


def test_what_is_fed(told: Callable[[str], dict[str, Any]]) -> None:
    assert told("x")["sentence"] == "Steps are fed its value."


def test_what_no_output_needs(command: Command, model: Path) -> None:
    found = json.loads(command("explain", model, "init", "--json").output)["in_steps"]
    assert found["sentence"] == "Steps that fetch the graph's outputs do not need it."


def test_a_graph_that_cannot_run(command: Command, text_model: Callable[[str], Path]) -> None:
    path = text_model(
        'node { name: "x" op: "Placeholder" attr { key: "dtype" value { type: DT_FLOAT } } }'
        'node { name: "y" op: "Relu" input: "x" attr { key: "T" value { type: DT_FLOAT } } }'
        'node { name: "z" op: "Mystery" input: "y" }'
        'node { name: "out" op: "Relu" input: "z" attr { key: "T" value { type: DT_FLOAT } } }'
    )
    done = command("explain", path, "y")
    assert done.exit_code == 0, done.output
    assert "The graph cannot be run: " in done.output


def test_nodes_of_functions_have_no_step_of_their_own(command: Command) -> None:
    done = command("explain", FUNCTIONS, "cond_false_12/Neg", "--json")
    assert json.loads(done.output)["in_steps"] is None


def test_text_for_people(told: Callable[[str], dict[str, Any]], command: Command, tmp_path: Path):
    told("matmul")
    lines = command("explain", tmp_path / "dense.pb", "matmul").output.splitlines()
    start = lines.index("Steps run it as part of relu (_FusedMatMul).")
    assert lines[start + 1] == "  fusion: relu does MatMul and BiasAdd and Relu at once"
    assert lines[start + 2].startswith("  relu = fused(x, ")
