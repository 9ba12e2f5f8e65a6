import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from tests.cli.conftest import Command

from opkernel import (
    DataType,
    Graph,
    placeholder,
    raw_ops,
    register_kernel,
    register_op,
    save_graph,
)
from opkernel.opdef import unknown_shape

DATA = Path(__file__).resolve().parents[1] / "data"

FUNCTIONS = DATA / "graph_with_functions.pb"

UNKNOWN = """
node { name: "x" op: "Placeholder" attr { key: "dtype" value { type: DT_STRING } } }
node { name: "m" op: "Mystery" input: "x" }
node { name: "y" op: "Neg" input: "m" attr { key: "T" value { type: DT_FLOAT } } }
node { name: "z" op: "Relu" input: "w" attr { key: "T" value { type: DT_UINT64 } } }
node { name: "w" op: "Placeholder" attr { key: "dtype" value { type: DT_UINT64 } } }
versions { producer: 27 }
"""


def test_a_graph_with_functions(command: Command):
    shown = json.loads(command("show", FUNCTIONS, "--json").output)
    assert shown["kind"] == "a binary GraphDef"
    assert shown["file_bytes"] == 2443
    assert shown["producer"] == 2474
    assert (shown["nodes"], shown["functions"]) == (6, 4)
    assert shown["inputs"] == [{"name": "x:0", "dtype": "float32", "shape": [None, 3]}]
    assert [output["name"] for output in shown["outputs"]] == ["y:0"]
    assert shown["ops"]["PartitionedCall"] == 2, "one of them is in a function"
    assert shown["ops"]["StatelessIf"] == 1
    assert list(shown["ops"].values()) == sorted(shown["ops"].values(), reverse=True)
    assert shown["not_runnable"] == {}
    # 100 int32; 2 x 3 float16; strings of 2 and 4 bytes; in functions a float32 and an int32[2]
    assert shown["weight_bytes"] == 400 + 12 + 6 + 4 + 8


def test_text_for_people(command: Command):
    done = command("show", FUNCTIONS)
    assert done.exit_code == 0
    lines = [line.strip() for line in done.output.splitlines()]
    assert lines[0] == f"{FUNCTIONS}: a binary GraphDef, 2.4 kB"
    assert lines[1] == "6 nodes, 4 functions, 430 bytes of weights, producer version 2474"
    assert "x:0     float32  [?,3]" in lines
    assert "PartitionedCall  2" in lines
    assert lines[-1] == "Every op can run."


def test_text_format_is_shown_as_the_binary_one(command: Command):
    binary, text = (
        json.loads(command("show", FUNCTIONS.with_suffix(end), "--json").output)
        for end in (".pb", ".pbtxt")
    )
    assert text["kind"] == "a GraphDef in text format"
    for fact in ("inputs", "outputs", "ops", "weight_bytes"):
        assert text[fact] == binary[fact]


def test_what_cannot_run_is_listed_with_the_reason(
    command: Command, text_model: Callable[[str], Path]
):
    path = text_model(UNKNOWN)
    shown = json.loads(command("show", path, "--json").output)
    assert shown["producer"] == 27
    assert shown["ops"] == {"Placeholder": 2, "Mystery": 1, "Neg": 1, "Relu": 1}
    assert shown["not_runnable"]["Mystery"] == "unknown op"
    done = command("show", path)
    assert done.exit_code == 0
    assert "Not runnable yet: Mystery" in done.output.splitlines()[-1]


