"""Graphs that are bodies of functions, as TensorFlow's tools dump them: with `_Arg` and `_Retval` nodes."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.cli.conftest import Command

from opkernel import load_graph
from opkernel.errors import InvalidArgumentError

TextModel = Callable[[str], Path]

# What an executor of TensorFlow is given of the step `b - a`: feeds and fetches, by index in no order.
BODY = """
node { name: "y" op: "Sub" input: "_arg_b_0_1" input: "a" attr { key: "T" value { type: DT_FLOAT } } }
node { name: "_retval_a_0_1" op: "_Retval" input: "a"
  attr { key: "T" value { type: DT_FLOAT } } attr { key: "index" value { i: 1 } } }
node { name: "_arg_b_0_1" op: "_Arg"
  attr { key: "T" value { type: DT_FLOAT } } attr { key: "index" value { i: 1 } } }
node { name: "_arg_unused" op: "_DeviceArg"
  attr { key: "T" value { type: DT_INT32 } } attr { key: "index" value { i: 2 } } }
node { name: "_retval_y_0_0" op: "_Retval" input: "y"
  attr { key: "T" value { type: DT_FLOAT } } attr { key: "index" value { i: 0 } } }
node { name: "a" op: "_Arg"
  attr { key: "T" value { type: DT_FLOAT } } attr { key: "index" value { i: 0 } }
  attr { key: "_output_shapes" value { list { shape { dim { size: 2 } } } } } }
