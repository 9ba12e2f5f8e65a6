"""How fast the families of ops are, beside TensorFlow: strings, records, images, random numbers, matrices.

    python benchmarks/catalogue.py --tensorflow PYTHON_WITH_TENSORFLOW [--rows WORD ...]
                                   [--rounds N] [--json FILE]
    python benchmarks/catalogue.py --every --tensorflow PYTHON [--ops NAME ...] [--json FILE]

Both run the same raw ops on the same inputs (`catalogue_rows.py`), eagerly. Prints, for each row, the
time of each, TensorFlow's time divided by ours, on the clock and as the processors count it, and the ratio
that is aimed at. Other work on the machine makes long steps wait more than short ones; the processors' time
does not tell that, but it counts all threads. `--rows` chooses the rows whose names hold one of the words.
`--every` measures calls of single ops instead (`every_op.py`).
"""

import argparse
import importlib
import json
import os
import pickle
import statistics
import sys
import tempfile
from pathlib import Path
from typing import Any

from measure import Row, Worker, note_row, rerun_in_clean_environment

WORKER = Path(__file__).parent / "catalogue_worker.py"
SECONDS = 0.2


def measure(
    workers: dict[str, Worker], name: str, row: Any, path: Path, rounds: int
) -> dict[str, Any]:
    """For each system the median seconds of a row: on the clock, and of the processors."""
    path.write_bytes(pickle.dumps(row.inputs()))
    for system, worker in workers.items():
        error = worker.ask("load", name, str(path))
        if error:
            raise RuntimeError(f"{name} by {system}: {error}")
    times: dict[str, list[Any]] = {system: [] for system in workers}
    for _ in range(rounds):
        for system, worker in workers.items():
            times[system].append(worker.ask("time", SECONDS))
    return {
        s: [statistics.median(part) for part in zip(*found, strict=True)]
        for s, found in times.items()
    }


def line(name: str, aim: float, found: dict[str, Any]) -> str:
    """What is printed of a row."""
    (ours, our_work), (theirs, their_work) = found["opkernel"], found["tensorflow"]
    note_row(Row(name, ours, "TensorFlow", theirs, aim))
    return (
        f"{name:48s} opkernel {ours * 1e3:8.1f} ms   TensorFlow {theirs * 1e3:8.1f} ms   ratio {theirs / ours:6.3f}"
        f"   of the processors' time {their_work / our_work:6.3f}   (aim {aim}; load {os.getloadavg()[0]:.1f})"
    )


def compare(module: str, about: str | None) -> None:
    """Run the command: measure the rows of a module, by opkernel and by TensorFlow in turns."""
    rows = importlib.import_module(module).ROWS
    parser = argparse.ArgumentParser(description=about)
    parser.add_argument("--tensorflow", metavar="PYTHON", required=True)
    parser.add_argument("--rows", nargs="+", metavar="WORD", default=[""])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--json", type=Path, metavar="FILE", help="write what was measured, too")
    options = parser.parse_args()
    rerun_in_clean_environment()
    pythons = {"opkernel": sys.executable, "tensorflow": options.tensorflow}
    workers = {
        system: Worker([python, str(WORKER), module, system]) for system, python in pythons.items()
    }
    results = {}
    with tempfile.TemporaryDirectory() as directory:
        for name in [name for name in rows if any(word in name for word in options.rows)]:
            path = Path(directory) / "inputs.pickle"
            found = results[name] = measure(workers, name, rows[name], path, options.rounds)
            print(line(name, rows[name].aim, found), flush=True)
    for worker in workers.values():
        worker.close()
    if options.json:
        options.json.write_text(json.dumps(results, indent=1) + "\n")


if __name__ == "__main__":
    if "--every" in sys.argv[1:]:
        sys.path.append(str(Path(__file__).parents[1]))  # of the package `tools`
        importlib.import_module("every_op").main()
    else:
        compare("catalogue_rows", __doc__)
