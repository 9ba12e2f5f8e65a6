"""Measures the speed of everything and writes docs/performance.md.

    python benchmarks/performance.py --tensorflow PYTHON_WITH_TENSORFLOW [--only PART ...]

Takes half an hour, of a machine that does nothing else. What each part printed is kept in `benchmarks/results`, with
its rows of the page; `--only` measures some parts anew (or none, if it names none) and writes the page with what is
kept of the others.
"""

import argparse
import json
import os
import platform
import subprocess
import sys
import time
from pathlib import Path
from typing import NamedTuple

import numpy as np
from measure import ROWS_FILE, Row, clean_environment

HERE = Path(__file__).parent
PAGE = HERE.parent / "docs" / "performance.md"
RESULTS = HERE / "results"


class Part(NamedTuple):
    """A script, and what the page says of it."""

    title: str
    about: str
    command: tuple[str, ...]
    with_tensorflow: bool = True


FAMILIES = """\
The same raw ops on the same inputs, eagerly. The aims are ratios of speeds. What stays below its aim does so because:

- Hashes: a string is an object of Python, a string of TensorFlow up to 22 bytes stands in its tensor. Of some
  190 ns of the processor for a word of 1 to 24 letters, 35 tell that all elements are bytes, 62 get the length and
  join the bytes (a miss of the cache for each object), 20 sort by length, 40 gather strings of one length, 15
  compute FarmHash, 10 its remainder. Telling and joining alone take four times TensorFlow's 23 ns. SipHash adds
  126 calls of NumPy for each 8,192 strings of one length: NumPy has no rotation, which takes three passes.
- Dense Examples, on the edge: of a profile, a quarter makes the places of all values (arange and repeat), a seventh
  cuts out the texts one by one, a ninth each goes through the maps and reads lengths: passes over 10^5 cursors.
- Resizing, on the edge: two fifths decode; gathering the neighbours of each pixel, four passes of NumPy, takes 0.17 of the
  whole, interpolating 0.07, the rest are calls and conversions of 100 small images.
- Lu of many small matrices: 0.40 and 0.45 by the processors' time, in which it does not wait for other work.
- Lu and MatrixSolve of one large matrix: NumPy gives no LU decomposition. The columns are eliminated one by one in
  panels of 32, some 15 calls of NumPy for each column; what follows a panel is a product of BLAS.
- Matching by RE2: 1.1 of 2.8 us is the call of the library, the rest its Python objects of matches. Short strings
  of ASCII and patterns of at most two quantifiers are left to Python's `re`."""

PIPELINES = """\
Pipelines of `opkernel.data` and `tf.data` over the same tensors and files; a step takes all elements. Aims: 0.5 for pipelines
of real work, 0.2 for trivial ones. On a busy machine only the ratios of the processors' time mean something.

- Python's `for` costs TensorFlow more for each element. Pipelines that end in large batches show its own speed.
- Below their aim stay Examples: of a profile of Examples one by one, half reads their fields in Python, a sixth checks and
  shapes the values. For batches of 64, most are calls of NumPy on short arrays.
- Photographs, on the edge: as in the families of ops."""

PARTS = {
    "models": Part(
        "Networks",
        "Steps of frozen graphs with random weights by `Session.run`, on the NumPy kernels alone.",
        ("models.py",),
    ),
    "elementwise": Part(
        "Element-wise chains on 16 M floats",
        "Bounds: 1.5 for arithmetic, 2.5 with tanh.",
        ("elementwise.py",),
    ),
    "dispatch": Part(
        "Tiny ops",
        "Bounds: 1.05 x the NumPy calls by hand, parity with TensorFlow's Session, 1.2 x the speed of "
        "`tf.function`; one-op `Session.run` 20 x as fast.",
        ("dispatch.py",),
    ),
    "catalogue": Part("Families of ops", FAMILIES, ("catalogue.py",)),
    "pipelines": Part("Input pipelines", PIPELINES, ("pipelines.py",)),
    "loops": Part("Loops of TensorFlow 1", "", ("loops.py",)),
    "branches": Part(
        "Two towers, with branches on threads",
        "Bounds: 1.3 x the speed of the plan, 1.1 x for transposes, 0.95 x where branches do not pay.",
        ("branches.py",),
    ),
    "shapes": Part(
        "Plans for shapes that repeat",
        "Models of unknown batch size, and their gradients. The general plan stands first, then the plan "
        "for the fed shapes.",
        ("shapes_that_repeat.py",),
        with_tensorflow=False,
    ),
    "weights": Part(
        "Weights from variables",
        "Bound for `variable`: 1.1 x the time with constants, as the step runs a plan with the value that the variable keeps.\n"
        "`assigned` assigns its variable in each step, and so runs the general plan.",
        ("weights.py",),
        with_tensorflow=False,
    ),
    "training": Part(
        "Training",
        "The network of examples/training, a small transformer, a ResNet-18, an LSTM and a table of vectors of which steps "
        "change a few rows, in batches; `xla` and `auto` with compiled clusters.",
        ("training.py", "--engines", "xla", "auto", "--warm", "10"),
    ),
    "plan_building": Part(
        "Building plans",
        "The first step of chains of cheap nodes, optimised, in a process that has built such a plan before.",
        ("plan_building.py",),
        with_tensorflow=False,
    ),
    "start": Part("Starting", "", ("start.py",), with_tensorflow=False),
}


