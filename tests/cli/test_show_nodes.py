"""`opkernel show MODEL NODE...` shows nodes whole; its filters list them."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.cli.conftest import Command

FUNCTIONS = Path(__file__).resolve().parents[1] / "data" / "graph_with_functions.pb"
DEBUG_INFO = """
debug_info {
  files: "train.py"
  frames_by_id { key: 1 value { file_index: 0 line: 30 func: "<module>" } }
  frames_by_id { key: 2 value { file_index: 0 line: 12 func: "layer" code: "  y = a @ b" } }
  traces_by_id { key: 7 value { frame_id: [1, 2] } }
  name_to_trace_id { key: "s/y@" value: 7 }
  traces { key: "x" value { file_line_cols { file_index: 9 line: 3 } } }
}
"""
MODEL = (
    'node { name: "x" op: "Placeholder" attr { key: "dtype" value { type: DT_FLOAT } }'
    '  attr { key: "shape" value { shape { dim { size: -1 } dim { size: 2 } } } } }'
    'node { name: "init" op: "NoOp" }'
    'node { name: "s/y" op: "BatchMatMulV2" input: "x" input: "x" input: "^init"'
    '  device: "/CPU:0" attr { key: "T" value { type: DT_FLOAT } }'
    '  attr { key: "adj_y" value { b: true } }'
    '  experimental_debug_info { original_node_names: "first" } }'
    'node { name: "s/both" op: "AddV2" input: "s/y" input: "s/y"'
    '  attr { key: "T" value { type: DT_FLOAT } } }'
    'node { name: "odd" op: "Mystery" input: "s/y" }'
) + DEBUG_INFO


@pytest.fixture
def shown(command: Command, text_model: Callable[[str], Path]) -> Callable[..., Any]:
    """What `opkernel show --json` tells of the model."""
    model = text_model(MODEL)

    def show(*arguments: str) -> Any:
        done = command("show", model, *arguments, "--json")
        assert done.exit_code == 0, done.output
        return json.loads(done.output)

    return show


def test_a_node_is_shown_whole(shown: Callable[..., Any]) -> None:
    (node,) = shown("s/y")
    assert node["op"] == "BatchMatMulV2"
    assert node["requested_device"] == "/CPU:0"
    attrs = {"T": "float", "adj_x": "false", "adj_y": "true"}
    assert node["attrs"] == attrs | {"grad_x": "false", "grad_y": "false"}
    assert node["inputs"] == [
        {"name": "x", "tensor": "x:0", "dtype": "float32", "shape": [None, 2]},
        {"name": "y", "tensor": "x:0", "dtype": "float32", "shape": [None, 2]},
    ]
    assert node["control_inputs"] == ["init"]
    assert node["outputs"] == [
        {
            "name": "output",
            "tensor": "s/y:0",
            "dtype": "float32",
            "shape": [None, None],
            "consumers": [
                {"node": "s/both", "input": 0},
                {"node": "s/both", "input": 1},
                {"node": "odd", "input": 0},
            ],
        }
    ]
    assert node["module"].startswith("opkernel.ops")
    assert node["problem"] == ""
    assert node["made_from"] == ["first"]


def test_where_a_node_was_defined(shown: Callable[..., Any]) -> None:
    y, x, both = shown("s/y", "x", "s/both")
    assert y["defined"] == [
        {"file": "train.py", "line": 12, "function": "layer", "code": "y = a @ b"},
        {"file": "train.py", "line": 30, "function": "<module>", "code": ""},
    ]
    assert [frame["line"] for frame in x["defined"]] == [3]
    assert both["defined"] == []


def test_text_for_people(command: Command, text_model: Callable[[str], Path]) -> None:
    lines = [*map(str.strip, command("show", text_model(MODEL), "s/y").output.splitlines())]
    assert lines[0] == "s/y: BatchMatMulV2"
    assert "device: /CPU:0" in lines
    assert "waits for: init" in lines
    assert "defined at train.py:12 in layer: y = a @ b" in lines
    assert "called at train.py:30 in <module>" in lines
    assert any(line.startswith("y      x:0") for line in lines)
    assert any(line.endswith("s/both (input 0), s/both (input 1), odd (input 0)") for line in lines)


def test_what_only_waits(shown: Callable[..., Any]) -> None:
    (init,) = shown("init")
    assert (init["outputs"], init["control_outputs"]) == ([], ["s/y"])


def test_an_unknown_op(shown: Callable[..., Any]) -> None:
    (odd,) = shown("odd")
    assert odd["problem"] == "the op Mystery is not registered"
    assert [one["tensor"] for one in odd["inputs"]] == ["s/y:0"]


def test_a_node_of_a_function(command: Command) -> None:
    done = command("show", FUNCTIONS, "cond_true_11/PartitionedCall", "--json")
    (node,) = json.loads(done.output)
    assert node["node"] == "cond_true_11/PartitionedCall"
    assert node["inputs"][0]["shape"] == [None, 3]
    assert node["run_by"] == "executor"


def test_a_wrong_name_is_told_the_nearest(command: Command) -> None:
    done = command("show", FUNCTIONS, "cond_true_11/PartitionedCal")
    assert done.exit_code == 1
    assert "perhaps you mean cond_true_11/PartitionedCall" in done.output


@pytest.mark.parametrize(
    ("filters", "names"),
    [
        (["--op", "BatchMatMul*"], ["s/y"]),
        (["--op", "MatMul"], None),
        (["--op", "matmul*"], None),
        (["--scope", "s"], ["s/y", "s/both"]),
        (["--scope", "s/"], ["s/y", "s/both"]),
        (["--scope", "s", "--op", "AddV2"], ["s/both"]),
        (["--name", "bo"], ["s/both"]),
        (["--name", "?"], ["x"]),
        (["--name", "s/*"], ["s/y", "s/both"]),
        (["--scope", "s/bo"], None),
    ],
)
def test_filters(
    shown: Callable[..., Any],
    command: Command,
    tmp_path: Path,
    filters: list[str],
    names: list[str] | None,
) -> None:
    if names is None:
        done = command("show", tmp_path / "model.pbtxt", *filters)
        assert done.exit_code == 1
        assert f"the graph has no node that fits {' '.join(filters)}" in done.output
    else:
        assert [one["node"] for one in shown(*filters)] == names


def test_filters_find_the_nodes_of_functions(command: Command) -> None:
    found = json.loads(command("show", FUNCTIONS, "--scope", "cond_false_12", "--json").output)
    assert [one["node"] for one in found] == ["cond_false_12/Neg", "cond_false_12/Identity"]


def test_filters_list_and_names_do_not(command: Command) -> None:
    done = command("show", FUNCTIONS, "x", "--op", "Neg")
    assert done.exit_code == 2
    assert "they go without NODE" in done.output
