"""Every option and argument of every command, with values that no file, number or name can have."""

from pathlib import Path
from typing import Any

import click
import pytest
from tests.cli.conftest import Command

from opkernel.cli.commands import commands

OPS = Path(__file__).resolve().parents[1] / "data" / "op_list.pb"
REQUIRED = {
    "check": ["OPS", "--against", "OPS"],
    "coverage": ["MODEL"],
    "decompile": ["MODEL"],
    "doctor": ["MODEL"],
    "explain": ["MODEL", "x"],
    "compile": ["MODEL", "--to", "stablehlo", "-o", "out.mlir", "--input", "images:1,8,8,1"],
    "freeze": ["MODEL", "-o", "out.pb"],
    "history": ["OPS"],
    "kernels": ["Neg"],
    "new": ["an_op", "--into", "made"],
    "ops": ["Neg"],
    "optimize": ["MODEL", "-o", "out.pb"],
    "place": ["MODEL"],
    "predict": ["MODEL", "MODEL", "out"],
    # A port that no user may have: it must not serve, whatever else it is told.
    "serve": [".", "--port", "70000"],
    "run": ["MODEL", "--input", "x=[[1,2,3]]", "--fetch", "x_out"],
    "shapes": ["MODEL"],
    "show": ["MODEL"],
    "stubs": ["OPS"],
    "test": ["--op", "Neg", "--calls", "1"],
}
WRONG = ["a" * 5000, "{model}/under/a/file", "", "\x1b[2J", "-1"]


def parameters() -> list[tuple[str, Any]]:
    found = []
    for name in commands.list_commands(click.Context(commands)):
        command = commands.get_command(click.Context(commands), name)
        assert command is not None
        found += [(name, param) for param in command.params if not getattr(param, "is_flag", False)]
    return found


PARAMETERS = parameters()


@pytest.mark.parametrize("wrong", WRONG, ids=lambda text: repr(text[:20]))
@pytest.mark.parametrize(
    ("name", "param"), PARAMETERS, ids=[f"{n} {p.name}" for n, p in PARAMETERS]
)
def test_no_value_of_an_option_or_argument_shows_a_traceback(
    command: Command,
    model: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    name: str,
    param: Any,
    wrong: str,
):
    monkeypatch.chdir(tmp_path)
    arguments = [{"MODEL": str(model), "OPS": str(OPS)}.get(part, part) for part in REQUIRED[name]]
    value = wrong.format(model=model)
    if isinstance(param, click.Option):
        arguments += [param.opts[0], value]
    elif arguments:
        arguments[0] = value
    done = command(name, *arguments)
    assert done.exception is None or isinstance(done.exception, SystemExit), done.exception
    assert done.exit_code in (0, 1, 2)
    assert (done.exit_code == 0) or "Error: " in done.output
    assert not set(map(chr, range(32))) - {"\n"} & set(done.output)


def test_every_command_is_tried():
    assert {name for name, _ in PARAMETERS} == set(REQUIRED)
