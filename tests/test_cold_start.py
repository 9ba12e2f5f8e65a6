"""What a process loads that runs one straight graph: what the graph does not need stays on disk."""

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import opkernel

ROOT = Path(__file__).resolve().parent.parent

SCRIPT = """
import opkernel, numpy as np
session = opkernel.Session(opkernel.load_graph({model!r}))
print(session.run("y:0", {{"x:0": np.load({value!r})}}).shape)
"""
COMMAND = """
import sys
from opkernel.cli.main import main
sys.argv = ["opkernel", "run", {model!r}, "--input", "x:0=@" + {value!r}, "--fetch", "y:0"]
try:
    main()
except SystemExit as end:
    assert not end.code
"""

NOT_NEEDED = [
    "opkernel.decompile",
    "opkernel.graph.edit.effect_order",
    "opkernel.graph.functions.instantiate",
    "opkernel.graph.io.file_kind",
    "opkernel.graph.tracing",
    "opkernel.kernel.async_op_kernel",
    "opkernel.kernel.context.memory_record",
    "opkernel.kernel.verification",
    "opkernel.opdef.api",
    "opkernel.opdef.compat",
    "opkernel.opdef.full_type.inference",
    "opkernel.opdef.text.text_proto",
    "opkernel.ops.control_flow",
    "opkernel.ops.declared",
    "opkernel.ops.nn.conv",
    "opkernel.ops.nn.windows",
    "opkernel.optimization.control_flow.dead_code",
    "opkernel.optimization.functions",
    "opkernel.plugins",
    "opkernel.providers.blas.convolutions",
    "opkernel.providers.blas.im2col",
    "opkernel.runtime.calls.eager",
    "opkernel.runtime.calls.instantiated_function",
    "opkernel.runtime.dataflow",
    "opkernel.runtime.placement.colocation",
    "opkernel.runtime.placement.partitioning",
    "opkernel.runtime.plan.tiled",
    "opkernel.runtime.plan.functionalization",
    "opkernel.runtime.program.error_report",
    "opkernel.runtime.adaptive",
    "opkernel.runtime.session.partial_run",
    "opkernel.runtime.session.recording",
    "opkernel.runtime.program.inter_op_pool",
    "opkernel.runtime.traces",
    "opkernel.runtime.watch",
    "opkernel.state.resource_mgr",
    "opkernel.testing",
]
FOREIGN = {"dataclasses", "google.protobuf.text_format", "json", "ml_dtypes", "pathlib"}


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """A network of two layers, y = softmax(relu(x w + b) v), and a value for x."""
    folder = tmp_path_factory.mktemp("straight")
    ops = opkernel.raw_ops
    with opkernel.Graph().as_default() as graph:
        x = ops.Placeholder(dtype=opkernel.float32, shape=[None, 3], name="x")
        weights = np.arange(12, dtype=np.float32).reshape(3, 4)
        product = ops.MatMul(a=x, b=weights)
        hidden = ops.Relu(features=ops.BiasAdd(value=product, bias=np.ones(4, np.float32)))
        ops.Softmax(logits=ops.MatMul(a=hidden, b=weights.T), name="y")
    opkernel.save_graph(graph, folder / "model.pb")
    np.save(folder / "x.npy", np.ones((2, 3), np.float32))
    return {"model": str(folder / "model.pb"), "value": str(folder / "x.npy")}


def loaded(code: str) -> set[str]:
    """The modules of a process that has run a program."""
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", f"{code}\nprint(*sys.modules, file=sys.stderr)"],
        env={"PYTHONPATH": str(ROOT / "src")},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout
    return set(done.stderr.split())


@pytest.mark.parametrize(
    ("code", "most", "besides"),
    [(f"import sys\n{SCRIPT}", 190, {"click"}), (COMMAND, 205, set())],
    ids=["script", "opkernel run"],
)
def test_a_straight_graph_loads_what_it_needs(files, code, most, besides):
    modules = loaded(code.format(**files))
    own = {name for name in modules if name.partition(".")[0] == "opkernel"}
    needless = tuple(f"{name}." for name in NOT_NEEDED)
    assert [name for name in sorted(own) if f"{name}.".startswith(needless)] == []
    assert [name for name in own if name.startswith("opkernel.gradients.")] in (
        [],
        ["opkernel.gradients.registry"],
    )
    assert len(own) <= most
    numpy_alone = loaded("import sys, numpy; print(numpy)")
    assert (FOREIGN | besides) & modules <= numpy_alone


def test_the_version_needs_no_numpy():
    command = """
import sys
from opkernel.cli.main import main
sys.argv = ["opkernel", "--version"]
try:
    main()
except SystemExit as end:
    assert not end.code
"""
    assert not {"numpy", "opkernel.graph"} & loaded(command)


def test_what_is_not_needed_exists():
    folder = ROOT / "src"
    places = [folder / name.replace(".", "/") for name in NOT_NEEDED]
    assert [at for at in places if not at.is_dir() and not at.with_suffix(".py").is_file()] == []
