"""What TensorFlow answered, as recorded in ../shared: requests, op calls, whole models."""

import lzma
import re
import subprocess
import sys
from collections import Counter
from pathlib import Path

import numpy as np
import pytest

import opkernel
from opkernel.cli.registered import recorded_vectors
from opkernel.kernel import get_registered_kernels_for_op

pytestmark = pytest.mark.shared

ANSWER = [sys.executable, str(Path(__file__).with_name("answer.py"))]
AREAS = ["attr_parse", "attr_value", "ctx_ops", "dtype", "function", "graph", "graph_memory"]
AREAS += ["kernel_def_build", "kernel_lookup", "memory_types", "names", "node_build"]
AREAS += ["node_validate", "op_build", "op_compat", "op_gen", "op_misc", "op_validate", "registry"]
AREAS += ["session", "shape_infer", "shape_infer_auto"]
OTHERWISE = {"kernel_lookup": {"kernel_lookup/real/4"}}
"""Asks for the C++ class of TensorFlow's kernel; a kernel here has the name of its own function."""
VECTOR_FILES = [
    "array",
    "dataflow",
    "image",
    "linalg",
    "math",
    "nn",
    "other",
    "parsing",
    "quantized",
    "random",
    "sparse",
]
WITH_LIBRARIES = {"image": "simplejpeg", "linalg": "scipy", "math": "scipy", "strings": "re2"}
"""The library without which some ops of a file refuse."""
MODELS = ["mlp", "conv_mix", "mobilenet_v2", "bert_tiny", "functional_control_flow"]


NOT_DETERMINED = {
    "Betainc": "TensorFlow's floats are up to 1e-4 off",
    "BesselY1": "TensorFlow's floats are off by 1e-3 for large numbers",
    "CTCLoss": "double gradients, which TensorFlow computes in float",
    "Cholesky": "of matrices near to none that have a factor",
    "CholeskyGrad": "of infinite factors",
    "Eig": "order of values, phases of vectors",
    "Expint": "of subnormal floats",
    "LogMatrixDeterminant": "of infinite matrices",
    "MatrixLogarithm": "the branch for eigenvalues below 0",
    "SelfAdjointEigV2": "signs of vectors",
    "Svd": "signs of vectors",
    "TridiagonalSolve": "of singular matrices that are perturbed",
}
"""Ops that may give something else than was recorded, and for what; `tests/ops` has their laws."""
BY_ONEDNN = {
    *Path(__file__).with_name("onednn_calls.txt").read_text(encoding="utf-8").split("\n")[1:]
}
"""Calls that were recorded without oneDNN, and are answered as TensorFlow answers them with it."""
OF_ONE_MACHINE = {"ImmutableConst", "MergeV2Checkpoints", "RestoreV2", "SaveV2"}
"""Ops whose calls in the advisories want files that stood where they were recorded."""


def wrong_ops(text: str) -> set[str]:
    """The ops with a wrong call, of the output of check.py, that shows all wrong calls."""
    wrong = re.findall(r"^(\w+) .* wrong$|^    (\w{16}) ", text, re.MULTILINE)
    ops, op = set(), ""
    for name, call in wrong:
        op = name or op
        if call and call not in BY_ONEDNN:
            ops.add(op)
    return ops


def output_of(command: list[str]) -> tuple[int, str]:
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    return done.returncode, done.stdout + done.stderr


@pytest.mark.parametrize("area", AREAS)
def test_every_recorded_answer_of_the_area_agrees(area: str, shared: Path) -> None:
    folder = shared / "conformance"
    compare = [sys.executable, str(folder / "compare.py"), "--show", "100"]
    status, text = output_of([*compare, str(folder / f"{area}.jsonl"), "--", *ANSWER])
    differing = set(re.findall(r"^ +(\S+/\S+) ", text, re.MULTILINE))
    assert differing == OTHERWISE.get(area, set()), text
    assert status == bool(differing), text


def test_no_area_is_left_out(shared: Path) -> None:
    assert {path.stem for path in (shared / "conformance").glob("*.jsonl")} == {*AREAS}


@pytest.mark.parametrize("name", [*VECTOR_FILES, "strings"])
def test_every_op_that_has_a_kernel_is_right_on_all_its_recorded_calls(
    name: str, shared: Path
) -> None:
    pytest.importorskip(WITH_LIBRARIES.get(name, "numpy"))
    folder = shared / "vectors"
    check = [sys.executable, str(folder / "check.py"), "--failing", "--show", "20"]
    _, text = output_of([*check, str(folder / f"{name}.jsonl.xz"), "--", *ANSWER])
    assert "ops: " in text
    assert wrong_ops(text) <= NOT_DETERMINED.keys(), text


def test_calls_that_once_crashed_tensorflow_end_as_there_now(shared: Path) -> None:
    folder = shared / "vectors"
    check = [sys.executable, str(folder / "check.py"), "--failing", "--show", "2"]
    _, text = output_of([*check, str(folder / "advisories.jsonl.xz"), "--", *ANSWER])
    wrong = set(re.findall(r"^(\w+) .* wrong$", text, re.MULTILINE))
    assert "ops: " in text
    assert wrong <= NOT_DETERMINED.keys() | OF_ONE_MACHINE, text


def test_what_coverage_says_of_the_calls_is_current(shared: Path) -> None:
    recorded = recorded_vectors()
    assert {op for op, (right, total) in recorded.items() if right < total} <= NOT_DETERMINED.keys()
    calls = Counter[str]()
    for name in (*VECTOR_FILES, "strings"):
        text = lzma.decompress((shared / "vectors" / f"{name}.jsonl.xz").read_bytes())
        calls.update(
            op.decode() for op in re.findall(rb'^{"id":"\w+","op":"(\w+)"', text, re.MULTILINE)
        )
    with_kernels = {
        op: count for op, count in calls.items() if get_registered_kernels_for_op(op).kernel
    }
    counted = {op: total for op, (_, total) in recorded.items() if op in with_kernels}
    assert counted == with_kernels, (
        "run: python tools/record_vectors.py, and make docs/coverage.md anew"
    )


@pytest.mark.parametrize("name", MODELS)
def test_a_recorded_model_gives_what_tensorflow_gave(name: str, shared: Path) -> None:
    folder = shared / "models" / name
    with np.load(folder / "case.npz") as stored:
        case = dict(stored)
    feeds = {key[len("feed:") :]: case[key] for key in case if key.startswith("feed:")}
    wanted = {key[len("fetch:") :]: case[key] for key in case if key.startswith("fetch:")}
    graph = opkernel.load_graph(folder / "graph.pb")
    got = opkernel.Session(graph).run({name: name for name in wanted}, feeds)
    for tensor, want in wanted.items():
        if want.dtype.kind == "f":
            bound = 1e-4 * np.maximum(np.abs(want), 0.1)
            assert np.all(np.abs(got[tensor] - want) <= bound), tensor
        else:
            np.testing.assert_array_equal(got[tensor], want)


def test_a_saved_model_of_text_gives_what_tensorflow_gave(shared: Path) -> None:
    pytest.importorskip("re2")
    folder = shared / "models" / "saved_text"
    with np.load(folder / "case.npz") as case:
        text = case["feed:text"].astype(object)
        wanted = {name: case[f"fetch:{name}"] for name in ("first", "scores")}
    got = opkernel.load(folder / "saved_model").signatures["serving_default"](text=text)
    assert got["first"].tolist() == wanted["first"].tolist()
    np.testing.assert_allclose(got["scores"], wanted["scores"], rtol=1e-5)
