"""`opkernel show MODEL --scan`: what a model could touch, and the exit status that says how severe it is."""

import json
from pathlib import Path
from typing import Any

import pytest
from tests.cli.conftest import Command

import opkernel
from opkernel.graph import Graph
from opkernel.opdef import global_op_registry
from opkernel.proto import GraphDef, NodeDef

MODELS = Path(__file__).parent / "saved_models"


def node(name: str, op: str, *inputs: str, **attrs: bytes) -> NodeDef:
    found = NodeDef(name=name, op=op, input=inputs)
    for attr, value in attrs.items():
        found.attr[attr].s = value
    return found


def file_name(name: str) -> NodeDef:
    with Graph().as_default() as graph:
        opkernel.raw_ops.Const(value=name.encode(), dtype=opkernel.string, name="name")
    return graph.as_graph_def().node[0]


CASES: dict[str, tuple[list[NodeDef], int, list[tuple[str, str, str]]]] = {
    "nothing": ([node("x", "Placeholder"), node("y", "Neg", "x")], 0, []),
    "read": (
        [file_name("/etc/passwd"), node("y", "ReadFile", "name")],
        3,
        [("medium", "ReadFile", "refused without --allow-read")],
    ),
    "write": (
        [node("x", "Placeholder"), node("y", "WriteFile", "x", "x")],
        4,
        [("high", "WriteFile", "refused without --allow-write")],
    ),
    "host": ([node("y", "XlaSendToHost", "x")], 4, [("high", "XlaSendToHost", "refused always")]),
    "callback": (
        [node("y", "XlaCallModule", module=b"ML\xefR\0xla_ffi_python_cpu_callback\0")],
        4,
        [("high", "XlaCallModule", "refused always")],
    ),
    "module": ([node("y", "XlaCallModule", module=b"ML\xefR\0stablehlo\0")], 0, []),
    "network": ([node("y", "RpcClient", "x")], 5, [("critical", "RpcClient", "refused always")]),
    "Python": ([node("y", "EagerPyFunc")], 5, [("critical", "EagerPyFunc", "refused always")]),
    "unknown": (
        [node("y", "SomebodysOp"), node("z", "ReadFile", "y")],
        5,
        [
            ("critical", "SomebodysOp", "refused: the op is not registered"),
            ("medium", "ReadFile", "refused without --allow-read"),
        ],
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_findings_of_graphs(command: Command, tmp_path: Path, case: str) -> None:
    nodes, status, wanted = CASES[case]
    graph_def = GraphDef(node=nodes)
    graph_def.versions.producer = 1395
    path = tmp_path / "model.pb"
    path.write_bytes(graph_def.SerializeToString())
    done = command("show", path, "--scan", "--json")
    facts = json.loads(done.output)
    assert done.exit_code == status
    assert [(f["severity"], f["op"], f["answer"]) for f in facts["findings"]] == wanted
    assert facts["severity"] == (wanted[0][0] if wanted else "none")
    plain = command("show", path, "--scan")
    assert plain.exit_code == status
    assert all(op in plain.output for _, op, _ in wanted)
    assert wanted or plain.output.startswith("It asks for no files but its own")


def test_a_saved_model_says_where(command: Command) -> None:
    done = command("show", MODELS / "two", "--scan", "--json")
    found: list[dict[str, Any]] = json.loads(done.output)["findings"]
    assert done.exit_code == 5
    assert [(one["op"], one["needed_by"]) for one in found] == [
        ("PyFunc", ["ask"]),
        ("ReadFile", ["peek"]),
    ]
    assert found[1]["nodes"][0].startswith("__inference_peek")


def test_names_of_files_stand_in_the_findings(command: Command, tmp_path: Path) -> None:
    nodes, _, _ = CASES["read"]
    (tmp_path / "model.pb").write_bytes(GraphDef(node=nodes).SerializeToString())
    done = command("show", tmp_path / "model.pb", "--scan", "--json")
    assert json.loads(done.output)["findings"][0]["files"] == ["/etc/passwd"]


def test_an_op_of_an_installed_library_is_low(
    command: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "scanned_library.py").write_text(
        "import opkernel\n"
        "from opkernel.opdef import scalar_shape\n"
        "opkernel.register_op('ScannedOp', outputs=['y: float'], shape_fn=scalar_shape)\n"
    )
    (tmp_path / "model.pb").write_bytes(GraphDef(node=[node("y", "ScannedOp")]).SerializeToString())
    monkeypatch.syspath_prepend(tmp_path)
    done = command(
        "show", tmp_path / "model.pb", "--scan", "--library", tmp_path / "scanned_library.py"
    )
    global_op_registry().unregister("ScannedOp")
    assert done.exit_code == 0, done.output
    assert "allowed: the library is installed" in done.output


def test_a_file_that_does_not_exist_is_wrong_use(command: Command, tmp_path: Path) -> None:
    assert command("show", tmp_path / "nowhere.pb", "--scan").exit_code == 2
