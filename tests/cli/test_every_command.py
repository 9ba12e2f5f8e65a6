"""Every command on every kind of model, with all libraries that are installed, and with none that extras bring."""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
from tests.cli.bare_commands import new_runner
from tests.cli.conftest import SOURCES
from tests.cli.small_models import MODELS, Y_OF_V1, X, Y, checkpoint, no_signatures
from tests.drawing.page_reader import read_page

import opkernel
from opkernel.cli.commands import commands
from opkernel.graph.edit.interface import graph_inputs, graph_outputs

GIVEN = "--input x=[[1,2,3]]"
ARCHIVES = {"v1-zip", "v2-tar", "tfjs-zip", "tfjs-tar"}
GRAPHS = {"graph", "text"}
V1 = {"v1", "v1-zip", "meta"}
V2 = {"v2", "v2-tar"}


class Done(NamedTuple):
    """What a command did.

    Attributes:
        kind: The kind of the model.
        folder: Where the command wrote its files.
        status: Its exit status.
        stdout: What it printed.
        stderr: What it printed as messages.
    """

    kind: str
    folder: Path
    status: int
    stdout: str
    stderr: str

    @property
    def json(self) -> Any:
        """What it printed, as JSON."""
        assert self.status == 0, self.stderr
        return json.loads(self.stdout)

    @property
    def answer(self) -> list[list[float]]:
        """What the model gives."""
        return Y_OF_V1 if self.kind in V1 else Y

    def written(self, name: str) -> Path:
        """A file that it wrote."""
        assert self.status == 0, self.stderr
        return self.folder / name

    def refused(self, *texts: str, status: int = 1) -> None:
        """Check that it ended with an error that says something."""
        assert self.status == status, self.stdout
        assert self.stderr.startswith("Error: ")
        for text in texts:
            assert text in self.stderr


# What a user would miss, where a command works.


def graph_gives(done: Done) -> None:
    """The graph that was written computes what the model does."""
    graph = opkernel.load_graph(done.written("graph.pb"))
    (x,) = graph_inputs(graph)
    (y,) = graph_outputs(graph)
    with opkernel.Session(graph) as session:
        np.testing.assert_array_equal(session.run(y, {x: X}), done.answer)


def program_gives(done: Done) -> None:
    """The program of Python that was written computes what the model does."""
    path = done.written("program.py")
    spec = importlib.util.spec_from_file_location("program_of_a_test", path)
    assert spec is not None
    assert spec.loader is not None
    program = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(program)
    np.testing.assert_array_equal(program.model(np.array(X, np.float32))[0], done.answer)


def results_are_right(done: Done) -> None:
    (result,) = done.json.values()
    assert result["value"] == done.answer


def ops_of(done: Done) -> Mapping[str, int]:
    """The ops that `show` counts: those of a graph, or those that a signature runs."""
    facts = done.json
    found: Mapping[str, int] = (
        facts["ops"] if done.kind in GRAPHS else facts["meta_graphs"][0]["runs"]["ops"]
    )
    return found


def shown(done: Done) -> None:
    ops = ops_of(done)
    assert ops["MatMul"] == ops["Relu"] == 1
    assert not {"SaveV2", "RestoreV2", "VarHandleOp"} & ops.keys()


def drawn(done: Done) -> None:
    first, *_ = read_page(done.written("page.html").read_text("utf-8"))
    (product,) = first.with_op("MatMul")
    assert first.nodes[product]["outputs"] == ["float32 [?,2]"]


def scanned(done: Done) -> None:
    is_reading = done.kind in V1  # a vocabulary, for a table
    assert done.status == (3 if is_reading else 0)
    assert json.loads(done.stdout)["severity"] == ("medium" if is_reading else "none")


def node_shown(done: Done) -> None:
    if done.kind in V2:
        done.refused("NOT_FOUND: the graph has no node 'MatMul', and 2 nodes whose names end so")
        return
    assert done.json[0]["outputs"][0]["shape"] == [None, 2]


def only_products(done: Done) -> None:
    assert [one["op"] for one in done.json] == ["MatMul"] * (2 if done.kind in V2 else 1)


def shapes_inferred(done: Done) -> None:
    assert [None, 2] in [one["shape"] for one in done.json]


def ops_listed(done: Done) -> None:
    assert "MatMul" in {one["op"] for one in done.json}


def nothing_changed(done: Done) -> None:
    assert done.status == 0, done.stderr


def node_explained(done: Done) -> None:
    assert done.json["op"] == "MatMul"
    assert done.json["in_steps"]["as_op"] == "_FusedMatMul"


