"""How fast whole networks are, beside TensorFlow's Session.

    python benchmarks/models.py --tensorflow PYTHON_WITH_TENSORFLOW [--models NAME ...]
                                [--batches N ...] [--rounds N] [--json FILE]

An MLP, MobileNetV2, ResNet-50 and BERT-base (128 tokens) with random weights, on the NumPy kernels
alone. Prints, for each batch size, the time of a step of each, by `Session.run` and by a made
callable, TensorFlow's time divided by ours (floors and targets: `BOUNDS`), and where our time goes.
The models are written by `write_models.py` where they are missing, to
`$XDG_CACHE_HOME/opkernel/benchmarks` (550 MB).
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from measure import Row, Worker, clean_environment, note_row, rerun_in_clean_environment

HERE = Path(__file__).parent
CACHE = Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache")) / "opkernel" / "benchmarks"


class Model(NamedTuple):
    """What is fetched of a model, and what is fed (`model_worker.VALUES`)."""

    fetch: str
    feeds: tuple[str, ...]


MODELS = {
    "mlp": Model("y:0", ("x:0=vector",)),
    "mobilenet_v2": Model("y:0", ("x:0=image",)),
    "resnet_50": Model("y:0", ("x:0=image",)),
    "bert_base": Model("states:0", ("tokens:0=tokens", "present:0=ones", "kinds:0=zeros")),
}
BOUNDS = {
    ("mlp", 1): 1.0,
    ("mlp", 8): 1.0,
    ("mobilenet_v2", 1): 0.45,
    ("mobilenet_v2", 8): 0.3,
    ("resnet_50", 1): 0.55,
    ("resnet_50", 8): 0.5,
    ("bert_base", 1): 0.6,
    ("bert_base", 8): 0.48,
}
"""The least ratio of TensorFlow's time to ours; the targets are a fifth above."""
HOWS = ("run", "callable")
SECONDS = 0.5


def check_results(workers: dict[str, Worker], batch: int) -> float:
    """The largest difference of the results, by the largest of TensorFlow's values."""
    with tempfile.TemporaryDirectory() as directory:
        results = {}
        for system, worker in workers.items():
            path = f"{directory}/{system}.npy"
            worker.ask("save", batch, path)
            results[system] = np.load(path)
    ours, theirs = results["opkernel"], results["tensorflow"]
    difference = float(np.abs(ours - theirs).max() / np.abs(theirs).max())
    assert difference < 1e-4, difference
    return difference


def measure(
    python: str, path: Path, model: Model, batches: Sequence[int], rounds: int
) -> dict[int, dict[str, Any]]:
    """For each batch size: seconds a step, median and least, and our seconds in each op."""
    pythons = {"opkernel": sys.executable, "tensorflow": python}
    script, fed = str(HERE / "model_worker.py"), [model.fetch, *model.feeds]
    workers = {
        system: Worker([python, script, system, str(path), *fed])
        for system, python in pythons.items()
    }
    found: dict[int, dict[str, Any]] = {}
    for batch in batches:
        difference = check_results(workers, batch)
        times: dict[tuple[str, str], list[float]] = {}
        for _ in range(rounds):
            for how in HOWS:
                for system, worker in workers.items():
                    seconds = worker.ask("time", how, batch, SECONDS)
                    times.setdefault((system, how), []).append(seconds)
        medians = {f"{s} {how}": statistics.median(t) for (s, how), t in times.items()}
        least = {f"{s} {how}": min(t) for (s, how), t in times.items()}
        found[batch] = {
            "median": medians,
            "least": least,
            "difference": difference,
            "ops": workers["opkernel"].ask("profile", batch),
        }
    for worker in workers.values():
        worker.close()
    return found


def report(title: str, found: dict[str, Any], bound: float | None) -> None:
    """Print what `measure` found for one batch size."""
    print(f"{title} (bound {bound}); results differ by {found['difference']:.1e}")
    ours, theirs = (found["median"][f"{system} run"] for system in ("opkernel", "tensorflow"))
    note_row(Row(title, ours, "TensorFlow", theirs, bound))
    for how in HOWS:
        ours, theirs = (found["median"][f"{s} {how}"] for s in ("opkernel", "tensorflow"))
        least = found["least"][f"tensorflow {how}"] / found["least"][f"opkernel {how}"]
        print(
            f"  {how:9s} opkernel {ours * 1e3:9.3f} ms   TensorFlow {theirs * 1e3:9.3f} ms   "
            f"ratio {theirs / ours:6.3f}   of the fastest rounds {least:6.3f}"
        )
    total = sum(seconds for seconds, _ in found["ops"].values())
    for op, (seconds, calls) in sorted(found["ops"].items(), key=lambda item: -item[1][0])[:8]:
        print(f"    {seconds * 1e3:9.3f} ms {seconds / total:6.1%} {calls:5.0f} x {op}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tensorflow", metavar="PYTHON", required=True)
    parser.add_argument("--models", nargs="+", default=list(MODELS), choices=list(MODELS))
    parser.add_argument("--batches", nargs="+", type=int, default=[1, 8])
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--json", type=Path, metavar="FILE", help="write what was measured, too")
    options = parser.parse_args()
    rerun_in_clean_environment()
    missing = [name for name in options.models if not (CACHE / f"{name}.pb").exists()]
    if missing:
        command = [options.tensorflow, str(HERE / "write_models.py"), str(CACHE), *missing]
        subprocess.run(command, check=True, env=clean_environment())
    results = {}
    for name in options.models:
        path = CACHE / f"{name}.pb"
        results[name] = measure(
            options.tensorflow, path, MODELS[name], options.batches, options.rounds
        )
        for batch, found in results[name].items():
            report(f"{name}, batch {batch}", found, BOUNDS.get((name, batch)))
    if options.json:
        options.json.write_text(json.dumps(results, indent=1) + "\n")


if __name__ == "__main__":
    main()