def measured(name: str, tensorflow: str) -> None:
    """Run the script of a part, and keep what it printed and its rows."""
    RESULTS.mkdir(exist_ok=True)
    part, output, rows = PARTS[name], RESULTS / f"{name}.txt", RESULTS / f"{name}.jsonl"
    command = [*part.command, *(["--tensorflow", tensorflow] if part.with_tensorflow else [])]
    print(f"{name}: {' '.join(command)}", flush=True)
    rows.unlink(missing_ok=True)
    done = subprocess.run(
        [sys.executable, str(HERE / command[0]), *command[1:]],
        env=clean_environment() | {ROWS_FILE: str(rows)},
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    print(done.stdout, flush=True)
    circumstances = (
        f"python benchmarks/{' '.join(command)}\n{time.strftime('%Y-%m-%d')}, {scheduler()}, "
        f"load {os.getloadavg()[0]:.1f} when it ended\n{machine()}; {versions(tensorflow)}\n"
    )
    output.write_text(f"{circumstances}\n{done.stdout}")


def scheduler() -> str:
    """How the system schedules this process and those it starts.

    What else runs on the machine matters less to those of SCHED_RR (`chrt -r 1 python ...`).
    """
    names = ("SCHED_OTHER", "SCHED_RR", "SCHED_FIFO", "SCHED_BATCH", "SCHED_IDLE")
    values = {getattr(os, name): name for name in names if hasattr(os, name)}
    return values.get(os.sched_getscheduler(0), "unknown") if values else "unknown"


def machine() -> str:
    """The processor, and how much of it."""
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
        name = next(line.split(":")[1].strip() for line in lines if line.startswith("model name"))
    except (OSError, StopIteration):
        name = platform.processor()
    return f"{os.cpu_count()} x {name}, {platform.system()}"


def versions(tensorflow: str) -> str:
    """What was compared."""
    command = [tensorflow, "-c", "import tensorflow as tf; print(tf.__version__)"]
    environment = clean_environment() | {"TF_CPP_MIN_LOG_LEVEL": "3"}
    theirs = subprocess.run(
        command, env=environment, capture_output=True, text=True, check=True
    ).stdout.strip()
    return f"CPython {platform.python_version()}, NumPy {np.__version__}, TensorFlow {theirs}"


def section(name: str) -> list[str]:
    """The page's section of a part; empty where it was never measured."""
    path, part = RESULTS / f"{name}.jsonl", PARTS[name]
    if not path.exists():
        return []
    when = (RESULTS / f"{name}.txt").read_text().splitlines()[1]
    lines = [f"## {part.title}", "", *([part.about, ""] if part.about else [])]
    lines += ["| | time | beside | ratio | aim |", "|---|---|---|---|---|"]
    lines += [table_row(Row(*json.loads(line))) for line in path.read_text().splitlines()]
    return [*lines, "", f"`benchmarks/results/{name}.txt`: {when}.", ""]


def table_row(row: Row) -> str:
    """A row of a table; the ratio is that of the speeds."""
    ratio, aim = row.other_seconds / row.seconds, "" if row.aim is None else f"{row.aim:g}"
    beside = f"{row.other}, {duration(row.other_seconds)}"
    return f"| {row.what} | {duration(row.seconds)} | {beside} | {ratio:.3g} | {aim} |"


def duration(seconds: float) -> str:
    """A time in three digits."""
    unit, name = next((u, n) for u, n in ((1, "s"), (1e-3, "ms"), (0, "us")) if seconds >= u)
    return f"{seconds / (unit or 1e-6):.3g} {name}"


def write_page() -> None:
    """Write docs/performance.md of what is kept."""
    lines = [
        "# Performance",
        "",
        "Written by `python benchmarks/performance.py`; what the scripts printed is in `benchmarks/results`, with the machine.",
        "A ratio is how many times as fast opkernel is as what it stands beside, in medians of rounds that take turns. Above",
        "1 it is faster. Machines are noisy: only ratios within a run mean anything, and the load tells how busy this one was.",
        "",
    ]
    for name in PARTS:
        lines += section(name)
    PAGE.write_text("\n".join(lines).rstrip() + "\n")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tensorflow", metavar="PYTHON", required=True)
    parser.add_argument("--only", nargs="*", choices=list(PARTS), default=list(PARTS))
    options = parser.parse_args()
    for name in options.only:
        measured(name, options.tensorflow)
        write_page()
    write_page()


if __name__ == "__main__":
    main()