def clusters_explained(done: Done) -> None:
    off, *engines = done.json
    assert off["operations"] == (4 if done.kind in V1 else 10 if done.kind in V2 else 3)
    (xla,) = (one for one in engines if one["engine"] == "xla")
    assert len(xla["clusters"]) == (
        1 if done.kind in V2 else 0
    )  # the others have too few operations
    assert off["milliseconds"] > 0


def engines_named(done: Done) -> None:
    _, *engines = done.json
    assert {one["engine"] for one in engines} >= {"openvino", "xla"}
    assert all("pip install 'opkernel[" in one["error"] for one in engines)


def placed(done: Done) -> None:
    nodes = done.json["nodes"]
    assert [one["device"].rpartition("device:")[2] for one in nodes if one["op"] == "MatMul"] == [
        "CPU:0"
    ]


def covered(done: Done) -> None:
    (row,) = (one for one in done.json["ops"] if one["op"] == "MatMul")
    assert row["missing"] == ""
    assert row["gradient"] == "yes"


def can_run(done: Done) -> None:
    assert "Every op can run.\n" in done.stdout
    assert done.status == 0


def profiled(done: Done) -> None:
    rows = done.json["profile"]["nodes"]
    assert "_FusedMatMul" in {one["op"] for one in rows}


def traced(done: Done) -> None:
    events = json.loads(done.written("trace.json").read_text())["traceEvents"]
    assert "_FusedMatMul" in {one["name"] for one in events}


def compiled(done: Done) -> None:
    assert "stablehlo.dot_general" in done.written("model.mlir").read_text()


def predicted(done: Done) -> None:
    with np.load(done.written("out") / "part-00000.npz") as part:
        (name,) = part
        np.testing.assert_array_equal(part[name], done.answer * 2)


def keys_listed(done: Done) -> None:
    if done.kind in ARCHIVES:
        done.refused("INVALID_ARGUMENT", "archive, not a checkpoint; unpack it")
    elif done.kind in GRAPHS or done.kind.startswith("tfjs"):
        done.refused("INVALID_ARGUMENT", ", not a checkpoint; opkernel show")
    else:
        assert any(one["key"].startswith("w") for one in done.json)


def served(done: Done) -> None:
    if done.kind not in ("v1", "v2", "tfjs"):
        done.refused("is a file", status=2)
        return
    assert "version 1 AVAILABLE\nserving at http://127.0.0.1:" in done.stdout


def needs(extra: str) -> Callable[[Done], None]:
    """The error names the extra."""
    return lambda done: done.refused("UNIMPLEMENTED", f"pip install 'opkernel[{extra}]'")


def not_served(done: Done) -> None:
    if done.kind in ("v1", "v2", "tfjs"):
        needs("serve")(done)
    else:
        served(done)


class Cell(NamedTuple):
    """A command, in which M is the model, and F the folder of what it reads and writes; and what is to come of it.

    Attributes:
        words: The command.
        check: Checks what it did.
        bare: Checks what it did without the libraries of extras, if that differs.
        needs: The library without which `check` is left out.
    """

    words: str
    check: Callable[[Done], None]
    bare: Callable[[Done], None] | None = None
    needs: str = ""


CELLS = {
    "show": Cell("show M --json", shown),
    "show text": Cell("show M", can_run),
    "show --html": Cell("show M --html F/page.html", drawn),
    "show --scan": Cell("show M --scan --json", scanned),
    "show NODE": Cell("show M MatMul --json", node_shown),
    "show --op": Cell("show M --op MatMul --json", only_products),
    "shapes": Cell("shapes M --json", shapes_inferred),
    "explain NODE": Cell("explain M MatMul --json", node_explained),
    "explain": Cell("explain M --json", clusters_explained, engines_named, "jax"),
    "place": Cell("place M --json", placed),
    "coverage": Cell("coverage M --json", covered),
    "doctor": Cell("doctor M", can_run),
    "run": Cell(f"run M {GIVEN} --json", results_are_right),
    "run --jit": Cell(f"run M {GIVEN} --jit xla! --json", results_are_right, needs("xla"), "jax"),
    "run --profile": Cell(f"run M {GIVEN} --profile --json", profiled),
    "run --trace": Cell(f"run M {GIVEN} --trace F/trace.json", traced),
    "optimize": Cell("optimize M -o F/graph.pb", graph_gives),
    "decompile": Cell("decompile M -o F/program.py", program_gives),
    "freeze": Cell("freeze M -o F/graph.pb", graph_gives),
    "compile": Cell(
        "compile M --to stablehlo -o F/model.mlir --input x:1,3", compiled, needs("xla"), "jax"
    ),
    "predict": Cell("predict M F/rows.npz F/out", predicted),
    "checkpoint ls": Cell("checkpoint ls M --json", keys_listed),
    "serve": Cell("serve M --port 0", served, not_served, "starlette"),
    "ops": Cell("ops --needed-by M --json", ops_listed),
    "check": Cell("check F/ops.pbtxt --against F/ops.pbtxt --graphs M", nothing_changed),
}


