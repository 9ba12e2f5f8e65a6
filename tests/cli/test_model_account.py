"""`show`, `coverage` and `doctor` of a SavedModel count what its signature runs, as `explain` does, and say what else the file has."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.cli.conftest import Command

import opkernel
from opkernel import TensorSpec, raw_ops

MODELS = Path(__file__).parent / "saved_models"
ONE, TWO = MODELS / "one", MODELS / "two"
V1, V2 = (Path(__file__).parents[1] / "data" / "saved_models" / name for name in ("v1", "v2"))
META = MODELS / "meta" / "model.ckpt.meta"


@pytest.fixture
def json_of(command: Command) -> Callable[..., Any]:
    """What a command prints with `--json`, whatever its status."""
    return lambda *words: json.loads(command(*words, "--json").stdout)


ACCOUNTS = {
    TWO: ("serving_default", 7, 2, 46, 60),
    V1: ("serving_default", 4, 4, 4, 43),
    V2: ("serving_default", 10, 2, 48, 61),
}
"""The default signature, its operations and its variables; the nodes of other signatures; those that save and restore."""


@pytest.mark.parametrize("path", ACCOUNTS, ids=lambda path: path.name)
def test_one_account(json_of: Callable[..., Any], path: Path) -> None:
    (shown,) = json_of("show", path)["meta_graphs"]
    for facts in (shown, json_of("coverage", path), json_of("doctor", path)):
        runs, beside = facts["runs"], facts["beside"]
        assert (
            runs["signature"],
            runs["operations"],
            runs["variables_as_constants"],
            beside["others"],
            beside["plumbing"],
        ) == ACCOUNTS[path]
        assert not {"SaveV2", "RestoreV2", "AssignVariableOp", "VarHandleOp"} & runs["ops"].keys()
        assert runs["ops"]["MatMul"] == 1
    off, *_ = json_of("explain", path, "--jit", "xla")
    sizes = ("operations", "functions", "calls", "variables_as_constants", "variables_read")
    wanted = ("signature", *sizes)
    assert {key: off[key] for key in wanted} == {key: runs[key] for key in wanted}


def test_a_signature_that_is_named(json_of: Callable[..., Any], command: Command) -> None:
    for words in (("show", ONE), ("coverage", ONE), ("doctor", ONE)):
        runs = json_of(*words, "--signature_def", "predict")["runs"]
        assert runs["ops"] == {
            "Identity": 4,
            "Const": 3,
            "Placeholder": 1,
            "ConcatV2": 1,
            "MatMul": 1,
        }
        done = command(*words, "--signature_def", "nothing")
        assert done.exit_code == 1
        assert "the model has no signature 'nothing'; it has numbers, predict" in done.output


def test_variables_that_a_signature_assigns_to_are_read(json_of: Callable[..., Any]) -> None:
    runs = json_of("show", TWO, "--signature_def", "count")["runs"]
    assert (runs["variables_as_constants"], runs["variables_read"]) == (0, 1)
    assert runs["ops"]["AssignAddVariableOp"] == 1


def test_what_people_read(command: Command) -> None:
    sentences = (
        "Signature serving_default runs 7 operations with functions inlined and 2 variables as constants.\n"
        "The file also has 46 nodes of other signatures and functions and 60 nodes to save, restore and initialise the "
        "model.\n"
    )
    for words in (
        ("show", TWO),
        ("show", TWO, "--signature_def", "serving_default"),
        ("coverage", TWO),
        ("doctor", TWO),
    ):
        text = command(*words).stdout
        assert sentences in text, words
        assert "SaveV2" not in text
    assert "SaveV2" in command("show", TWO, "--all").stdout
    text = command("show", ONE).stdout
    assert "--signature_def NAME shows what one of its signatures runs." in text
    assert "61 of the nodes save, restore and initialise the model." in text


def test_a_graph_without_signatures(json_of: Callable[..., Any], command: Command) -> None:
    (found,) = json_of("show", META)["meta_graphs"]
    assert found["runs"] is None
    assert found["beside"] == {"others": 0, "plumbing": 23}
    assert found["ops"]["SaveV2"] == 1
    assert "23 of the nodes save, restore and initialise the model." in command("show", META).stdout


def test_nothing_is_read_but_the_graph(json_of: Callable[..., Any], tmp_path: Path) -> None:
    (tmp_path / "alone").mkdir()
    shutil.copy(TWO / "saved_model.pb", tmp_path / "alone")
    (found,) = json_of("show", tmp_path / "alone")["meta_graphs"]
    assert found["runs"]["operations"] == 7


def test_the_doctor_judges_the_signature(command: Command, json_of: Callable[..., Any]) -> None:
    done = command("doctor", TWO)
    assert done.exit_code == 0
    assert "Every op can run.\n" in done.stdout
    assert "Note: PyFunc: needs a function of a program (needed by ask)\n" in done.stdout
    done = command("doctor", TWO, "--signature_def", "ask")
    assert done.exit_code == 1
    assert "Problem: PyFunc: needs a function of a program\n" in done.stdout
    facts = json_of("doctor", TWO)
    assert facts["not_runnable"] == {"PyFunc": "needs a function of a program"}
    assert facts["elsewhere"] == {"PyFunc": ["ask"]}


class Resizing(opkernel.Module):
    """A model whose variable gives the sizes of a reshape: constants of unknown value would contradict its shapes."""

    def __init__(self) -> None:
        super().__init__()
        self.sizes = opkernel.Variable([2, 3], dtype=opkernel.int32, name="sizes")

    @opkernel.function(input_signature=[TensorSpec([6], opkernel.float32, name="x")])
    def __call__(self, x: Any) -> Any:
        return {"y": raw_ops.Reshape(tensor=x, shape=raw_ops.Identity(input=self.sizes))}


def test_shapes_that_variables_give(json_of: Callable[..., Any], tmp_path: Path) -> None:
    module = Resizing()
    opkernel.save(module, tmp_path / "m", signatures={"serving_default": module.__call__})
    (found,) = json_of("show", tmp_path / "m")["meta_graphs"]
    assert found["runs"]["ops"]["Reshape"] == 1
    assert found["runs"]["operations"] == 1


def test_an_op_that_nobody_knows(
    json_of: Callable[..., Any], command: Command, tmp_path: Path
) -> None:
    path = tmp_path / "model"
    shutil.copytree(TWO, path)
    message = opkernel.load_as_session(path).meta_graph
    for function in message.graph_def.library.function:
        for node in function.node_def:
            if node.op == "MatMul":
                node.op = "AnOpThatNobodyKnows"
    saved = opkernel.proto.SavedModel(saved_model_schema_version=1, meta_graphs=[message])
    (path / "saved_model.pb").write_bytes(saved.SerializeToString())
    (found,) = json_of("show", path)["meta_graphs"]
    assert "AnOpThatNobodyKnows" in found["not_runnable"]
    done = command("doctor", path)
    assert done.exit_code == 1
    assert "Problem: AnOpThatNobodyKnows: unknown op" in done.stdout
