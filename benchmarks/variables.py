"""A step of a SavedModel beside one of its frozen graph.

    python benchmarks/variables.py [DIRECTORY ...] [--tensorflow PYTHON_WITH_TENSORFLOW]

The SavedModels are those of the directories and, with TensorFlow, what `write_saved_models.py` writes. Bound:
1.03 x the frozen graph where its step takes over 1 ms, else 0.3 us more, and 0.1 us for each variable. Wall
time, and the time of processors, which other work on the machine changes less.
"""

import argparse
import statistics
import subprocess
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from measure import clean_environment, rerun_in_clean_environment

import opkernel

HERE = Path(__file__).parent
STEPS = 8
"""More than are run before the values of variables become constants."""


def contenders(directory: Path) -> tuple[dict[str, Callable[[], object]], int]:
    """The steps that are compared, by name, and the number of variables."""
    model, loaded = opkernel.load(directory), opkernel.load_as_session(directory)
    signature = loaded.meta_graph.signature_def["serving_default"]
    feeds = [info.name for info in signature.inputs.values()]
    fetches = [info.name for info in signature.outputs.values()]
    frozen = opkernel.Session(
        opkernel.convert_variables_to_constants(loaded.session, fetches, feeds)
    )
    named = {
        name: _value(spec) for name, spec in model.signatures["serving_default"].inputs.items()
    }
    values = [named[name] for name in signature.inputs]
    fed = dict(zip(feeds, values, strict=True))
    steps: dict[str, Callable[[], object]] = {
        "frozen, callable": partial(frozen.make_callable(fetches, feeds), *values),
        "variables, callable": partial(loaded.session.make_callable(fetches, feeds), *values),
        "frozen, Session.run": partial(frozen.run, fetches, fed),
        "variables, Session.run": partial(loaded.session.run, fetches, fed),
        "variables, signature": partial(model.signatures["serving_default"], **named),
    }
    return steps, len(model.variables)


def _value(spec: Any) -> Any:
    """A value for an input, of a batch of one."""
    shape = [1 if size is None else size for size in spec.shape.as_list()]
    random = np.random.default_rng(0)
    if spec.dtype.is_floating:
        return random.random(shape).astype(spec.dtype.numpy_dtype)
    return random.integers(0, 100, shape).astype(spec.dtype.numpy_dtype)


PAIRS = {
    "variables, callable": "frozen, callable",
    "variables, Session.run": "frozen, Session.run",
    "variables, signature": "frozen, Session.run",
}


def compare(directory: Path) -> None:
    """Print how a model does."""
    steps, count = contenders(directory)
    took = {name: [measured(step)[0] for _ in range(STEPS)] for name, step in steps.items()}
    calls = max(1, int(0.005 / min(took["frozen, callable"])))
    rounds = min(200, max(20, int(2 / (calls * min(took["frozen, callable"])))))
    found: dict[str, list[tuple[float, float]]] = {name: [] for name in steps}
    for _ in range(rounds):
        for name, step in steps.items():
            found[name].append(measured(step, calls))
    made = max(took["variables, callable"][1:])
    print(f"{directory.name}: {count} variables, made constants in {made * 1e3:.0f} ms")
    for name, of_frozen in PAIRS.items():
        texts = []
        for of_processors, what in enumerate(("wall", "processors")):
            own, frozen = (
                statistics.median([one[of_processors] for one in found[key]])
                for key in (name, of_frozen)
            )
            more = (own - frozen) * 1e6
            texts.append(f"{what} {own * 1e6:10.2f} us = {own / frozen:.3f} x, {more:+8.2f} us")
        print(f"  {name:24s} {';  '.join(texts)}  ({of_frozen})")


def measured(step: Callable[[], object], calls: int = 1) -> tuple[float, float]:
    """The seconds of a call: of the wall's clock, and of processors."""
    start, used = time.perf_counter(), time.process_time()
    for _ in range(calls):
        step()
    seconds, used = time.perf_counter() - start, time.process_time() - used
    return seconds / calls, used / calls


def main() -> None:
    rerun_in_clean_environment()
    parser = argparse.ArgumentParser()
    parser.add_argument("directories", nargs="*", type=Path, metavar="DIRECTORY")
    parser.add_argument("--tensorflow", metavar="PYTHON")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        if options.tensorflow:
            command = [options.tensorflow, str(HERE / "write_saved_models.py"), folder]
            subprocess.run(command, check=True, env=clean_environment(), stderr=subprocess.DEVNULL)
        for directory in [*options.directories, *sorted(Path(folder).iterdir())]:
            compare(directory)


if __name__ == "__main__":
    main()