node { name: "dead_end" op: "Neg" input: "y" attr { key: "T" value { type: DT_FLOAT } } }
versions { producer: 1395 }
"""
FEEDS = ("--input", "a=[1,2]", "--input", "_arg_b_0_1=[10,20]")


def test_show_names_arguments_and_results_by_their_index(
    command: Command, text_model: TextModel
) -> None:
    shown = json.loads(command("show", text_model(BODY), "--json").output)
    assert [one["name"] for one in shown["inputs"]] == ["a:0", "_arg_b_0_1:0", "_arg_unused:0"]
    assert [one["name"] for one in shown["outputs"]] == ["y:0", "a:0"]
    assert shown["outputs"][1]["shape"] == [2]
    assert shown["not_runnable"] == {}


def test_show_reports_the_names_that_tensorflow_does_not_import(
    command: Command, text_model: TextModel
) -> None:
    path = text_model(BODY)
    done = command("show", path)
    assert done.exit_code == 0
    told = (
        "A session of TensorFlow refuses it: names that start with an underscore are TensorFlow's own, and its "
        "importer takes none: '_arg_b_0_1', '_arg_unused', '_retval_a_0_1', '_retval_y_0_0'"
    )
    assert told in done.output
    assert "Every op can run." in done.output
    with pytest.raises(InvalidArgumentError, match="'_retval_a_0_1': Node name contains invalid"):
        load_graph(path)


def test_run_takes_arguments_and_gives_results(command: Command, text_model: TextModel) -> None:
    path = text_model(BODY)
    assert command("run", path, *FEEDS).output == (
        "y:0  float32[2]\n[ 9. 18.]\na:0  float32[2]\n[1. 2.]\n"
    )
    done = command("run", path, *FEEDS, "--fetch", "_retval_y_0_0")
    assert done.output == "y:0  float32[2]\n[ 9. 18.]\n"


def test_run_asks_for_the_argument_that_is_not_fed(command: Command, text_model: TextModel) -> None:
    done = command("run", text_model(BODY), "--input", "a=[1,2]")
    assert done.exit_code == 1
    assert done.output == (
        "Error: INVALID_ARGUMENT: You must feed a value for argument 1 of the function, "
        "'_arg_b_0_1' with dtype float: --input _arg_b_0_1=VALUE, or --random\n"
    )


@pytest.mark.parametrize("options", [[], ["--numpy"]])
def test_decompile_writes_a_function_of_all_arguments(
    options: list[str], command: Command, text_model: TextModel, tmp_path: Path
) -> None:
    program = tmp_path / "body.py"
    command("decompile", text_model(BODY), "-o", program, *options)
    use = "import body; print(body.FEEDS, *body.model(a, a * 10, a)[0])"
    made = subprocess.run(
        [sys.executable, "-c", f"import numpy as np; a = np.float32([1, 2]); {use}"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=True,
    )
    assert made.stdout == "['a:0', '_arg_b_0_1:0', '_arg_unused:0'] 9.0 18.0\n"


def test_optimize_keeps_arguments_and_results(
    command: Command, text_model: TextModel, tmp_path: Path
) -> None:
    out = tmp_path / "out.pb"
    assert command("optimize", text_model(BODY), "-o", out).exit_code == 0
    kept = {op.name: op.type for op in load_graph(out, allow_internal_names=True).get_operations()}
    assert kept == {
        "a": "_Arg",
        "_arg_b_0_1": "_Arg",
        "_arg_unused": "_DeviceArg",
        "y": "Sub",
        "_retval_y_0_0": "_Retval",
        "_retval_a_0_1": "_Retval",
    }
    assert command("run", out, *FEEDS).output.startswith("y:0  float32[2]\n[ 9. 18.]\n")


def test_optimize_keeps_the_effects_of_a_body(
    command: Command, text_model: TextModel, tmp_path: Path
) -> None:
    effect = """
      node { name: "v" op: "_Arg"
        attr { key: "T" value { type: DT_RESOURCE } } attr { key: "index" value { i: 3 } } }
      node { name: "add" op: "AssignAddVariableOp" input: "v" input: "y"
        attr { key: "dtype" value { type: DT_FLOAT } } }
    """
    out = tmp_path / "out.pb"
    path = text_model(f"{BODY}{effect}")
    assert command("optimize", path, "-o", out).exit_code == 0
    kept = load_graph(out, allow_internal_names=True)
    assert [one.name for one in kept.get_operation_by_name("add").inputs] == ["v:0", "y:0"]
    assert command("optimize", path, "-o", out, "--fetch", "_retval_a_0_1").exit_code == 0
    kept = load_graph(out, allow_internal_names=True)
    assert {op.name for op in kept.get_operations()} == {"a", "_retval_a_0_1"}


def test_shapes_follow_those_of_arguments(command: Command, text_model: TextModel) -> None:
    path = text_model(BODY)
    done = command("shapes", path, "y", "--input", "_arg_b_0_1:3,1", "--json")
    (row,) = json.loads(done.output)
    assert row["shape"] == [3, 2]
    (row,) = json.loads(command("shapes", path, "y", "--json").output)
    assert row["unknown"] == ["argument '_arg_b_0_1'"]


def test_every_command_takes_the_names(
    command: Command, text_model: TextModel, tmp_path: Path
) -> None:
    path = text_model(BODY)
    assert command("explain", path, "_arg_b_0_1").exit_code == 0
    assert command("place", path).exit_code == 0
    assert command("ops", "--needed-by", path).exit_code == 0


def test_show_tells_what_it_can_of_nodes_that_make_no_graph(
    command: Command, text_model: TextModel
) -> None:
    path = text_model(BODY.replace('input: "y" attr', 'input: "nowhere" attr'))
    done = command("show", path, "--json")
    assert done.exit_code == 1
    text, _, error = done.output.partition("Error: INVALID_ARGUMENT: ")
    assert "Node 'dead_end': Unknown input node 'nowhere'" in error
    shown = json.loads(text)
    assert shown["ops"]["_Arg"] == 2
    assert shown["refused"] == [error.strip()]


def test_show_reports_devices_that_are_missing(command: Command, text_model: TextModel) -> None:
    node = 'node {{ name: "{}" op: "NoOp" device: "{}" }}'
    asked = {"a": "/CPU:0", "b": "/CPU:1", "c": "/job:w/CPU:1", "d": "/CPU:1", "e": "/nonsense"}
    path = text_model("".join(node.format(*one) for one in asked.items()))
    shown = json.loads(command("show", path, "--json").output)
    (refused,) = shown["refused"]
    assert refused == (
        "it takes further devices, or soft placement: '/CPU:1' (node 'b'), '/job:w/CPU:1' (node 'c'), "
        "'/nonsense' (node 'e')"
    )


def test_show_reports_functions_that_are_missing(command: Command, text_model: TextModel) -> None:
    path = text_model("""
      node { name: "c" op: "PartitionedCall"
        attr { key: "Tin" value { list { } } } attr { key: "Tout" value { list { } } }
        attr { key: "f" value { func { name: "gone" } } } }
      node { name: "g" op: "SymbolicGradient"
        attr { key: "Tin" value { list { type: DT_FLOAT } } } input: "x"
        attr { key: "Tout" value { list { type: DT_FLOAT } } }
        attr { key: "f" value { func { name: "Neg" } } } }
      node { name: "x" op: "Placeholder" attr { key: "dtype" value { type: DT_FLOAT } } }
    """)
    shown = json.loads(command("show", path, "--json").output)
    assert shown["refused"] == [
        "functions are called that the graph does not have: 'gone' (node 'c')"
    ]
