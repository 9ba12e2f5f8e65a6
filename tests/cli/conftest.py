"""The command, and a model with an input and an output of each kind."""

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from opkernel import Graph, PartialTensorShape, save_graph
from opkernel.cli.commands import commands
from opkernel.types import DataType

Command = Callable[..., Result]
Process = Callable[..., subprocess.CompletedProcess[str]]
SOURCES = Path(__file__).resolve().parents[2] / "src"

PLACEHOLDERS = {
    "x": (DataType.DT_FLOAT, PartialTensorShape([None, 3])),
    "n": (DataType.DT_INT32, PartialTensorShape([])),
    "byte": (DataType.DT_UINT8, None),
    "flag": (DataType.DT_BOOL, None),
    "brain": (DataType.DT_BFLOAT16, None),
    "complex": (DataType.DT_COMPLEX64, None),
    "text": (DataType.DT_STRING, None),
}


@pytest.fixture(autouse=True)
def plain_output(monkeypatch: pytest.MonkeyPatch) -> None:
    """Commands print as into a file, whatever the tests run in."""
    for name in ("COLUMNS", "NO_COLOR"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def command() -> Command:
    """Runs `opkernel` with arguments."""
    return lambda *arguments: CliRunner().invoke(commands, [str(one) for one in arguments])


@pytest.fixture
def process() -> Process:
    """Runs `python -m opkernel` with arguments in a process of its own."""

    def run(*arguments: object) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-m", "opkernel", *map(str, arguments)],
            capture_output=True,
            text=True,
            check=False,
            env={**os.environ, "PYTHONPATH": str(SOURCES)},
        )

    return run


@pytest.fixture
def model(tmp_path: Path) -> Path:
    """A graph that gives each placeholder `x` as `x_out`, and the `n` largest of `x` as `top`."""
    graph = Graph()
    tensors = {}
    for name, (dtype, shape) in PLACEHOLDERS.items():
        attrs = {"dtype": dtype} if shape is None else {"dtype": dtype, "shape": shape}
        tensors[name] = graph.create_op("Placeholder", attrs=attrs, name=name).outputs[0]
        graph.create_op("Identity", [tensors[name]], name=f"{name}_out")
    graph.create_op("TopKV2", [tensors["x"], tensors["n"]], name="top")
    graph.create_op("NoOp", name="init")
    path = tmp_path / "model.pb"
    save_graph(graph, path)
    return path


@pytest.fixture
def text_model(tmp_path: Path) -> Callable[[str], Path]:
    """Writes a GraphDef in text format to a file."""

    def write(text: str) -> Path:
        path = tmp_path / "model.pbtxt"
        path.write_text(text)
        return path

    return write
