"""The first answer of a second process: by engines that find their programs on disk, beside OpenVINO's own cache.

    python benchmarks/cached_starts.py [--models NAME ...] [--rounds N] [--systems NAME ...] [--tensorflow PYTHON]

A process of each system fills a cache. Then all take turns: each round starts a process of each, which imports, loads the
model, and computes one step for a batch of 1. Prints the median seconds of the clock and of the processors, and their ratio to
OpenVINO by itself. That one is measured twice: with the frozen graph, which it converts at each start, and with a model in its own
format, written before. Where its front end refuses the graph, there is nothing to compare with.
"""

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from measure import clean_environment, rerun_in_clean_environment
from model_worker import VALUES, by_opkernel, by_tensorflow
from models import CACHE, MODELS

SYSTEMS = ("off", "openvino", "xla", "OpenVINO", "OpenVINO, own format")
"""What is measured: opkernel with these values of `jit`, and OpenVINO by itself."""


def openvino_run(path: Path, feeds: dict[str, Any], folder: Path, is_own: bool) -> None:
    """A step of OpenVINO by itself, with its cache in a folder; the model in its own format is written there."""
    import openvino

    core = openvino.Core()
    core.set_property({"CACHE_DIR": str(folder)})
    own = folder / "model.xml"
    if is_own and own.exists():
        model = core.read_model(own)
    else:
        model = core.read_model(path)
        model.reshape({name: list(value.shape) for name, value in feeds.items()})
        if is_own:
            openvino.save_model(model, own, compress_to_fp16=False)
            model = core.read_model(own)
    hints = {"PERFORMANCE_HINT": "LATENCY", "INFERENCE_PRECISION_HINT": "f32"}
    compiled = core.compile_model(model, "CPU", hints)
    compiled.create_infer_request().infer(dict(zip(feeds, feeds.values(), strict=True)))


def measured(system: str, name: str, folder: Path) -> None:
    """Run one step in this process, and print what it took since the process began."""
    model = MODELS[name]
    kinds = dict(one.split("=") for one in model.feeds)
    random = np.random.default_rng(0)
    feeds = {one: VALUES[kind](random, 1) for one, kind in kinds.items()}
    path = CACHE / f"{name}.pb"
    if system.startswith("OpenVINO"):
        openvino_run(path, feeds, folder, system != "OpenVINO")
    elif system == "TensorFlow":
        by_tensorflow(path, list(kinds), model.fetch)[0](feeds)
    else:
        by_opkernel(path, list(kinds), model.fetch, system)[0](feeds)
    print(json.dumps([time.time(), time.process_time()]), flush=True)


def start(python: str, system: str, name: str, folder: Path) -> tuple[float, float] | None:
    """Seconds of the clock to the answer of a process, and of the processors; None where the system refuses the model."""
    environment = clean_environment() | {
        "OPKERNEL_CACHE": str(folder),
        "TF_CPP_MIN_LOG_LEVEL": "3",
    }
    began = time.time()
    done = subprocess.run(
        [python, __file__, "--measure", system, name, str(folder)],
        env=environment,
        capture_output=True,
        text=True,
    )
    if done.returncode:
        return None
    ended, processors = json.loads(done.stdout.splitlines()[-1])
    return ended - began, processors


def compare(name: str, systems: dict[str, str], rounds: int) -> None:
    """Print the first and the second start of each system."""
    with tempfile.TemporaryDirectory() as root:
        starts: dict[str, Callable[[], tuple[float, float] | None]] = {}
        first: dict[str, tuple[float, float]] = {}
        for number, (system, python) in enumerate(systems.items()):
            folder = Path(root, str(number))
            folder.mkdir()
            starts[system] = partial(start, python, system, name, folder)
            found = starts[system]()
            if found is None:
                print(f"{name}: {system} does not run it")
                starts.pop(system)
            else:
                first[system] = found
        times: dict[str, list[tuple[float, float]]] = {system: [] for system in starts}
        for _ in range(rounds):
            for system, one in starts.items():
                found = one()
                if found is None:
                    raise SystemExit(f"{name}: {system} ran the first time, and fails now")
                times[system].append(found)
    print(f"{name}: seconds to the first answer, by the clock and of the processors")
    medians = {
        s: [statistics.median(one) for one in zip(*t, strict=True)] for s, t in times.items()
    }
    for system, (clock, processors) in medians.items():
        peers = [
            f"{clock / medians[peer][0]:.2f} / {processors / medians[peer][1]:.2f} x {peer}"
            for peer in SYSTEMS[-2:]
            if peer in medians
        ]
        cold = first[system]
        print(
            f"  {system:22s} first {cold[0]:6.2f} {cold[1]:6.2f}   cached {clock:6.2f} {processors:6.2f}"
            f"   {'   '.join(peers)}"
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--models", nargs="*", default=list(MODELS), choices=list(MODELS))
    parser.add_argument("--systems", nargs="*", default=list(SYSTEMS), choices=SYSTEMS)
    parser.add_argument("--tensorflow", metavar="PYTHON", help="a Python that has TensorFlow")
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()
    rerun_in_clean_environment()
    systems = dict.fromkeys(options.systems, sys.executable)
    if options.tensorflow:
        systems["TensorFlow"] = options.tensorflow
    for name in options.models:
        compare(name, systems, options.rounds)


if __name__ == "__main__":
    if sys.argv[1:2] == ["--measure"]:
        measured(sys.argv[2], sys.argv[3], Path(sys.argv[4]))
        sys.exit()
    main()