def prepared(folder: Path, make: Callable[[Path], Path], words: str) -> list[str]:
    """The arguments of a command on a model; its files lie in a folder."""
    folder.mkdir(parents=True)
    np.savez(folder / "rows.npz", x=np.array(X * 2, np.float32))
    (folder / "ops.pbtxt").write_text('op { name: "Mine" }')
    model = str(make(folder))
    return [model if one == "M" else one.replace("F/", f"{folder}/") for one in words.split()]


@pytest.mark.parametrize("kind", MODELS)
@pytest.mark.parametrize("name", CELLS)
def test_with_all_libraries(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str, name: str
) -> None:
    cell = CELLS[name]
    if cell.needs:
        pytest.importorskip(cell.needs)
    if name == "serve":
        monkeypatch.setattr("opkernel.serving.serve", lambda server, *_: None)
    done = new_runner().invoke(commands, prepared(tmp_path / "model", MODELS[kind], cell.words))
    assert done.exception is None or isinstance(done.exception, SystemExit), done.output
    cell.check(Done(kind, tmp_path / "model", done.exit_code, done.stdout, done.stderr))


Bare = Mapping[tuple[str, str], Done]


@pytest.fixture(scope="module")
def bare(tmp_path_factory: pytest.TempPathFactory) -> Bare:
    """What each command did with each model in a process without the libraries of extras."""
    root = tmp_path_factory.mktemp("bare")
    cells = {
        (name, kind): root / f"{name} {kind}".replace(" ", "_") for name in CELLS for kind in MODELS
    }
    arguments = [
        prepared(folder, MODELS[kind], CELLS[name].words) for (name, kind), folder in cells.items()
    ]
    done = subprocess.run(
        [sys.executable, str(Path(__file__).with_name("bare_commands.py"))],
        input=json.dumps(arguments),
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, "PYTHONPATH": str(SOURCES)},
    )
    found = zip(cells.items(), json.loads(done.stdout), strict=True)
    return {(name, kind): Done(kind, folder, *one) for ((name, kind), folder), one in found}


@pytest.mark.parametrize("kind", MODELS)
def test_with_no_library_of_an_extra(bare: Bare, kind: str) -> None:
    for name, cell in CELLS.items():
        try:
            (cell.bare or cell.check)(bare[name, kind])
        except AssertionError as error:
            error.add_note(f"opkernel {cell.words}, with {kind}: {bare[name, kind]}")
            raise


OF_MODELS = [name for name in CELLS if name not in ("serve", "check", "checkpoint ls")]


@pytest.mark.parametrize("name", OF_MODELS)
def test_a_checkpoint_is_no_model(tmp_path: Path, name: str) -> None:
    words = prepared(tmp_path / "model", checkpoint, CELLS[name].words)
    done = new_runner().invoke(commands, words)
    prefix = tmp_path / "model" / "model.ckpt"
    Done("", tmp_path, done.exit_code, done.stdout, done.stderr).refused(
        f"INVALID_ARGUMENT: {prefix} is a TensorFlow checkpoint, not a GraphDef",
        f"opkernel checkpoint ls {prefix} lists them",
        "The graph is in the .meta file beside it",
    )


COMPUTING = ("run", "run --profile", "run --trace", "optimize", "decompile", "freeze", "compile")


@pytest.mark.parametrize("name", COMPUTING)
def test_a_graph_whose_outputs_nobody_named(tmp_path: Path, name: str) -> None:
    words = prepared(tmp_path / "model", no_signatures, CELLS[name].words)
    done = new_runner().invoke(commands, words)
    Done("", tmp_path, done.exit_code, done.stdout, done.stderr).refused(
        "model.ckpt.meta has no signatures: name with --fetch what to compute; opkernel show",
        status=2,
    )
    if name == "compile":
        return
    again = new_runner().invoke(commands, [*words, "--fetch", "y:0"])
    CELLS[name].check(Done("meta", tmp_path / "model", again.exit_code, again.stdout, again.stderr))


def test_predictions_of_a_graph_whose_outputs_nobody_named(tmp_path: Path) -> None:
    words = prepared(tmp_path / "model", no_signatures, CELLS["predict"].words)
    done = new_runner().invoke(commands, words)
    Done("", tmp_path, done.exit_code, done.stdout, done.stderr).refused(
        "INVALID_ARGUMENT", "has no signatures", "opkernel freeze", "--fetch NAME -o graph.pb"
    )
