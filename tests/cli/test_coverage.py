"""`opkernel coverage`: what there is of ops, and what of a model is missing."""

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.cli.conftest import Command, Process

import opkernel
from opkernel import raw_ops
from opkernel.errors import NotFoundError
from opkernel.kernel import OpKernel, global_kernel_registry
from opkernel.opdef import global_op_registry, unchanged_shape
from opkernel.types import DataType

ROOT = Path(__file__).resolve().parents[2]
TWO = Path(__file__).parent / "saved_models" / "two"
STRANGE = """
node { name: "x" op: "Placeholder" attr { key: "dtype" value { type: DT_INT32 } } }
node {
  name: "seen" op: "XlaSetDynamicDimensionSize" input: "x" input: "x" input: "x"
  attr { key: "T" value { type: DT_INT32 } }
}
node { name: "a" op: "Identity" input: "seen" attr { key: "T" value { type: DT_INT32 } } }
node { name: "b" op: "NobodysOp" input: "seen" }
node { name: "c" op: "Identity" input: "x" attr { key: "T" value { type: DT_INT32 } } }
"""


def rows(command: Command, *arguments: object) -> dict[str, dict[str, Any]]:
    return {row["op"]: row for row in json.loads(command("coverage", *arguments, "--json").output)}


def test_the_facts_of_ops(command: Command) -> None:
    found = rows(command, "MatMul")
    assert found["MatMul"] == {
        "op": "MatMul",
        "run_by": "kernel",
        "devices": ["CPU"],
        "types": {
            "CPU": {
                "T": ["bfloat16", "half", "float", "double", "int32", "int64", "complex64",
                      "complex128"],
            }
        },
        "gaps": {"CPU": {"T": ["uint8", "uint16", "uint32", "uint64"]}},
        "shape_function": True,
        "gradient": "yes",
        "vectors": {"right": 111, "total": 111},
        "note": "",
    }  # fmt: skip


def test_what_is_not_there_is_told_apart(command: Command) -> None:
    found = rows(command, "[A-Z]*")
    assert found["While"]["run_by"] == "runtime"
    assert found["TPUExecute"]["run_by"] == "nothing"
    assert "JPEG XL" in found["DecodeJxl"]["note"]
    assert found["TPUExecute"]["note"] == "needs a TPU"
    assert found["OneHot"]["gradient"] == "none"
    assert found["Where"]["gradient"] == ""
    assert found["WorkerHeartbeat"]["shape_function"] is False  # TensorFlow has none either


def test_the_page_is_current(process: Process) -> None:
    done = process("coverage", "--markdown")
    page = (ROOT / "docs" / "coverage.md").read_text(encoding="utf-8")
    assert page == done.stdout, "run: opkernel coverage --markdown > docs/coverage.md"
    assert "\n| `Abs` | CPU | yes | yes | 101 of 101 |  |\n" in page


def test_what_of_a_model_is_missing_and_who_needs_it(command: Command) -> None:
    facts = json.loads(command("coverage", TWO, "--json").output)
    missing = [op for op in facts["ops"] if op["missing"]]
    assert [(op["op"], op["count"], op["needed_by"]) for op in missing] == [("PyFunc", 1, ["ask"])]
    printed = command("coverage", TWO).output.splitlines()
    assert printed[3] == "1 op cannot run"
    assert (
        " ".join(printed[5].split())
        == "PyFunc needs a function of a program 1 __inference_ask_97/PyFunc ask"
    )


def test_outputs_of_a_graph_need_ops(command: Command, text_model: Callable[[str], Path]) -> None:
    done = command("coverage", text_model(STRANGE))
    lines = [line.split() for line in done.output.splitlines()]
    assert ["XlaSetDynamicDimensionSize", "no", "CPU", "kernel;"] in [line[:4] for line in lines]
    facts = json.loads(command("coverage", text_model(STRANGE), "--json").output)
    needed = {op["op"]: op["needed_by"] for op in facts["ops"] if op["missing"]}
    assert needed == {"XlaSetDynamicDimensionSize": ["a:0", "b"], "NobodysOp": ["b"]}


def test_a_model_that_lacks_nothing(command: Command, model: Path) -> None:
    lines = command("coverage", model).output.splitlines()
    assert lines[1] == "Every op can run."
    assert lines[2] == "Without gradient: NoOp, Placeholder"


@pytest.fixture
def own_op() -> Iterator[str]:
    """An op of one's own, with a kernel for one of its types."""
    name = "CoverageInTests"
    opkernel.register_op(
        name,
        inputs=["x: T"],
        outputs=["y: T"],
        attrs=["T: {float, int32}"],
        shape_fn=unchanged_shape,
    )
    opkernel.register_kernel(name, device="CPU", types={"T": [DataType.DT_FLOAT]})(OpKernel)
    yield name
    for one in global_kernel_registry().registrations_for(name):
        global_kernel_registry().unregister(one)
    global_op_registry().unregister(name)


def test_ops_of_ones_own(command: Command, own_op: str) -> None:
    found = rows(command, "InTests", "--own")
    assert found[own_op]["gaps"] == {"CPU": {"T": ["int32"]}}
    assert rows(command, "Conv2D", "--own") == {}
    assert f"| `{own_op}` | CPU (T: float) | yes |  |  |  |\n" in (
        command("coverage", own_op, "--own", "--markdown").output
    )


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["Conv2E"], "there is no op 'Conv2E'"),
        (["Conv2D", "--tag_set", "serve"], "--tag_set goes with a MODEL"),
        ([TWO, "--markdown"], "--own and --markdown go without MODEL"),
    ],
)
def test_wrong_use(command: Command, arguments: list[object], told: str) -> None:
    done = command("coverage", *arguments)
    assert done.exit_code in (1, 2)
    assert told in done.output


def test_errors_say_why_an_op_has_no_kernel() -> None:
    with pytest.raises(NotFoundError, match="Saver has no kernel: it writes"):
        raw_ops.CalibrationStatisticsSaver(
            args=[np.float32(1)], ids=["a"], calibration_methods=[1], output_file_path="x"
        )
