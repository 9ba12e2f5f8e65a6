import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import opkernel
from opkernel.types import DataType

FLOAT = DataType.DT_FLOAT


@pytest.fixture
def dense(tmp_path: Path) -> Path:
    """`y = Relu(x W + (1 + 1))`, its parts passed through Identities."""
    graph = opkernel.Graph()
    with graph.as_default():
        x = opkernel.placeholder(FLOAT, [None, 3], name="x")
        w = graph.create_op("Identity", [np.eye(3, dtype="f4")], name="w").outputs[0]
        ones = graph.create_op("AddV2", [np.ones(3, "f4"), np.ones(3, "f4")], name="two").outputs[0]
        product = graph.create_op("MatMul", [x, w], name="product").outputs[0]
        biased = graph.create_op("BiasAdd", [product, ones], name="biased").outputs[0]
        graph.create_op("Relu", [biased], name="y")
        graph.create_op("NoOp", name="init")
    path = tmp_path / "dense.pb"
    opkernel.save_graph(graph, path)
    return path


def nodes(path: Path) -> dict[str, str]:
    return {op.name: op.type for op in opkernel.load_graph(path).get_operations()}


def test_the_graph_that_is_written_computes_the_same(
    command: Callable[..., Any], dense: Path, tmp_path
):
    out = tmp_path / "out.pb"
    result = command("optimize", dense, "-o", out)
    assert result.exit_code == 0, result.output
    assert nodes(out)["y"] == "_FusedMatMul"
    assert sorted(nodes(out).values()) == ["Const", "Const", "Placeholder", "_FusedMatMul"]
    y = opkernel.Session(opkernel.load_graph(out)).run("y:0", {"x:0": np.full((1, 3), -1.0)})
    assert y.tolist() == [[1, 1, 1]]
    assert "10 nodes, now 4" in result.output
    assert "4 operations to compute, now 1 (75% fewer)" in result.output
    assert "constant_folding" in result.output
    assert "batch_norm_folding" not in result.output  # it changed nothing
    assert f"written to {out}" in result.output


def test_passes_are_chosen_by_name(command, dense, tmp_path):
    out = tmp_path / "out.pbtxt"
    assert command("optimize", dense, "-o", out, "--passes", "constant_folding").exit_code == 0
    assert set(nodes(out).values()) == {"Const", "Placeholder", "MatMul", "BiasAdd", "Relu"}
    assert command("optimize", dense, "-o", out, "--without", "fusion, identities").exit_code == 0
    assert "MatMul" in nodes(out).values()


def test_fetches_and_feeds_say_what_is_needed(command, dense, tmp_path):
    out = tmp_path / "out.pb"
    result = command(
        "optimize", dense, "-o", out, "--feed", "product", "--fetch", "biased", "--json"
    )
    assert json.loads(result.output)["nodes"] == {"before": 10, "after": 3}
    assert {"product", "biased"} <= set(nodes(out))
    assert nodes(out)["product"] == "Placeholder"
    assert command("optimize", dense, "-o", out, "--fetch", "init").exit_code == 0
    assert nodes(out) == {"init": "NoOp"}


def test_the_report_says_what_changed(command, dense, tmp_path):
    out = tmp_path / "out.pb"
    report = json.loads(command("optimize", dense, "-o", out, "--json").output)
    assert report["passes"]["fusion"] == 1
    assert report["passes"]["layout"] == 0
    assert report["operations"] == {"before": 4, "after": 1}
    assert report["ops"]["before"]["MatMul"] == 1
    assert report["ops"]["after"]["_FusedMatMul"] == 1
    assert list(report["ops"]["before"]) == sorted(report["ops"]["before"])
    changes = {(one["pass_name"], one["node"]): one for one in report["changes"]}
    assert changes["constant_folding", "two"]["what"] == "is constant"
    assert changes["fusion", "y"]["parts"] == ["product", "biased", "y"]
    text = command("optimize", dense, "-o", out, "--verbose").output
    assert "fusion: y does MatMul and BiasAdd and Relu at once" in text


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--passes", "folding"), "no optimization pass 'folding'"),
        (("--without", "x"), "no optimization pass 'x'"),
        (("-o", "/nowhere/at/all.pb"), "there is no directory"),
    ],
)
def test_wrong_use(command, dense, tmp_path, arguments, message):
    result = command("optimize", dense, "-o", tmp_path / "out.pb", *arguments)
    assert result.exit_code == 2
    assert message in result.output


def test_a_name_that_is_not_there(command, dense, tmp_path):
    result = command("optimize", dense, "-o", tmp_path / "out.pb", "--fetch", "z")
    assert result.exit_code == 1
    assert "z" in result.output


def test_functions_are_written_optimized_too(command, tmp_path):
    x = opkernel.TensorSpec([], FLOAT)

    @opkernel.function(input_signature=[x])
    def body(x):
        return x * (opkernel.constant(1.0) + opkernel.constant(1.0))

    graph = opkernel.Graph()
    with graph.as_default():
        start = opkernel.placeholder(FLOAT, [], name="x")
        (y,) = opkernel.while_loop(lambda x: x < 10.0, lambda x: (body(x),), [start])
        graph.create_op("Identity", [y], name="y")
    opkernel.save_graph(graph, tmp_path / "loop.pb")
    out = tmp_path / "out.pb"
    report = json.loads(command("optimize", tmp_path / "loop.pb", "-o", out, "--json").output)
    assert report["passes"]["constant_folding"] == 1
    assert report["passes"]["function_inlining"] == 1
    assert "AddV2" in report["ops"]["before"]
    assert "AddV2" not in report["ops"]["after"]
    with opkernel.Session(opkernel.load_graph(out), optimize=False) as session:
        assert session.run("y:0", {"x:0": 3.0}) == 12
