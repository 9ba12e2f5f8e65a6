import json
import re
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from tests.cli.conftest import Command
from tests.runtime.dataflow.loop_builders import INT32, Builder

from opkernel import Tensor, save_graph
from opkernel.cli import limits

FLOAT = 'attr { key: "T" value { type: DT_FLOAT } }'
PLACEHOLDER = 'op: "Placeholder" attr { key: "dtype" value { type: DT_FLOAT } }'
NEG = f'op: "Neg" {FLOAT}'

# `y` is what a frozen Keras model ends in: it waits for a NoOp. Nothing takes `unused`.
FROZEN = f"""
node {{ name: "x" {PLACEHOLDER} }}
node {{ name: "weight" op: "Const" attr {{ key: "dtype" value {{ type: DT_FLOAT }} }}
  attr {{ key: "value" value {{ tensor {{ dtype: DT_FLOAT tensor_shape {{}} float_val: 2 }} }} }} }}
node {{ name: "mul" op: "Mul" input: "x" input: "weight" {FLOAT} }}
node {{ name: "NoOp" op: "NoOp" input: "^weight" }}
node {{ name: "y" op: "Identity" input: "mul" input: "^NoOp" {FLOAT} }}
node {{ name: "unused" {PLACEHOLDER} }}
"""

PARTLY_UNKNOWN = f"""
node {{ name: "x" {PLACEHOLDER} }}
node {{ name: "mystery" op: "Mystery" input: "x" }}
node {{ name: "y" input: "mystery" {NEG} }}
node {{ name: "z" input: "x" {NEG} }}
"""

BRANCH = f"""
node {{ name: "x" {PLACEHOLDER} }}
node {{ name: "p" op: "Placeholder" attr {{ key: "dtype" value {{ type: DT_BOOL }} }} }}
node {{ name: "switch" op: "Switch" input: "p" input: "p"
  attr {{ key: "T" value {{ type: DT_BOOL }} }} }}
node {{ name: "pivot" op: "Identity" input: "switch:1"
  attr {{ key: "T" value {{ type: DT_BOOL }} }} }}
node {{ name: "y" input: "x" {NEG} }}
"""

ENDLESS = """
node { name: "i" op: "Const" attr { key: "dtype" value { type: DT_INT32 } }
  attr { key: "value" value { tensor { dtype: DT_INT32 tensor_shape {} int_val: 0 } } } }
node { name: "loop" op: "StatelessWhile" input: "i"
  attr { key: "T" value { list { type: DT_INT32 } } }
  attr { key: "cond" value { func { name: "always" } } }
  attr { key: "body" value { func { name: "same" } } } }
library {
  function {
    signature { name: "always" input_arg { name: "i" type: DT_INT32 }
      output_arg { name: "r" type: DT_BOOL } }
    node_def { name: "true" op: "Const" attr { key: "dtype" value { type: DT_BOOL } }
      attr { key: "value" value { tensor { dtype: DT_BOOL tensor_shape {} bool_val: true } } } }
    ret { key: "r" value: "true:output:0" }
  }
  function {
    signature { name: "same" input_arg { name: "i" type: DT_INT32 }
      output_arg { name: "r" type: DT_INT32 } }
    node_def { name: "pass" op: "Identity" input: "i"
      attr { key: "T" value { type: DT_INT32 } } }
    ret { key: "r" value: "pass:output:0" }
  }
}
"""

TextModel = Callable[[str], Path]


def test_results_are_printed_under_their_names_types_and_shapes(command: Command, model: Path):
    done = command(
        "run", model, "--input", "x=[[1,2,3],[6,5,4]]", "--input", "n=2", "--fetch", "top",
        "--fetch", "top:1",
    )  # fmt: skip
    assert done.output == (
        "top:0  float32[2,2]\n[[3. 2.]\n [6. 5.]]\ntop:1  int32[2,2]\n[[2 1]\n [0 1]]\n"
    )
    assert done.exit_code == 0


def test_json(command: Command, model: Path):
    done = command("run", model, "--input", "x=[[1,2,3]]", "--fetch", "x_out:0", "--json")
    assert json.loads(done.output) == {
        "x_out:0": {"dtype": "float32", "shape": [1, 3], "value": [[1.0, 2.0, 3.0]]}
    }


