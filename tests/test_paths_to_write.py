"""Everything that writes refuses paths that no file can have, and then writes nothing."""

from __future__ import annotations

import importlib
import inspect
import pkgutil
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import click
import numpy as np
import pytest
from click.testing import CliRunner

import opkernel
from opkernel import Checkpoint, CheckpointManager, Graph, Module, Variable, raw_ops
from opkernel.checkpoint import BundleWriter, update_checkpoint_state
from opkernel.cli.commands import commands
from opkernel.cli.files import OutputPath
from opkernel.distributed import predict
from opkernel.errors import InvalidArgumentError
from opkernel.io import TFRecordWriter
from opkernel.opdef import OpHistory, global_op_registry, write_op_history
from opkernel.proto import NodeDef, StepStats
from opkernel.runtime.traces import write_chrome_trace, write_perfetto_trace
from opkernel.testing import CheckFailure, OpCall, save_failure

BAD = {
    "empty": "",
    "a zero byte": "a\0b",
    "a zero byte at the end": "a\0",
    "a lone half": "a\ud800",
}
"""Paths of no file; not the longest ones, of which the file system knows."""


def model() -> Module:
    found: Any = Module()
    found.x = Variable(np.ones(2, np.float32))
    return found


def map_model(path: str) -> Any:
    with Graph().as_default() as graph, tempfile.TemporaryDirectory() as folder:
        raw_ops.Identity(input=opkernel.placeholder(np.float32, [None], name="x"))
        opkernel.save_graph(graph, f"{folder}/model.pb")
        return predict(f"{folder}/model.pb", {"x": np.ones(3, np.float32)}, output=path)


def failing_call() -> CheckFailure:
    registration = global_op_registry().look_up("NoOp")
    return CheckFailure(OpCall(registration, NodeDef(name="n", op="NoOp"), ()), "wrong")


WRITERS: dict[str, Callable[[str], object]] = {
    "Checkpoint.write": lambda path: Checkpoint(x=Variable(1.0)).write(path),
    "Checkpoint.save": lambda path: Checkpoint(x=Variable(1.0)).save(path),
    "CheckpointManager": CheckpointManager,
    "BundleWriter": BundleWriter,
    "update_checkpoint_state": lambda path: update_checkpoint_state("here", path),
    "save": lambda path: opkernel.save(model(), path),
    "save_graph": lambda path: opkernel.save_graph(Graph(), path),
    "write_op_history": lambda path: write_op_history(OpHistory(), path),
    "write_chrome_trace": lambda path: write_chrome_trace(StepStats(), path),
    "write_perfetto_trace": lambda path: write_perfetto_trace(StepStats(), path),
    "save_failure": lambda path: save_failure(failing_call(), path),  # type: ignore[arg-type]  # as text
    "predict": map_model,
    "TFRecordWriter": TFRecordWriter,
}
OTHERS = {
    *("BundleReader", "SlicesReader", "load_checkpoint", "list_variables", "latest_checkpoint"),
    *("get_checkpoint_state", "Checkpoint.restore", "file_kind", "load_graph", "load_graph_def"),
    *("load", "load_as_session", "SessionModel", "read_op_history", "load_library", "ModelServer"),
    *("tf_record_iterator", "summary_iterator"),
    *("serve", "check_saved_call", "read_op_call", "Saver.restore"),  # so far: they read
    *(
        "ObjectGraph.find",
        "ObjectGraph.key",
        "ObjectGraph.slot_key",
        "GraphEdit.new_name",
        "Plugin",
    ),
    *("ImportOptions", "ScopedStepContainer", "word_wrap", "CompiledPlan.node_at", "model_request"),
    *(
        "CoordinationServiceAgent.get_key_value_dir",
        "Predictions",
        "ShapeAlgebra.merge_prefix",
    ),  # these are of no file
    "Saver.save",  # a graph writes, on other machines too
}
PATHS = {"path", "prefix", "directory", "file", "output", "folder", "location"}
"""What a parameter is called that is a path."""


