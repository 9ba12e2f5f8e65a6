"""A step of a SavedModel beside one of its frozen graph.

    python benchmarks/variables.py [DIRECTORY ...] [--tensorflow PYTHON_WITH_TENSORFLOW]

The SavedModels are `saved_dense` of ../shared/models, those of the directories and, with TensorFlow, the
exports of `write_saved_models.py`. Bound: 1.03 x the frozen graph where its step takes over 1 ms, else
0.3 us more, and 0.1 us for each variable. The last rows tell what a step takes after an assignment, when
the variables are read one by one, and how long the step takes that makes a program for their values.
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
SHARED = HERE.parents[1] / "shared" / "models" / "saved_dense" / "saved_model"
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


def compare(directory: Path) -> None:
    """Print how a model does."""
    steps, count = contenders(directory)
    took = {}
    for name, step in steps.items():
        took[name] = [_seconds(step) for _ in range(STEPS)]
    calls = max(1, int(0.01 / min(took["frozen, callable"])))
    pairs = {
        "variables, callable": "frozen, callable",
        "variables, Session.run": "frozen, Session.run",
        "variables, signature": "frozen, Session.run",
    }
    found: dict[str, list[float]] = {name: [] for name in steps}
    for _ in range(60):
        for name, step in steps.items():
            found[name].append(_seconds(step, calls))
    print(f"{directory.name}: {count} variables")
    for name, of_frozen in pairs.items():
        own, frozen = statistics.median(found[name]), statistics.median(found[of_frozen])
        least = min(found[name]) - min(found[of_frozen])
        print(
            f"  {name:24s} {own * 1e6:12.2f} us, {of_frozen} {frozen * 1e6:12.2f} us:"
            f" {own / frozen:6.3f} x, of the fastest rounds {least * 1e6:+8.2f} us"
        )
    general, making = took["variables, callable"][1], max(took["variables, callable"][1:])
    print(
        f"  before its values are constants {general * 1e6:.0f} us; made in {making * 1e3:.0f} ms"
    )


def _seconds(step: Callable[[], object], calls: int = 1) -> float:
    start = time.perf_counter()
    for _ in range(calls):
        step()
    return (time.perf_counter() - start) / calls


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
        for directory in [SHARED, *options.directories, *sorted(Path(folder).iterdir())]:
            if directory.exists():
                compare(directory)


if __name__ == "__main__":
    main()
