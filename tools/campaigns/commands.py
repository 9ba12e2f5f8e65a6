"""Command lines with wrong arguments and files: each ends with a message, never with a traceback."""

import io
import os
import random
import re
import tempfile
from pathlib import Path

import numpy as np
from click.testing import CliRunner
from tools.campaigns.campaign import Finding
from tools.campaigns.damage import HOSTILE, MUTATIONS
from tools.campaigns.samples import graphs

from opkernel.cli.commands import commands

__all__ = ["case"]

_LINES = [
    "run {model}",
    "run {model} --input x=[[1,2,3],[4,5,6]] --fetch sum --json",
    "run {model} --input x=@{array} --fetch product:0 --output out.npz --repeat 2",
    "run {model} --input x=1 --profile --trace trace.json --sanitize --timeout 2",
    "run {model} --provider numpy --fetch sum",
    "show {model}",
    "show {model} --json",
    "shapes {model} --input x:2,3 --json",
    "shapes {model} sum* --write shapes.pbtxt",
    "ops --needed-by {model}",
    "ops AddV2 --json",
    "kernels MatMul --gaps",
    "kernels --device CPU --json",
    "explain {model} sum",
    "explain {model} product --device GPU --json",
    "check {ops} --against {ops} --graphs {model} --format sarif",
    "history {ops} --json",
    "history {ops} --add {ops} --out history.pb",
    "optimize {model} -o out.pb --fetch sum --feed x -v",
    "optimize {model} -o out.pbtxt --passes arithmetic,layout --json",
    "decompile {model} -o out.py --fetch sum --numpy",
    "decompile {model} --feed x",
    "place {model} --device-count CPU=2 --soft-placement --json",
    "stubs {ops} --out stubs",
    "new an_op --into made --force",
    "test --op Neg --calls 2 --json",
    "doctor --json",
]
_VALUES = [
    "-1", "0", "999999999999999999999", "nan", "x", "x:7", "x=", "=", "x=@", "x=@nothing.npy", "x=[[",
    "x=[1,[2]]", "x=null", 'x="text"', "x=1e999", ":", "^x", "sum:0", "*", "[", ".", "--", "-", "-h",
    "--json", "--nothing", "CPU=-1", "CPU=x", "NotAnOp", "a" * 3000, *HOSTILE,
]  # fmt: skip
_DATA = Path(__file__).parents[2] / "tests" / "data"
_CONTROL = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f]")


def case(rng: random.Random) -> str:
    """Run one command in a folder of its own."""
    with tempfile.TemporaryDirectory() as folder:
        names = _files(Path(folder), rng)
        arguments = [part.format(**names) for part in rng.choice(_LINES).split()]
        for _ in range(rng.choice([0, 1, 1, 2])):
            _change(arguments, rng)
        return _run(arguments, folder)


def _files(folder: Path, rng: random.Random) -> dict[str, str]:
    """A model, an array and a list of ops, some of them damaged."""
    contents = {
        "model": rng.choice(graphs()),
        "array": _array(),
        "ops": (_DATA / "op_list.pb").read_bytes(),
    }
    suffixes = {"model": rng.choice([".pb", ".pb", ".pbtxt", ""]), "array": ".npy", "ops": ".pb"}
    for name, content in contents.items():
        damaged = rng.choice(MUTATIONS[:3])(content, rng) if rng.random() < 0.25 else content
        if name == "model" and rng.random() < 0.4:
            damaged = rng.choice(MUTATIONS)(content, rng)
        (folder / f"{name}{suffixes[name]}").write_bytes(damaged)
    return {name: f"{name}{suffixes[name]}" for name in contents}


def _array() -> bytes:
    """A matrix as a .npy file."""
    buffer = io.BytesIO()
    np.save(buffer, np.arange(6, dtype=np.float32).reshape(2, 3))
    return buffer.getvalue()


def _change(arguments: list[str], rng: random.Random) -> None:
    """Drop, repeat, exchange or replace an argument."""
    at = rng.randrange(1, len(arguments)) if len(arguments) > 1 else 0
    kind = rng.randrange(5)
    if kind == 0 and len(arguments) > 1:
        del arguments[at]
    elif kind == 1:
        arguments.insert(at, rng.choice(arguments))
    elif kind == 2:
        arguments.insert(at + 1, rng.choice(_VALUES))
    else:
        arguments[at] = rng.choice(_VALUES)


def _run(arguments: list[str], folder: str) -> str:
    here = Path.cwd()
    os.chdir(folder)
    try:
        result = CliRunner().invoke(commands, arguments)
    finally:
        os.chdir(here)
    fault = result.exception
    if fault is not None and not isinstance(fault, SystemExit):
        raise Finding(f"opkernel {arguments}: {fault!r}") from fault
    if result.exit_code not in (0, 1, 2):
        raise Finding(f"opkernel {arguments}: exit status {result.exit_code}")
    if found := _CONTROL.search(result.output):
        raise Finding(f"opkernel {arguments} prints {found.group()!r}: {result.output[:500]!r}")
    if result.exit_code and "rror" not in result.output and arguments[0] not in ("check", "doctor"):
        raise Finding(
            f"opkernel {arguments}: exit status 1 without a word: {result.output[:500]!r}"
        )
    return f"exit status {result.exit_code}"
