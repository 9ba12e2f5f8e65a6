"""`--timeout` and `--memory-limit`: every command takes them, and keeps to them."""

from __future__ import annotations

import builtins
import gc
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import click
import numpy as np
import pytest

import opkernel
from opkernel.checkpoint import BundleWriter
from opkernel.cli.commands import commands
from opkernel.cli.limits import time_limit
from opkernel.device.budget import Budget, current_budget
from opkernel.errors import DeadlineExceededError
from opkernel.proto import GraphDef

NAMES = sorted(commands.commands.keys() - {"checkpoint"})
CHECKPOINT_NAMES = ["diff", "export", "get", "ls", "show"]


def expanding_graph() -> bytes:
    """A constant of one number in the file, and of 2 GiB when it is decoded; less than 100 bytes."""
    graph_def = GraphDef()
    node = graph_def.node.add(name="c", op="Const")
    node.attr["dtype"].type = 1
    tensor = node.attr["value"].tensor
    tensor.dtype = 1
    tensor.float_val.append(1)
    tensor.tensor_shape.dim.add(size=1 << 28)
    return graph_def.SerializeToString()


@pytest.mark.parametrize(
    "path", [*[(name,) for name in NAMES], *[("checkpoint", n) for n in CHECKPOINT_NAMES]]
)
def test_every_command_takes_both(path: tuple[str, ...], monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever it does is done under the budget, which is gone afterwards."""
    found: list[Budget | None] = []
    command: click.Command | None = commands
    for name in path:
        assert isinstance(command, click.Group)
        command = command.get_command(click.Context(command), name)
    assert command is not None
    assert [p.name for p in command.params].count("memory_limit") == 1
    assert [p.name for p in command.params].count("timeout") == 1
    monkeypatch.setattr(command, "callback", lambda **_: found.append(current_budget()))
    context = click.Context(command)
    context.params = {"timeout": 100.0, "memory_limit": 1536, "model": None}
    command.invoke(context)
    (budget,) = found
    assert budget is not None
    assert budget.memory_limit_bytes == 1536
    if path == ("serve",):  # which ends by itself
        return
    assert budget.seconds_left is not None
    assert 0 < budget.seconds_left <= 100
    assert current_budget() is None


@pytest.mark.parametrize(
    ("text", "size"),
    [("1", 1), ("512M", 512 << 20), ("2g", 2 << 30), ("1KiB", 1024), ("1.5GB", 3 << 29)],
)
def test_sizes(text: str, size: int, monkeypatch: pytest.MonkeyPatch) -> None:
    found: list[Any] = []
    command = commands.get_command(click.Context(commands), "doctor")
    assert command is not None
    monkeypatch.setattr(command, "callback", lambda **_: found.append(current_budget()))
    commands.main(["doctor", "--memory-limit", text], standalone_mode=False)
    assert found[0].memory_limit_bytes == size


@pytest.mark.parametrize(
    "options",
    [
        ["--memory-limit", "0"],
        ["--memory-limit", "many"],
        ["--memory-limit", "-1"],
        ["--memory-limit", "9999999T"],
        ["--timeout", "inf"],
        ["--timeout", "-1"],
    ],
    ids=str,
)
def test_other_limits_are_wrong_use(command: Any, options: list[str]) -> None:
    done = command("ops", *options)
    assert done.exit_code == 2
    assert options[0] in done.output


@pytest.mark.parametrize(
    "options", [["run", "--fetch", "c"], ["decompile", "--fetch", "c"]], ids=str
)
def test_a_small_file_takes_little_memory(command: Any, tmp_path: Path, options: list[str]) -> None:
    path = tmp_path / "model.pb"
    path.write_bytes(expanding_graph())
    done = command(options[0], str(path), *options[1:], "--memory-limit", "64M")
    assert done.exit_code == 1
    assert "RESOURCE_EXHAUSTED" in done.output
    assert "Traceback" not in done.output


def test_a_time_limit_interrupts_python() -> None:
    with pytest.raises(DeadlineExceededError, match=r"Timed out after 0\.05 s"), time_limit(0.05):
        time.sleep(60)
    assert signal.getitimer(signal.ITIMER_REAL) == (0.0, 0.0)


def test_a_time_limit_is_not_lost_where_errors_are_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("opkernel.cli.limits._AGAIN_S", 0.05)

    def hear_the_second() -> None:
        with suppress(BaseException):
            time.sleep(60)
        time.sleep(60)

    with pytest.raises(DeadlineExceededError), time_limit(0.05):
        hear_the_second()


COMMANDS = {
    "show": ["show", "model.pb"],
    "show text": ["show", "model.pbtxt"],
    "show a SavedModel": ["show", "saved"],
    "show an archive": ["show", "saved.tar.gz"],
    "show a zip file": ["show", "saved.zip"],
    "run": ["run", "model.pb", "--fetch", "y", "--input", "x=@x.npy", "--output", "y.npz"],
    "run a SavedModel": ["run", "saved", "--random", "--outdir", "out", "--overwrite"],
    "freeze": ["freeze", "saved", "-o", "frozen.pb"],
    "optimize": ["optimize", "model.pb", "--fetch", "y", "-o", "optimized.pb"],
    "shapes": ["shapes", "model.pb", "--write", "shapes.pb"],
    "decompile": ["decompile", "model.pb", "--fetch", "y", "-o", "program.py"],
    "predict": ["predict", "model.pb", "x.npz", "predicted", "--overwrite"],
    "history": ["history", "ops.pbtxt"],
    "check": ["check", "ops.pbtxt", "--against", "ops.pbtxt"],
    "ls": ["checkpoint", "ls", "ckpt"],
    "show a checkpoint": ["checkpoint", "show", "."],
    "get": ["checkpoint", "get", "ckpt", "x", "-o", "got.npy"],
    "diff": ["checkpoint", "diff", "ckpt", "saved"],
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Files of all kinds that commands read."""
    folder = tmp_path_factory.mktemp("limits")
    with opkernel.Graph().as_default() as graph:
        x = opkernel.placeholder(np.float32, [None], name="x")
        opkernel.raw_ops.AddV2(x=x, y=np.float32(1), name="y")
    opkernel.save_graph(graph, folder / "model.pb")
    opkernel.save_graph(graph, folder / "model.pbtxt")
    np.save(folder / "x.npy", np.ones(3, np.float32))
    np.savez(folder / "x.npz", x=np.ones(3, np.float32))
    shutil.copytree(Path(__file__).parent / "saved_models" / "two", folder / "saved")
    for form in ("gztar", "zip"):
        shutil.make_archive(str(folder / "saved"), form, folder / "saved")
    (folder / "ops.pbtxt").write_text('op { name: "Own" output_arg { name: "y" type: DT_FLOAT } }')
    with BundleWriter(folder / "ckpt") as writer:
        writer.add("x", np.ones(3, np.float32))
    opkernel.checkpoint.update_checkpoint_state(folder, str(folder / "ckpt"))
    return folder


def interrupt_opening(patch: pytest.MonkeyPatch, number: int) -> list[int]:
    """Have the timer ring while the file of that number is opened; counts them, but not Python's own."""
    opened = [0]

    def ringing(function: Callable[..., Any]) -> Callable[..., Any]:
        def call(path: Any, *arguments: Any, **keywords: Any) -> Any:
            if callable(signal.getsignal(signal.SIGALRM)) and not str(path).endswith(_OF_PYTHON):
                opened[0] += 1
                if opened[0] == number:
                    signal.raise_signal(signal.SIGALRM)
            return function(path, *arguments, **keywords)

        return call

    for module, name in ((builtins, "open"), (os, "open"), (os, "stat"), (os, "listdir")):
        patch.setattr(module, name, ringing(getattr(module, name)))
    return opened


def end_budget(patch: pytest.MonkeyPatch, number: int) -> list[int]:
    """Have the time of the budget be up when it is asked for the time of that number, and later."""
    asked, check = [0], Budget.check_time

    def checked(budget: Budget, doing: str, name: str = "") -> None:
        asked[0] += 1
        if budget.deadline is not None and asked[0] >= number:
            budget.deadline = time.monotonic() - 1
        check(budget, doing, name)

    patch.setattr(Budget, "check_time", checked)
    return asked


_OF_PYTHON = (".py", ".pyc")


@pytest.mark.skipif(not hasattr(signal, "SIGALRM"), reason="without interval timers nothing rings")
@pytest.mark.filterwarnings(
    "ignore::pytest.PytestUnraisableExceptionWarning"  # it may ring while a directory is deleted
)
@pytest.mark.parametrize("how", [interrupt_opening, end_budget])
@pytest.mark.parametrize("what", COMMANDS)
def test_a_deadline_is_told_as_one_wherever_it_comes(
    command: Any, folder: Path, monkeypatch: pytest.MonkeyPatch, what: str, how: Any
) -> None:
    """It is an OSError, and no file is missing or damaged for that."""
    monkeypatch.chdir(folder)
    first = command(*COMMANDS[what])  # which imports what is needed
    assert first.exit_code == 0 or what == "diff", first.output
    told = 0
    for number in [*range(1, 30), *range(30, 200, 17)]:
        with pytest.MonkeyPatch.context() as patch:
            count = how(patch, number)
            done = command(*COMMANDS[what], "--timeout", 1000)
        if "DEADLINE_EXCEEDED" in done.output:
            assert done.exit_code == 1
            told += 1
        else:
            assert done.exit_code == first.exit_code, done.output
        if count[0] < number:
            break
    gc.collect()  # files that it rang at
    assert told or how is end_budget


SECOND_LINE = (
    "Error: DEADLINE_EXCEEDED: Timed out after 0.3 s. "
    "The command did not stop, so its process was ended 0.5 s later\n"
)
ENDED = """
import sys
import click
from opkernel.cli import limits
from opkernel.cli.commands import commands
limits._GRACE_S = 0.5
command = commands.get_command(click.Context(commands), "doctor")
command.callback = lambda **_: sum(range(int(sys.argv[1])))
commands(["doctor", "--timeout", "0.3"], obj=True)
"""


@pytest.mark.skipif(not Path("/bin/sh").exists(), reason="a shell writes the message")
@pytest.mark.parametrize(
    ("count", "status", "message"), [(10**12, 1, SECOND_LINE), (1, 0, "")], ids=["late", "in time"]
)
def test_a_process_that_does_not_stop_is_ended_with_one_message(
    count: int, status: int, message: str
) -> None:
    """C code that holds Python's lock hears no timer; `sum` of large numbers is such code."""
    words = [sys.executable, "-c", ENDED, str(count)]
    done = subprocess.run(words, capture_output=True, text=True, timeout=120, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (status, "", message)
