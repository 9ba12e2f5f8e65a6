"""`--library`: every command that meets ops takes it, and errors about unknown ops name it."""

from __future__ import annotations

import itertools
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import click
import pytest
from tests.cli.conftest import Command

from opkernel.cli.commands import commands
from opkernel.cli.options import WITHOUT_LIBRARIES
from opkernel.kernel import global_kernel_registry
from opkernel.opdef import global_op_registry

TextModel = Callable[[str], Path]

MODULE = """\
import opkernel
from opkernel.opdef import unchanged_shape

opkernel.register_op("{op}", inputs=["x: float"], outputs=["y: float"], shape_fn=unchanged_shape)
opkernel.register_kernel("{op}", device="CPU")(lambda x: x + 1)
"""
MODEL = """
node {{ name: "x" op: "Placeholder"
  attr {{ key: "dtype" value {{ type: DT_FLOAT }} }}
  attr {{ key: "shape" value {{ shape {{ }} }} }} }}
node {{ name: "y" op: "{op}" input: "x" }}
versions {{ producer: 1395 }}
"""
_NUMBERS = itertools.count()
HINT = "; --library names the file or module that registers such ops"

# What each command answers about a graph with an op of the library, and with it.
ANSWERS = {
    "coverage": (["OP"], None, "1 op, of which 1 run, 1 have a shape function and 0 a gradient\n"),
    "decompile": (["MODEL"], None, "y = "),
    "doctor": ([], "", "opkernel"),
    "explain": (["MODEL", "y"], None, "It has the kernel"),
    "freeze": (["MODEL", "-o", "OUT"], None, "written to"),
    "kernels": (["OP"], None, "1 kernel\n"),
    "ops": (["OP"], None, "Kernels: CPU\n"),
    "optimize": (["MODEL", "-o", "OUT"], None, "written to"),
    "place": (["MODEL"], "", "Nodes"),
    "run": (["MODEL", "--input", "x=2"], None, "y:0  float32[]\n3.\n"),
    "shapes": (["MODEL"], "", "y:0     float32  []\n"),
    "show": (["MODEL"], "Not runnable yet: {op} (unknown ops: --lib", "Every op can run."),
    "test": (["--op", "OP", "--calls", "3"], None, "1 op: 1 passed\n"),
}
"""The arguments; what it says without the library, None for an error with the hint; and with it."""


@pytest.fixture
def library(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[str, Path]]:
    """An op that no other test has, and the file that registers it and its kernel."""
    number = next(_NUMBERS)
    op, path = f"LibraryOp{number}", tmp_path / f"library_{number}.py"
    path.write_text(MODULE.format(op=op))
    monkeypatch.setattr(sys, "path", [*sys.path])
    yield op, path
    for registration in global_kernel_registry().registrations_for(op):
        global_kernel_registry().unregister(registration)
    if sys.modules.pop(path.stem, None) is not None:
        global_op_registry().unregister(op)


def test_the_table_has_all_commands() -> None:
    # tests/cli/test_engines, tests/distributed, tests/serving: these take more to start.
    elsewhere = {"compile", "predict", "serve"}
    assert {*ANSWERS} | WITHOUT_LIBRARIES | elsewhere == {*commands.commands}


@pytest.mark.parametrize("name", sorted(commands.commands))
def test_every_command_that_meets_ops_takes_it(name: str) -> None:
    command = commands.get_command(click.Context(commands), name)
    assert command is not None
    options = [param.name for param in command.params].count("libraries")
    assert options == (0 if name in WITHOUT_LIBRARIES else 1)


@pytest.mark.parametrize("name", sorted(ANSWERS))
def test_the_ops_of_a_library_are_known(
    name: str, command: Command, text_model: TextModel, tmp_path: Path, library: tuple[str, Path]
) -> None:
    op, path = library
    arguments, without, told = ANSWERS[name]
    places = {"MODEL": text_model(MODEL.format(op=op)), "OP": op, "OUT": tmp_path / "out.pb"}
    given = [places.get(one, one) for one in arguments]
    done = command(name, *given)
    if without is None:
        assert done.exit_code == 1
        assert op in done.output
        assert done.output.endswith(f"{HINT}\n")
    else:
        assert without.format(op=op) in done.output
    status = 0 if without is None else done.exit_code
    done = command(name, *given, "--library", path)
    assert done.exit_code == status
    assert told in done.output


def test_run_tells_the_unknown_op_before_the_missing_outputs(
    command: Command, text_model: TextModel
) -> None:
    done = command("run", text_model(MODEL.format(op="NobodysOp")), "--input", "x=2")
    assert (done.exit_code, done.output) == (
        1,
        f"Error: NOT_FOUND: The graph has ops that are not registered: NobodysOp (node 'y'){HINT}\n",
    )


def test_a_module_by_its_name_and_several(
    command: Command, text_model: TextModel, library: tuple[str, Path], monkeypatch: Any
) -> None:
    op, path = library
    monkeypatch.chdir(path.parent)
    model = text_model(MODEL.format(op=op))
    done = command("run", model, "--library", "colorsys", "--library", path.stem, "--input", "x=1")
    assert done.output == "y:0  float32[]\n2.\n"


@pytest.mark.parametrize(
    ("text", "code", "told"),
    [
        (
            "import nowhere_at_all",
            1,
            "ModuleNotFoundError: No module named 'nowhere_at_all' ({}, line 1)",
        ),
        ("x = 1\nx.y", 1, "AttributeError: 'int' object has no attribute 'y' ({}, line 2)"),
        ("x = (", 1, "SyntaxError: '(' was never closed"),
        (None, 2, "there is no module or file '{}'"),
    ],
)
def test_a_library_that_cannot_be_imported(
    text: str | None, code: int, told: str, command: Command, model: Path, tmp_path: Path
) -> None:
    path = tmp_path / "broken_library.py"
    if text is not None:
        path.write_text(text)
    done = command("show", model, "--library", path)
    assert done.exit_code == code
    assert told.format(path) in done.output


def test_a_file_with_the_name_of_another_module(
    command: Command, model: Path, tmp_path: Path
) -> None:
    path = tmp_path / "colorsys.py"
    path.write_text("")
    import colorsys

    done = command("show", model, "--library", path)
    assert done.exit_code == 2
    assert (
        f"has the name of another module, colorsys ({colorsys.__file__}): rename it" in done.output
    )
    assert (
        command("show", model, "--library", model).output
        == f"Error: '{model}' is no Python file (.py)\n"
    )
