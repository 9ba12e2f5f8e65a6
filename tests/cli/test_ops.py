import json
import sys
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import ModuleType

import pytest
from tests.cli.conftest import Command, Process

import opkernel
from opkernel.opdef import unknown_shape
from opkernel.proto import GraphDef, NodeDef


def test_one_op_in_full(process: Process):
    """In a process of its own, for commands that list devices load more kernels."""
    (op,) = json.loads(process("ops", "MatMul", "--json").stdout)
    assert op["op"] == "MatMul"
    assert op["inputs"] == [{"name": "a", "type": "T"}, {"name": "b", "type": "T"}]
    assert op["outputs"] == [{"name": "product", "type": "T"}]
    assert op["attrs"][0] == {"name": "transpose_a", "type": "bool", "default": "false"}
    assert {"float", "bfloat16", "int32"} <= set(op["attrs"][2]["allowed"])
    assert op["is_stateful"] is False
    assert op["kernels"] == ["CPU"]


def test_one_op_as_a_table(process: Process):
    printed = process("ops", "ConcatV2").stdout
    lines = printed.partition("What is known of it")[0].splitlines()
    assert lines[0].startswith("ConcatV2: ")
    assert [line.split() for line in lines[1:-2]] == [
        ["name", "type", "default", "minimum", "allowed"],
        ["input", "values", "N", "*", "T"],
        ["input", "axis", "Tidx"],
        ["output", "output", "T"],
        ["attr", "N", "int", "2"],
        ["attr", "T", "type"],
        ["attr", "Tidx", "type", "int32", "int32,", "int64"],
    ]
    assert lines[-2].startswith("Traits: cannot_fail, ")
    assert lines[-1] == "Kernels: CPU"


def places(command: Command, op: str) -> dict[str, list[str]]:
    """What stands where: the names of the things of each kind, with their files."""
    (row,) = json.loads(command("ops", op, "--json").output)
    found: dict[str, list[str]] = {}
    for one in row["places"]:
        found.setdefault(one["what"], []).append(f"{one['name']} {one['file']}".strip())
    return found


def test_where_all_that_is_known_of_an_op_stands(command: Command):
    found = places(command, "Relu")
    assert found["declaration"] == ["Relu opkernel/ops/nn/activation.py"]
    assert found["shape function"] == [
        "unchanged_shape opkernel/opdef/common_shapes/elementwise.py"
    ]
    assert any("CPU" in one and "ops/nn/activation.py" in one for one in found["kernel"])
    assert found["gradient"] == ["Relu opkernel/ops/nn/activation.py"]
    assert found["OpenVINO rule"] == ["Relu opkernel/engines/openvino/ops/elementwise.py"]
    assert found["NumPy program"] == ["relu opkernel/decompile/numpy_functions/nn.py"]
    assert found["named by"] == [
        "fusion opkernel/optimization/fusion.py",
        "tfjs_nodes opkernel/graph/io/tfjs_nodes.py",
    ]
    assert found["library"] == ["none"]


def test_an_op_without_kernel_and_one_with_another_kernel(command: Command):
    found = places(command, "TPUExecute")
    assert found["declaration"] == ["TPUExecute opkernel/ops/declared/tensorflow_ops.pb.gz"]
    assert [found[kind] for kind in ("kernel", "gradient", "XLA rule")] == [["none"]] * 3
    assert any(one.startswith("blas: ") for one in places(command, "MatMul")["provider"])


@pytest.mark.parametrize("is_installed", [True, False])
def test_whether_the_library_is_installed(
    command: Command, monkeypatch: pytest.MonkeyPatch, is_installed: bool
):
    for name in ("PIL", "simplejpeg"):
        module = ModuleType(name)
        module.__spec__ = ModuleSpec(name, None)
        monkeypatch.setitem(sys.modules, name, module if is_installed else None)
    (found,) = places(command, "DecodeJpeg")["library"]
    if is_installed:
        assert found == "opkernel[image], which is installed"
    else:
        assert found == "opkernel[image], which is not installed: pip install 'opkernel[image]'"


