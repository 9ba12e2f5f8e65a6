"""`opkernel show --html`: the page, and times from what `opkernel run` writes."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.cli.conftest import Command
from tests.drawing.page_reader import ReadProgram, read_clusters, read_page

import opkernel
from opkernel import raw_ops
from opkernel.cli.files import InputFile
from opkernel.cli.model import Model
from opkernel.cli.model_page import drawn_programs
from opkernel.drawing import html_page

MODELS = Path(__file__).resolve().parents[1] / "data" / "saved_models"
DIGITS = Path(__file__).resolve().parents[2] / "examples" / "digits"
RUN = ("run", DIGITS / "digits.pb", "--input", f"images=@{DIGITS / 'images.npy'}")


def test_a_page_is_written(command: Command, tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    result = command("show", DIGITS / "digits.pb", "--html", page)
    assert result.exit_code == 0
    assert result.output.startswith(f"written to {page}, ")
    text = page.read_text("utf-8")
    assert "<title>digits.pb</title>" in text
    (program,) = read_page(text)
    assert not any(node["seconds"] for node in program.nodes.values())


@pytest.mark.parametrize("kind", ["profile", "trace"])
def test_times_come_from_a_run(kind: str, command: Command, tmp_path: Path) -> None:
    file, page = tmp_path / "times.json", tmp_path / "page.html"
    if kind == "trace":
        assert command(*RUN, "--repeat", "3", "--trace", file).exit_code == 0
    else:
        file.write_text(command(*RUN, "--repeat", "3", "--profile", "--json").output)
    result = command("show", DIGITS / "digits.pb", "--html", page, "--profile", file)
    assert result.exit_code == 0
    (program,) = read_page(page.read_text("utf-8"))
    assert program.nodes["MaxPool2d"]["seconds"] > 0


CALL = "StatefulPartitionedCall_1/StatefulPartitionedCall/StatefulPartitionedCall"
"""The call in the default signature of the model v2 in whose place its layer stands."""
PROFILE = {
    "profile": {
        "nodes": [
            {
                "node": "cluster_1",
                "op": "openvino",
                "ms": 4.0,
                "engine": "openvino",
                "operations": [
                    {"node": f"{CALL}/MatMul", "op": "_FusedMatMul", "ms": 2.5},
                    {"node": "made_by_a_pass", "op": "Mul", "ms": 0.5},
                ],
            },
            {"node": f"{CALL}/while", "op": "StatelessWhile", "ms": 1.0},
        ]
    }
}
TRACE = {
    "traceEvents": [
        {"ph": "X", "name": op, "ts": 0.0, "dur": took, "args": {"node": node}}
        for node, op, took in (
            ("cluster_1", "XlaLaunch", 5000.0),
            ("cluster_1/openvino", "openvino", 4000.0),
            (f"cluster_1/{CALL}/MatMul", "_FusedMatMul", 2500.0),
            ("cluster_1/made_by_a_pass", "Mul", 500.0),
            (f"{CALL}/while", "StatelessWhile", 1000.0),
        )
    ]
}


@pytest.mark.parametrize("times", [PROFILE, TRACE], ids=["profile", "trace"])
def test_clusters_are_listed_with_their_operations(
    command: Command, tmp_path: Path, times: dict[str, Any]
) -> None:
    (tmp_path / "times.json").write_text(json.dumps(times))
    page = tmp_path / "page.html"
    done = command("show", MODELS / "v2", "--html", page, "--profile", tmp_path / "times.json")
    assert done.exit_code == 0, done.output
    (cluster,) = read_clusters(page.read_text("utf-8"))
    assert cluster["label"] == "openvino cluster_1"
    assert cluster["seconds"] == pytest.approx(0.004)
    product, other = cluster["parts"]
    assert product == (
        f"{CALL}/MatMul",
        pytest.approx(0.0025),
        "serving_default",
        f"{CALL}/MatMul",
    )
    assert other == ("made_by_a_pass", pytest.approx(0.0005))
    first, *_ = read_page(page.read_text("utf-8"))
    assert first.nodes[f"{CALL}/MatMul"]["seconds"] == pytest.approx(0.0025)
    assert first.nodes[f"{CALL}/while"]["seconds"] == pytest.approx(0.001)


def test_a_cluster_of_a_run(command: Command, tmp_path: Path) -> None:
    pytest.importorskip("jax")
    file, page = tmp_path / "times.json", tmp_path / "page.html"
    file.write_text(command(*RUN, "--jit", "xla!", "--profile", "--json").stdout)
    done = command("show", DIGITS / "digits.pb", "--html", page, "--profile", file)
    assert done.exit_code == 0, done.output
    (cluster,) = read_clusters(page.read_text("utf-8"))
    assert cluster["label"].startswith("xla cluster_")  # numbers go on in a process
    assert cluster["seconds"] > 0
    drawn = {name for _, _, *place in cluster["parts"] for name in place[1:]}
    assert {"Relu", "MaxPool2d", "probabilities"} <= drawn


def test_a_profile_without_a_page_is_told(command: Command, tmp_path: Path) -> None:
    (tmp_path / "times.json").write_text("{}")
    result = command("show", DIGITS / "digits.pb", "--profile", tmp_path / "times.json")
    assert result.exit_code == 2
    assert "add --html FILE" in result.output


@pytest.mark.parametrize(
    "text",
    ["", "{}", "[]", "3", '{"profile": {"nodes": [{"node": 1}]}}', '{"traceEvents": 3}', "\0"],
)
def test_what_is_no_profile_is_told(text: str, command: Command, tmp_path: Path) -> None:
    file = tmp_path / "times.json"
    file.write_text(text)
    result = command(
        "show", DIGITS / "digits.pb", "--html", tmp_path / "page.html", "--profile", file
    )
    assert result.exit_code == 1
    assert "is no profile: it must be what `opkernel run --profile --json` prints" in result.output
    assert not (tmp_path / "page.html").exists()


def test_a_page_that_cannot_be_written(command: Command, tmp_path: Path) -> None:
    page = tmp_path / "nowhere" / "page.html"
    result = command("show", DIGITS / "digits.pb", "--html", page)
    assert result.exit_code != 0
    assert "Cannot write" in result.output


@pytest.fixture
def programs(command: Command, tmp_path: Path) -> Callable[..., list[ReadProgram]]:
    """The programs of the page of a SavedModel, with options of `show`."""

    def draw(model: Path, *options: str) -> list[ReadProgram]:
        result = command("show", model, "--html", tmp_path / "page.html", *options)
        assert result.exit_code == 0, result.output
        return read_page((tmp_path / "page.html").read_text("utf-8"))

    return draw


def test_a_saved_model_opens_on_its_default_signature(
    programs: Callable[..., list[ReadProgram]],
) -> None:
    first, *others = programs(MODELS / "v2")
    assert (first.kind, first.label) == ("signature", "serving_default")
    assert [one.label for one in others if one.kind == "signature"] == ["look_up"]
    assert "--all draws it" in first.note
    inside = {node["op"] for node in first.nodes.values()}
    assert {"MatMul", "Relu", "StatelessWhile"} <= inside
    assert not inside & {"SaveV2", "RestoreV2", "AssignVariableOp"}
    (product,) = first.with_op("MatMul")
    assert first.nodes[product]["outputs"] == ["float32 [?,2]"]
    assert list(first.nodes[product]["folded"].values()) == ["[3,2]"]


def test_inputs_and_outputs_have_the_names_of_the_signature(
    programs: Callable[..., list[ReadProgram]],
) -> None:
    first = programs(MODELS / "v2")[0]
    labels = {item[1] for item in first.tree if isinstance(item, list) and len(item) == 2}
    assert {"x", "y"} <= labels
    assert sum(node["kind"] == "input" for node in first.nodes.values()) == 2


def test_each_output_has_a_box(tmp_path: Path) -> None:
    class Several(opkernel.Module):
        @opkernel.function(input_signature=[opkernel.TensorSpec([2], opkernel.float32)])
        def __call__(self, x: Any) -> Any:
            twice = x + x
            return {"twice": twice, "again": twice, "same": x}

    module = Several()
    opkernel.save(module, tmp_path / "model")
    first, *_ = drawn_programs(Model(InputFile(str(tmp_path / "model"))), {}, is_all=False)
    outputs = {node.path: node for node in first.nodes if node.op == "output"}
    assert outputs.keys() == {"twice", "again", "same"}
    assert outputs["twice"].inputs == outputs["again"].inputs != outputs["same"].inputs
    assert {*map(tuple, (node.outputs for node in outputs.values()))} == {("float32 [2]",)}


def test_outputs_of_a_graph_leave_nodes_in_their_scopes(
    programs: Callable[..., list[ReadProgram]],
) -> None:
    first = programs(MODELS / "v1")[0]
    outputs = first.with_op("output")
    assert outputs
    for name in outputs:
        ((source, _),) = first.nodes[name]["inputs"]
        assert source in first.nodes


def test_functions_have_the_names_of_their_objects(
    programs: Callable[..., list[ReadProgram]],
) -> None:
    shown = [one.label for one in programs(MODELS / "v2") if one.kind == "function"]
    assert "__call__" in shown
    assert not any(label.startswith("__inference") for label in shown)
    everything = [one.label for one in programs(MODELS / "v2", "--all")]
    assert {"__call__", "look_up", "serve", "table._initialize", "_traced_save"} <= {*everything}


def test_all_draws_what_saves_and_restores(programs: Callable[..., list[ReadProgram]]) -> None:
    everything = programs(MODELS / "v1", "--all")
    (whole,) = (one for one in everything if one.kind == "graph")
    assert whole.with_op("SaveV2")
    assert not any(one.with_op("SaveV2") for one in programs(MODELS / "v1"))


def test_a_signature_can_be_chosen(programs: Callable[..., list[ReadProgram]]) -> None:
    (only,) = programs(MODELS / "v1", "--signature_def", "look_up")
    assert only.label == "look_up"


def test_calls_in_calls_are_drawn_in_the_scopes_of_their_layers(tmp_path: Path) -> None:
    @opkernel.function
    def dense(x: Any) -> Any:
        return raw_ops.Relu(features=raw_ops.Neg(x=x, name="neg"), name="relu")

    class Two(opkernel.Module):
        @opkernel.function(input_signature=[opkernel.TensorSpec([None, 3], opkernel.float32)])
        def __call__(self, x: Any) -> Any:
            graph = x.graph
            with graph.name_scope("first"):
                x = dense(x)
            with graph.name_scope("second"):
                return dense(x)

    opkernel.save(Two(), tmp_path / "model")
    model = Model(InputFile(str(tmp_path / "model")))
    first, *others = drawn_programs(model, {}, is_all=False)
    paths = {node.path for node in first.nodes}
    assert {"first/neg", "first/relu_0", "second/neg", "second/relu_0"} <= paths
    assert [one.label for one in others] == ["__call__"]


def test_functions_without_signature_name_the_variables_that_they_capture(tmp_path: Path) -> None:
    class Scaled(opkernel.Module):
        def __init__(self) -> None:
            super().__init__()
            self.factor = opkernel.Variable(np.float32(3), name="factor")

        @opkernel.function(input_signature=[opkernel.TensorSpec([2], opkernel.float32)])
        def scale(self, x: Any) -> Any:
            return x * self.factor

    opkernel.save(Scaled(), tmp_path / "model")
    programs = drawn_programs(Model(InputFile(str(tmp_path / "model"))), {}, is_all=False)
    (scale,) = (one for one in read_page(html_page(programs, "")) if one.label == "scale")
    (product,) = scale.with_op("Mul")
    assert list(scale.nodes[product]["folded"]) == ["factor"]