@pytest.mark.parametrize(
    ("op", "dtype", "reason"),
    [
        ("CliPartial", "DT_FLOAT", None),
        ("CliPartial", "DT_INT32", "no CPU kernel for T = int32, hidden = float"),
        ("CliBare", "DT_FLOAT", "no CPU kernel"),
    ],
)
def test_a_kernel_must_be_for_the_types_of_the_node(
    command: Command, text_model: Callable[[str], Path], op: str, dtype: str, reason: str | None
):
    for name in ("CliPartial", "CliBare"):
        register_op(
            name,
            inputs=["x: T"],
            outputs=["y: T"],
            attrs=["T: {float, int32}", "hidden: {float} = DT_FLOAT"],
            shape_fn=unknown_shape,
        )
    register_kernel(
        "CliPartial", device="CPU", types={"T": [DataType.DT_FLOAT], "hidden": [DataType.DT_FLOAT]}
    )(np.negative)
    node = f'name: "y" op: "{op}" input: "x" attr {{ key: "T" value {{ type: {dtype} }} }}'
    path = text_model(
        f'node {{ name: "x" op: "Placeholder" attr {{ key: "dtype" value {{ type: {dtype} }} }} }}'
        f"node {{ {node} }}"
        'library { function { signature { name: "f"'
        f'    input_arg {{ name: "x" type: {dtype} }} output_arg {{ name: "r" type: {dtype} }} }}'
        f"  node_def {{ {node} }}"
        '  ret { key: "r" value: "y:y:0" } } }'
    )
    shown = json.loads(command("show", path, "--json").output)
    assert shown["ops"][op] == 2
    assert shown["not_runnable"] == ({} if reason is None else {op: reason})


@pytest.mark.parametrize("op", ["Enter", "Exit", "NextIteration"])
def test_loops_of_tensorflow_1_run(command: Command, text_model: Callable[[str], Path], op: str):
    frame = 'attr { key: "frame_name" value { s: "f" } }' if op == "Enter" else ""
    path = text_model(
        'node { name: "x" op: "Placeholder" attr { key: "dtype" value { type: DT_FLOAT } } }'
        f'node {{ name: "y" op: "{op}" input: "x"'
        f'  attr {{ key: "T" value {{ type: DT_FLOAT }} }} {frame} }}'
    )
    shown = json.loads(command("show", path, "--json").output)
    assert shown["not_runnable"] == {}


def test_names_cannot_steer_the_terminal(command: Command, text_model: Callable[[str], Path]):
    path = text_model('node { name: "x" op: "\\033[2J\\007" }')
    done = command("show", path)
    assert done.exit_code == 0
    assert "\033" not in done.output
    assert "\\x1b[2J\\x07" in done.output


def test_inputs_that_no_output_needs_stand_apart(command: Command, tmp_path: Path):
    with Graph().as_default() as graph:
        x = placeholder(DataType.DT_FLOAT, [2], name="x")
        raw_ops.Relu(features=x, name="y")
        placeholder(DataType.DT_BOOL, [], name="training")
        path = placeholder(DataType.DT_STRING, [], name="path")
        raw_ops.WriteFile(filename=path, contents="all", name="save")
    save_graph(graph, tmp_path / "model.pb")
    facts = json.loads(command("show", tmp_path / "model.pb", "--json").output)
    assert [one["name"] for one in facts["inputs"]] == ["x:0", "path:0"]
    assert facts["unused_inputs"] == [{"name": "training:0", "dtype": "bool", "shape": []}]
    tables = command("show", tmp_path / "model.pb").output.split("\n\n")
    assert [table.splitlines()[0] for table in tables[1:4]] == [
        "Inputs",
        "Inputs that no output needs",
        "Outputs",
    ]
    assert "training:0" in tables[2]


def test_a_graph_without_its_weights(command: Command, tmp_path: Path):
    """Files of weights that lie elsewhere are no part of a graph, and a constant without values is zeros."""
    const = """node { name: "%s" op: "Const" attr { key: "dtype" value { type: DT_FLOAT } }
      attr { key: "value" value { tensor { dtype: DT_FLOAT tensor_shape { dim { size: %d } } %s } } } }\n"""
    path = tmp_path / "stripped.pbtxt"
    path.write_text(const % ("w", 1000, "") + const % ("b", 10, "float_val: 2"))
    facts = json.loads(command("show", path, "--json").output)
    assert (facts["weight_bytes"], facts["missing_weight_bytes"]) == (40, 4000)
    assert "Warning: constants of 4.0 kB have no values" in command("show", path).output
    path.write_text(const % ("w", 10, "") + const % ("b", 10, "float_val: 2"))
    assert "missing_weight_bytes" not in json.loads(command("show", path, "--json").output)