def test_an_op_of_the_user_is_shown_with_its_own_file(command: Command):
    opkernel.register_op("OpsTestOwn", outputs=["y: float"], shape_fn=unknown_shape)
    assert places(command, "OpsTestOwn")["declaration"] == [f"OpsTestOwn {__file__}"]


@pytest.mark.parametrize(
    ("op", "traits"),
    [
        ("Neg", {"pointwise", "cannot_fail", "involution"}),
        ("While", {"calls=while"}),
        ("SparseMatrixSparseCholesky", set()),
        ("OpsTestTraits", {"pointwise", "even"}),
    ],
)
def test_what_passes_may_assume(command: Command, op: str, traits: set[str]):
    opkernel.register_op(
        "OpsTestTraits",
        inputs=["x: float"],
        outputs=["y: float"],
        shape_fn=unknown_shape,
        traits="pointwise even",
    )
    (row,) = json.loads(command("ops", op, "--json").output)
    assert traits <= set(row["traits"])
    assert bool(traits) is bool(row["traits"])
    assert f"Traits: {', '.join(row['traits']) or 'none'}\n" in command("ops", op).output


@pytest.mark.parametrize(
    ("pattern", "found"),
    [
        ("matmul", {"MatMul", "BatchMatMul", "BatchMatMulV2", "BatchMatMulV3"}),
        ("Arg*", {"ArgMax", "ArgMin"}),
        ("Add?2", {"AddV2"}),
    ],
)
def test_patterns(command: Command, pattern: str, found: set[str]):
    done = command("ops", pattern, "--json")
    names = [op["op"] for op in json.loads(done.output)]
    assert found <= set(names)
    assert names == sorted(names)
    assert all("matmul" in name.lower() or "*" in pattern or "?" in pattern for name in names)


def test_all_ops(command: Command):
    lines = command("ops").output.splitlines()
    assert lines[0].endswith(" ops")
    assert lines[1].split() == ["op", "kernels", "signature"]
    assert int(lines[0].split()[0].replace(",", "")) == len(lines) - 2 > 1000


def test_no_such_op(command: Command):
    done = command("ops", "MatMull")
    assert done.exit_code == 1
    assert done.output == (
        "Error: NOT_FOUND: there is no op 'MatMull'; perhaps you mean MatMul or BatchMatMul or "
        "SparseMatMul; --library names the file or module that registers such ops\n"
    )
    assert command("ops", "nothing*like").exit_code == 1


def test_ops_without_kernels_are_known(command: Command):
    (op,) = json.loads(command("ops", "SparseMatrixSparseCholesky", "--json").output)
    assert [arg["name"] for arg in op["inputs"]] == ["input", "permutation"]


def test_internal_ops_are_listed_when_asked_for(command: Command):
    assert "_Arg" not in command("ops").output
    assert "_Arg  " in command("ops", "_A").output


def test_what_models_need(process: Process, tmp_path: Path):
    """The ops of all nodes, those of functions too, and which of them are not known."""
    graph = GraphDef(node=[NodeDef(name="a", op="NoOp"), NodeDef(name="f", op="MyFunction")])
    function = graph.library.function.add()
    function.signature.name = "MyFunction"
    function.node_def.add(name="x", op="NeverHeardOf")
    first, second = tmp_path / "first.pb", tmp_path / "second.pb"
    first.write_bytes(graph.SerializeToString())
    second.write_bytes(GraphDef(node=[NodeDef(name="b", op="NoOp")]).SerializeToString())
    done = process("ops", "--needed-by", first, second)
    assert [line.split() for line in done.stdout.splitlines()] == [
        ["2", "ops"],
        ["op", "nodes", "kernels"],
        ["NeverHeardOf", "1", "unknown", "op"],
        ["NoOp", "2", "CPU"],
    ]
    assert process("ops", "--needed-by", first, "gone.pb").returncode == 2
