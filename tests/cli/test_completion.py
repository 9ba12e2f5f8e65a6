"""What shells are offered to complete a command line with."""

from pathlib import Path

import pytest
from click.shell_completion import ShellComplete

from opkernel.cli.commands import commands

FUNCTIONS = str(Path(__file__).resolve().parents[1] / "data" / "graph_with_functions.pb")


def offered(*words: str) -> list[str]:
    """What completes the last of the words."""
    *before, incomplete = words
    complete = ShellComplete(commands, {}, "opkernel", "_OPKERNEL_COMPLETE")
    return [item.value for item in complete.get_completions(list(before), incomplete)]


def test_commands() -> None:
    assert offered("op") == ["ops", "optimize"]


@pytest.mark.parametrize("command", [("ops",), ("kernels",), ("coverage",), ("test", "--op")])
def test_ops(command: tuple[str, ...]) -> None:
    found = offered(*command, "MatrixDet")
    assert found == ["MatrixDeterminant"]


@pytest.mark.parametrize("command", ["show", "explain"])
def test_nodes_with_those_of_functions(command: str) -> None:
    assert offered(command, FUNCTIONS, "cond_false_12/") == [
        "cond_false_12/Identity",
        "cond_false_12/Neg",
    ]
    assert "y" in offered(command, FUNCTIONS, "")


def test_ops_of_the_model() -> None:
    assert offered("show", FUNCTIONS, "--op", "P") == ["PartitionedCall", "Placeholder"]


@pytest.mark.parametrize(
    "before",
    [
        ("run", FUNCTIONS, "--fetch"),
        ("optimize", FUNCTIONS, "--fetch"),
        ("optimize", FUNCTIONS, "--feed"),
        ("decompile", FUNCTIONS, "--fetch"),
        ("decompile", FUNCTIONS, "--feed"),
        ("shapes", FUNCTIONS),
    ],
)
def test_tensors(before: tuple[str, ...]) -> None:
    assert offered(*before, "y") == ["y"]
    assert offered(*before, "cond_false_12/") == []


def test_inputs() -> None:
    assert offered("run", FUNCTIONS, "--input", "") == ["x="]
    assert offered("shapes", FUNCTIONS, "--input", "") == ["x:"]


@pytest.mark.parametrize("model", ["nowhere.pb", "-", __file__])
def test_what_is_no_model_has_no_nodes(model: str) -> None:
    assert offered("show", model, "") == []
    assert offered("run", "--fetch", "") == []


def test_names_that_steer_terminals_are_not_offered(tmp_path: Path) -> None:
    (tmp_path / "model.pbtxt").write_text(
        'node { name: "\\033[2J" op: "NoOp" } node { name: "good" op: "NoOp" }'
    )
    assert offered("show", str(tmp_path / "model.pbtxt"), "") == ["good"]


MODELS = Path(__file__).parent / "saved_models"
TWO, ONE = str(MODELS / "two"), str(MODELS / "one")


@pytest.mark.parametrize("command", ["show", "run", "freeze", "optimize", "decompile"])
def test_signatures_of_saved_models(command: str) -> None:
    assert offered(command, TWO, "--signature_def", "s") == ["scale", "serving_default"]
    assert offered(command, "--dir", TWO, "--signature_def", "p") == ["peek"]
    assert offered(command, ONE, "--tag_set", "serve,train", "--signature_def", "") == ["step"]
    assert offered(command, FUNCTIONS, "--signature_def", "") == []


def test_tag_sets_of_saved_models() -> None:
    assert offered("show", ONE, "--tag_set", "") == ["serve", "serve,train"]
    assert offered("run", TWO, "--tag_set", "") == ["serve"]


def test_inputs_and_outputs_of_a_signature() -> None:
    assert offered("run", TWO, "--input", "") == ["x="]
    scale = ("run", TWO, "--signature_def", "scale")
    assert offered(*scale, "--input", "") == ["factor=", "x="]
    assert offered(*scale, "--fetch", "") == ["scaled"]
    assert offered("run", TWO, "--fetch", "") == ["scores", "sum"]