@pytest.fixture
def empty(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A directory without anything in it, in which the test runs."""
    folder = tmp_path / "empty"
    folder.mkdir()
    monkeypatch.chdir(folder)
    return folder


@pytest.mark.parametrize("what", BAD)
@pytest.mark.parametrize("name", WRITERS)
def test_functions(empty: Path, name: str, what: str) -> None:
    with pytest.raises(InvalidArgumentError, match="is not the path of a file"):
        WRITERS[name](BAD[what])
    assert [*empty.parent.iterdir()] == [empty]
    assert [*empty.iterdir()] == []


NOT_LOOKED_AT = ("opkernel.cli", "opkernel.keras", "opkernel.ops.")
"""Commands have tests of their own, the layer of Keras reads only and needs Keras, and ops ask for permission."""


def with_paths() -> Iterator[str]:
    """The public functions, classes and methods that take a path, by their names."""
    for found in pkgutil.walk_packages(opkernel.__path__, "opkernel."):
        if found.ispkg and not found.name.startswith(NOT_LOOKED_AT):
            module = importlib.import_module(found.name)
            for name in getattr(module, "__all__", ()):
                one = getattr(module, name)
                if takes_path(one):
                    yield name
                for method, function in vars(one).items() if inspect.isclass(one) else ():
                    if not method.startswith("_") and takes_path(function):
                        yield f"{name}.{method}"


def takes_path(one: Any) -> bool:
    try:
        return callable(one) and not PATHS.isdisjoint(inspect.signature(one).parameters)
    except ValueError:  # of those that C has made
        return False


def test_all_functions_that_write_are_listed() -> None:
    found = {*with_paths()}
    assert found - OTHERS == {*WRITERS} & found
    assert OTHERS - found == set()


def parameters() -> Iterator[tuple[tuple[str, ...], click.Parameter]]:
    """The parameters of all commands that are a path."""
    context = click.Context(commands)
    for name in commands.list_commands(context):
        command = commands.get_command(context, name)
        assert command is not None
        below = command.commands if isinstance(command, click.Group) else {}
        for path, one in [((name,), command), *(((name, n), c) for n, c in below.items())]:
            yield from ((path, param) for param in one.params if is_path(param))


def is_path(param: click.Parameter) -> bool:
    """Whether it is a path, by its type or by what its help calls it."""
    words = (param.metavar or "").partition(".")[0]
    return isinstance(param.type, click.Path) or words in ("FILE", "DIR", "OUT")


PARAMETERS = {f"{' '.join(path)} {param.name}": (path, param) for path, param in parameters()}
READ = {
    name
    for name, (_, p) in PARAMETERS.items()
    if getattr(p.type, "exists", False) or p.name == "directory" or name == "history file"
}
"""Those that are read: MODEL, which may be given by `--dir`; a history, which need not exist yet."""


def test_commands_write_to_paths_of_the_type_for_it() -> None:
    written = {name for name, (_, p) in PARAMETERS.items() if isinstance(p.type, OutputPath)}
    assert written == {*PARAMETERS} - READ
    assert len(written) > 15


@pytest.mark.parametrize("what", BAD)
@pytest.mark.parametrize("name", sorted(PARAMETERS.keys() - READ))
def test_commands(empty: Path, name: str, what: str) -> None:
    path, param = PARAMETERS[name]
    opkernel.save_graph(Graph(), empty.parent / "model.pb")
    option = [param.opts[-1]] if isinstance(param, click.Option) else []
    given = [str(empty.parent / "model.pb")] if name != "new into" else ["row_norm"]
    required = [given[0]] if name == "predict output" else []
    done = CliRunner().invoke(commands, [*path, *given, *required, *option, BAD[what]])
    assert done.exit_code == 2, done.output
    assert "is not the path of a file" in done.output
    assert [*empty.iterdir()] == []