@pytest.mark.parametrize(
    ("feed", "fetch", "expected"),
    [
        ('x=[["NaN","Infinity",-Infinity]]', "x_out", [["NaN", "Infinity", "-Infinity"]]),
        ("brain=1.5", "brain_out", 1.5),
        ('complex=["1+2j"]', "complex_out", ["(1+2j)"]),
        ('text=["a", "\\u00e9"]', "text_out", ["a", "é"]),
        ("flag=[true, false]", "flag_out", [True, False]),
    ],
)
def test_json_holds_every_type(command: Command, model: Path, feed, fetch, expected):
    done = command("run", model, "--input", feed, "--fetch", fetch, "--json")
    assert done.exit_code == 0, done.output
    (result,) = json.loads(done.output, parse_constant=pytest.fail).values()
    assert result["value"] == expected


def test_without_fetches_the_outputs_are_computed(command: Command, text_model: TextModel):
    done = command("run", text_model(FROZEN), "--input", "x=[1, 2]", "--json")
    assert json.loads(done.output) == {
        "y:0": {"dtype": "float32", "shape": [2], "value": [2.0, 4.0]}
    }


def test_what_only_marks_a_branch_is_no_output(command: Command, text_model: TextModel):
    done = command("run", text_model(BRANCH), "--input", "x=1", "--input", "p=false", "--json")
    assert list(json.loads(done.output)) == ["y:0"]


def test_what_is_inside_a_loop_is_no_output(command: Command, tmp_path: Path):
    b = Builder()

    def up_to(i: Tensor, n: Tensor) -> Tensor:
        return b.op("Less", i, n)

    def body(i: Tensor, n: Tensor) -> list[Tensor]:
        inner = b.while_loop(up_to, lambda j, n: [b.op("AddV2", j, b.constant(1))], [i], [n])
        assert inner  # whose result nobody uses
        return [b.op("AddV2", i, b.constant(1))]

    (result,) = b.while_loop(up_to, body, [b.constant(0)], [b.placeholder("n", INT32)])
    b.op("Identity", result, name="outer")
    save_graph(b.graph, tmp_path / "loops.pb")
    done = command("run", tmp_path / "loops.pb", "--input", "n=3", "--json")
    assert {name: found["value"] for name, found in json.loads(done.output).items()} == {
        "outer:0": 3
    }


def test_any_tensor_can_be_fed(command: Command, text_model: TextModel):
    done = command("run", text_model(FROZEN), "--input", "mul=7", "--json")
    assert json.loads(done.output)["y:0"]["value"] == 7.0


def test_an_operation_without_outputs_is_run(command: Command, model: Path):
    done = command("run", model, "--fetch", "init", "--json")
    assert (done.exit_code, json.loads(done.output)) == (0, {})


def test_what_does_not_need_an_unknown_op_runs(command: Command, text_model: TextModel):
    path = text_model(PARTLY_UNKNOWN)
    assert "[-1.]" in command("run", path, "--input", "x=[1]", "--fetch", "z").output
    failed = command("run", path, "--input", "x=[1]", "--fetch", "y")
    assert failed.exit_code == 1
    assert "Op type not registered 'Mystery'" in failed.output
    fed = command("run", path, "--input", "mystery=[1]", "--fetch", "y")
    assert fed.exit_code == 1
    assert "its type is unknown, as op 'Mystery' is not registered" in fed.output


def test_npz_output_has_an_array_for_each_fetch(command: Command, model: Path, tmp_path: Path):
    path = tmp_path / "results.npz"
    feeds = {"x": "[[1,2,3]]", "n": "1", "brain": "[1.5]", "text": '["ab", "c"]'}
    fetches = ["top:0", "top:1", "brain_out:0", "text_out:0"]
    done = command(
        "run", model, "--output", path,
        *(part for name, value in feeds.items() for part in ("--input", f"{name}={value}")),
        *(part for name in fetches for part in ("--fetch", name)),
    )  # fmt: skip
    assert done.exit_code == 0, done.output
    assert f"written to {path}" in done.output
    with np.load(path) as results:
        assert list(results) == fetches
        assert results["top:0"].dtype == np.float32
        assert results["top:0"].tolist() == [[3.0]]
        assert results["top:1"].tolist() == [[2]]
        assert results["brain_out:0"].dtype == np.float32
        assert results["brain_out:0"].tolist() == [1.5]
        assert results["text_out:0"].tolist() == [b"ab", b"c"]


def test_results_can_be_fed_again(command: Command, model: Path, tmp_path: Path):
    path = tmp_path / "results.npz"
    command("run", model, "--input", "x=[[1,2,3]]", "--fetch", "x_out", "--output", path)
    done = command("run", model, "--input", f"x=@{path}:x_out:0", "--fetch", "x_out")
    assert done.output == "x_out:0  float32[1,3]\n[[1. 2. 3.]]\n"


