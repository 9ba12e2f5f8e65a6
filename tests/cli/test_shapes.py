import json
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.cli.conftest import Command

from opkernel import Graph, PartialTensorShape, load_graph, save_graph
from opkernel.types import float32

DATA = Path(__file__).resolve().parents[1] / "data"


@pytest.fixture
def dense(tmp_path: Path) -> Path:
    """x: [?, 3] times weights of [3, 2], where the result is positive, and a scalar n."""
    graph = Graph()
    attrs = {"dtype": float32, "shape": PartialTensorShape([None, 3])}
    x = graph.create_op("Placeholder", attrs=attrs, name="x").outputs[0]
    weights = [[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]]
    product = graph.create_op("MatMul", [x, weights], name="layer/product").outputs[0]
    graph.create_op("Where", [product], name="layer/where")
    graph.create_op("Placeholder", attrs={"dtype": float32}, name="n")
    path = tmp_path / "dense.pb"
    save_graph(graph, path)
    return path


def test_text_for_people(command: Command, dense: Path):
    done = command("shapes", dense)
    assert done.exit_code == 0
    lines = [line.split(maxsplit=3) for line in done.output.splitlines() if line]
    assert lines[1] == ["tensor", "type", "shape", "unknown because of"]
    assert lines[2:-1] == [
        ["x:0", "float32", "[?,3]", "placeholder 'x' dim 0"],
        ["layer/product/b:0", "float32", "[3,2]"],
        ["layer/product:0", "float32", "[?,2]", "placeholder 'x' dim 0"],
        ["layer/where:0", "int64", "[?,2]", "Where 'layer/where': the data decides"],
        ["n:0", "float32", "<unknown>", "placeholder 'n'"],
    ]
    assert done.output.splitlines()[-1] == "5 tensors, 1 with a fully known shape (20%)"


def test_given_shapes(command: Command, dense: Path):
    done = command("shapes", dense, "--input", "x:7,3", "--input", "n:")
    assert "layer/product:0    float32  [7,2]" in done.output
    assert "n:0                float32  []" in done.output
    assert done.output.splitlines()[-1] == "5 tensors, 4 with a fully known shape (80%)"
    named_in_full = command("shapes", dense, "--input", "x:0:7,?")
    assert "layer/product:0    float32  [7,2]" in named_in_full.output


def test_as_json(command: Command, dense: Path):
    shown = json.loads(command("shapes", dense, "--json").output)
    assert shown[3] == {
        "name": "layer/where:0",
        "op": "Where",
        "dtype": "int64",
        "shape": [None, 2],
        "unknown": ["Where 'layer/where': the data decides"],
    }
    assert shown[4]["shape"] is None


@pytest.mark.parametrize(
    ("pattern", "names"),
    [("layer", 3), ("layer/prod", 2), ("*:0", 5), ("layer/*[tb]:0", 2), ("x:0", 1)],
)
def test_patterns(command: Command, dense: Path, pattern: str, names: int):
    assert len(json.loads(command("shapes", dense, pattern, "--json").output)) == names


def test_the_shapes_are_written(command: Command, dense: Path, tmp_path: Path):
    for target in (tmp_path / "with_shapes.pb", tmp_path / "with_shapes.pbtxt"):
        done = command("shapes", dense, "--input", "x:7,3", "--write", target)
        assert done.exit_code == 0
        assert done.output.splitlines()[-1] == f"Wrote {target}"
        read = load_graph(target)
        (node,) = (op.node_def for op in read.get_operations() if op.name == "layer/product")
        shape = node.attr["_output_shapes"].list.shape[0]
        assert [dim.size for dim in shape.dim] == [7, 2]
        assert read.get_tensor_by_name("layer/product:0").shape.as_list() == [7, 2]


@pytest.mark.parametrize(
    ("arguments", "status", "message"),
    [
        (["--input", "x"], 2, "--input 'x': expected NAME:SHAPE"),
        (["--input", "x:2,a"], 2, "--input 'x:2,a': expected NAME:SHAPE"),
        (["--input", "x:2,-3"], 2, "expected NAME:SHAPE"),
        (["--input", ":2"], 2, "expected NAME:SHAPE"),
        (["--input", "x:2,"], 2, "expected NAME:SHAPE"),
        (["--input", f"x:{2**62},{2**62}"], 2, "is no shape"),
        (["--input", f"x:{10**30}"], 2, "is no shape"),
        (["--input", "x:2,3", "--input", "x:0:2,3"], 2, "the shape of x:0 twice"),
        (["--write", "/nowhere/at/all.pb"], 2, "there is no directory /nowhere/at"),
        (["--input", "z:2"], 1, "The inputs of the graph: x:0, n:0."),
        (["--input", "x:2,4"], 1, "[2,4] that is given for 'x:0' disagrees with [?,3]"),
        (["--input", "x:2"], 1, "given for 'x:0' disagrees with [?,3]"),
        (["nothing"], 1, "there is no tensor 'nothing'"),
    ],
)
def test_wrong_use(command: Command, dense: Path, arguments: list[str], status: int, message: str):
    done = command("shapes", dense, *arguments)
    assert done.exit_code == status
    assert message in done.output


def test_files_that_are_no_graph(command: Command, tmp_path: Path):
    done = command("shapes", DATA / "make_samples.py")
    assert done.exit_code == 1
    assert "not a GraphDef" in done.output


def test_ops_that_are_not_registered(command: Command, text_model: Callable[[str], Path]):
    path = text_model(
        'node { name: "m" op: "Mystery" } node { name: "o" op: "Other" input: "m:1" }'
    )
    done = command("shapes", path)
    assert done.exit_code == 0
    assert "op Mystery is not registered (node 'm')" in done.output


def test_a_contradiction(command: Command, text_model: Callable[[str], Path]):
    """It is an error of the command that is about shapes; `show` mentions it."""
    dtype = 'attr { key: "T" value { type: DT_FLOAT } }'
    shapes = "".join(
        f'node {{ name: "{name}" op: "Placeholder" attr {{ key: "dtype" value {{ type: DT_FLOAT }} }}'
        f' attr {{ key: "shape" value {{ shape {{ dim {{ size: {size} }} }} }} }} }}'
        for name, size in (("a", 2), ("b", 3))
    )
    path = text_model(f'{shapes} node {{ name: "s" op: "AddV2" input: "a" input: "b" {dtype} }}')
    done = command("shapes", path)
    assert done.exit_code == 1
    assert "must be equal, but are 2 and 3 for '{{node s}}" in done.output
    shown = command("show", path)
    assert shown.exit_code == 0
    assert "The shapes contradict each other: " in shown.output
    assert json.loads(command("show", path, "--json").output)["outputs"] == [
        {"name": "s:0", "dtype": "float32", "shape": None}
    ]


def test_show_looks_through_functions(command: Command):
    shown = json.loads(command("show", DATA / "graph_with_functions.pb", "--json").output)
    assert shown["outputs"] == [{"name": "y:0", "dtype": "float32", "shape": [None, 3]}]


def test_names_cannot_steer_the_terminal(command: Command, text_model: Callable[[str], Path]):
    done = command("shapes", text_model('node { name: "x" op: "\\033[2J\\007" }'))
    assert "\033" not in done.output
