"""Measures the speed of everything and writes docs/performance.md.

    python benchmarks/performance.py --tensorflow PYTHON_WITH_TENSORFLOW [--only PART ...]

Takes a quarter of an hour. What each part printed is kept in the folder of `models.CACHE`; `--only` measures some
parts anew (or none, if it names none) and writes the page with what is kept of the others.
"""

import argparse
import json
import os
import platform
import subprocess
import sys
import time
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from measure import clean_environment
from models import BOUNDS, CACHE

HERE = Path(__file__).parent
PAGE = HERE.parent / "docs" / "performance.md"
KEPT = CACHE / "performance"


class Part(NamedTuple):
    """A script, and what the page says of it."""

    title: str
    about: str
    command: tuple[str, ...]
    with_tensorflow: bool = True
    with_json: bool = False


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
        "Frozen graphs with random weights, on the NumPy kernels alone. The ratio is TensorFlow's time of "
        "`Session.run` divided by ours, in medians of rounds that take turns.",
        ("models.py",),
        with_json=True,
    ),
    "elementwise": Part(
        "Element-wise chains on 16 M floats",
        "Bounds: 1.5 x TensorFlow's speed for arithmetic, 2.5 x with tanh.",
        ("elementwise.py",),
        with_json=True,
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
        "Bounds: 20,000 nodes a second whatever the size; 100 ms for the first step of 1,000 nodes.",
        ("plan_building.py",),
        with_tensorflow=False,
    ),
    "start": Part("Starting", "", ("start.py",), with_tensorflow=False),
}


def measured(name: str, tensorflow: str) -> None:
    """Run the script of a part, and keep what it printed."""
    KEPT.mkdir(parents=True, exist_ok=True)
    part, found = PARTS[name], KEPT / f"{name}.found.json"
    command = [*part.command, *(["--tensorflow", tensorflow] if part.with_tensorflow else [])]
    run = [sys.executable, str(HERE / command[0]), *command[1:]]
    if part.with_json:
        run += ["--json", str(found)]
    print(f"{name}: {' '.join(command)}", flush=True)
    done = subprocess.run(
        run, env=clean_environment(), stdout=subprocess.PIPE, text=True, check=True
    )
    print(done.stdout, flush=True)
    kept = {
        "command": " ".join(["python", f"benchmarks/{command[0]}", *command[1:]]),
        "date": time.strftime("%Y-%m-%d"),
        "load": round(os.getloadavg()[0], 1),
        "scheduler": scheduler(),
        "output": done.stdout,
        "found": json.loads(found.read_text()) if part.with_json else None,
    }
    (KEPT / f"{name}.json").write_text(json.dumps(kept, indent=1) + "\n")


def scheduler() -> str:
    """How the system schedules this process and those it starts.

    What else runs on the machine matters less to those of SCHED_RR (`chrt -r 1 python ...`).
    """
    names = ("SCHED_OTHER", "SCHED_RR", "SCHED_FIFO", "SCHED_BATCH", "SCHED_IDLE")
    values = {getattr(os, name): name for name in names if hasattr(os, name)}
    return values.get(os.sched_getscheduler(0), "unknown") if values else "unknown"


def model_table(found: dict[str, dict[str, Any]]) -> list[str]:
    """A row for each model and batch size."""
    lines = [
        "| model | batch | opkernel, ms | TensorFlow, ms | ratio | floor | target | most of our time |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for name, batches in found.items():
        for batch, result in batches.items():
            ours, theirs = (
                result["median"][f"{system} run"] * 1e3 for system in ("opkernel", "tensorflow")
            )
            floor = BOUNDS[name, int(batch)]
            total = sum(seconds for seconds, _ in result["ops"].values())
            hottest = sorted(result["ops"].items(), key=lambda item: -item[1][0])[:4]
            where = ", ".join(f"{op} {seconds / total:.0%}" for op, (seconds, _) in hottest)
            lines.append(
                f"| {name} | {batch} | {ours:.3g} | {theirs:.3g} | {theirs / ours:.2f} | "
                f"{floor:.2f} | {1.2 * floor:.2f} | {where} |"
            )
    return [*lines, ""]


def section(name: str) -> list[str]:
    """The page's section of a part; empty where it was never measured."""
    path, part = KEPT / f"{name}.json", PARTS[name]
    if not path.exists():
        return []
    kept = json.loads(path.read_text())
    lines = [f"## {part.title}", "", part.about, ""] if part.about else [f"## {part.title}", ""]
    if name == "models":
        lines += model_table(kept["found"])
    circumstances = f"{kept['date']}, {kept['scheduler']}, load {kept['load']} when it ended"
    lines += [f"`{kept['command']}` ({circumstances}):", ""]
    lines += ["```", kept["output"].rstrip(), "```", ""]
    return lines


def versions(tensorflow: str) -> str:
    """What was compared."""
    command = [tensorflow, "-c", "import tensorflow as tf; print(tf.__version__)"]
    environment = clean_environment() | {"TF_CPP_MIN_LOG_LEVEL": "3"}
    theirs = subprocess.run(
        command, env=environment, capture_output=True, text=True, check=True
    ).stdout.strip()
    return f"CPython {platform.python_version()}, NumPy {np.__version__}, TensorFlow {theirs}"


def machine() -> str:
    """The processor, and how much of it."""
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
        name = next(line.split(":")[1].strip() for line in lines if line.startswith("model name"))
    except (OSError, StopIteration):
        name = platform.processor()
    return f"{os.cpu_count()} x {name}, {platform.system()}"


def write_page(tensorflow: str) -> None:
    """Write docs/performance.md of what is kept."""
    lines = [
        "# Performance",
        "",
        f"Written by `python benchmarks/performance.py`. {machine()}; {versions(tensorflow)}.",
        "",
        "OPENBLAS_* was not set. Figures of TensorFlow were measured in the same run, in turns with opkernel.",
        "Machines are noisy: only ratios within a run mean anything. The load tells how busy this machine",
        "was with other work.",
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
        write_page(options.tensorflow)
    write_page(options.tensorflow)


if __name__ == "__main__":
    main()