def test_lost_zero_bytes_are_told(command: Command, model: Path, tmp_path: Path):
    path = tmp_path / "results.npz"
    done = command(
        "run", model, "--input", 'text=["a\\u0000"]', "--fetch", "text_out", "--output", path
    )
    assert "drops the zero bytes that end strings of text_out:0" in done.output


def test_many_values_are_abridged(command: Command, model: Path, tmp_path: Path):
    np.save(tmp_path / "many.npy", np.zeros(10_000, np.uint8))
    done = command("run", model, "--input", f"byte=@{tmp_path}/many.npy", "--fetch", "byte_out")
    assert done.output == "byte_out:0  uint8[10000]\n[0 0 0 ... 0 0 0]\n"


def test_a_timeout_ends_a_loop(
    command: Command, text_model: TextModel, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(limits, "_BEHIND_S", 60)  # the loop asks the budget, however slow it is
    done = command("run", text_model(ENDLESS), "--timeout", "0.2")
    assert done.exit_code == 1
    told = r"Error: DEADLINE_EXCEEDED: \w+: Timed out.* \(node '\w+', inputs int32\[\]\)\n"
    assert re.fullmatch(told, done.output)


def test_ctrl_c_ends_with_130(command: Command, model: Path, monkeypatch: pytest.MonkeyPatch):
    def interrupt(*arguments: object, **options: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("opkernel.cli.model.load_graph", interrupt)
    done = command("run", model)
    assert (done.exit_code, done.output) == (130, "")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--fetch", "x_out"], "You must feed a value for placeholder tensor 'x'"),
        (["--fetch", "nope"], "'nope', does not exist in the graph. The outputs of the graph: x_o"),
        (["--fetch", "top:2"], "'top', exists but only has 2 outputs"),
        (["--input", "nope=1"], "'nope', does not exist in the graph. The inputs of the graph: x:"),
        (
            ["--input", "x=[1,2]", "--fetch", "x_out"],
            r"Cannot feed value of shape (2,) for Tensor 'x:0', which has shape (?, 3)",
        ),
    ],
)
def test_what_fails_with_this_model_ends_with_1(command: Command, model: Path, arguments, message):
    done = command("run", model, *arguments)
    assert done.exit_code == 1
    assert message in done.output
    assert done.output.startswith("Error: ")
    assert done.output.count("\n") == 1


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--input", "x"], "--input 'x': expected NAME=VALUE or NAME=@FILE"),
        (["--input", "=1"], "--input '=1': expected NAME=VALUE or NAME=@FILE"),
        (["--input", "n=1", "--input", "n:0=2"], "--input: n:0 is fed twice"),
        (["--input", "x=one"], "--input x:0: 'one' is neither JSON nor @FILE"),
        (["--input", "x=@nope.npy"], "--input x:0: there is no file nope.npy"),
        (["--output", "results.txt"], "--output results.txt: results are written as .npz"),
        (["--output", "nope/r.npz"], "--output nope/r.npz: there is no directory nope"),
        (["--timeout", "0"], "--timeout 0: expected more than 0"),
        (["--timeout", "nan"], "--timeout nan: expected more than 0"),
        (["--timeout", "soon"], "'soon' is not a valid float"),
        (["--nope"], "No such option"),
    ],
)
def test_wrong_use_ends_with_2(command: Command, model: Path, arguments, message):
    done = command("run", model, *arguments)
    assert done.exit_code == 2
    assert message in done.output
    assert done.output.count("\n") == 1


def test_a_graph_without_outputs(command: Command, text_model: TextModel):
    done = command("run", text_model('node { name: "init" op: "NoOp" }'))
    assert done.exit_code == 2
    assert "name with --fetch what is asked for" in done.output


def test_resources_do_not_fit_into_npz(command: Command, text_model: TextModel, tmp_path: Path):
    path = text_model(
        'node { name: "list" op: "EmptyTensorList" input: "shape" input: "size"'
        '  attr { key: "element_dtype" value { type: DT_FLOAT } }'
        '  attr { key: "shape_type" value { type: DT_INT32 } } }'
        + "".join(
            f'node {{ name: "{name}" op: "Const" attr {{ key: "dtype" value {{ type: DT_INT32 }} }}'
            '  attr { key: "value" value { tensor {'
            "    dtype: DT_INT32 tensor_shape {} int_val: -1 } } } }"
            for name in ("shape", "size")
        )
    )
    done = command("run", path, "--output", tmp_path / "r.npz")
    assert done.exit_code == 1
    assert "list:0 is of type variant, which .npz files cannot hold" in done.output
    assert command("run", path).exit_code == 0
    assert command("run", path, "--json").exit_code == 0
