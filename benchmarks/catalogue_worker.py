"""A process that measures rows when told to: by opkernel, or by TensorFlow.

    python benchmarks/catalogue_worker.py ROWS opkernel|tensorflow

ROWS is the module of the rows: `catalogue_rows`, `pipeline_rows` or `call_rows`. `catalogue.py` starts it. It answers
each line of its input, a JSON list, with one line: `["load", row, path]` reads the inputs of a row, takes its first step
with compiled loops, and prints the error, null if there is none; `["time", seconds]` prints the median of as many steps as
take that long, one at least: the seconds on the clock, and those of the processors.
"""

import importlib
import importlib.util
import json
import pickle
import statistics
import sys
import time
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from types import ModuleType
from typing import Any


def by_tensorflow() -> tuple[Any, Callable[[Any], Any]]:
    """The system, and what makes its inputs of arrays."""
    import tensorflow as tf

    return tf, tf.constant


def by_opkernel() -> tuple[Any, Callable[[Any], Any]]:
    """The system, which takes arrays."""
    import opkernel

    return opkernel, lambda array: array


def median_seconds(step: Callable[[], object], at_least_s: float) -> tuple[float, float]:
    """The median time of as many steps as take `at_least_s`: on the clock, and of the processors."""
    times: list[tuple[float, float]] = []
    while sum(wall for wall, _ in times) < at_least_s:
        start = time.perf_counter(), time.process_time()
        step()
        times.append((time.perf_counter() - start[0], time.process_time() - start[1]))
    wall, processors = (statistics.median(part) for part in zip(*times, strict=True))
    return wall, processors


def loaded(
    rows: ModuleType, system: Any, prepare: Callable[[Any], Any], row: str, path: str
) -> Callable[[], object]:
    """The step of a row, taken once."""
    inputs = pickle.loads(Path(path).read_bytes())
    # Serialized graphs stay as they are.
    inputs = [one if isinstance(one, bytes) else prepare(one) for one in inputs]
    step: Callable[[], object] = rows.step_of(row, system, inputs)
    with _loops_compiled(system):
        step()
    return step


def _loops_compiled(system: Any) -> AbstractContextManager[object]:
    """A block that waits for loops which are otherwise compiled beside the first steps."""
    if system.__name__ != "opkernel" or importlib.util.find_spec("numba") is None:
        return nullcontext()
    from opkernel.providers.loops import loops_run

    return loops_run("compiled")


def main() -> None:
    rows, name = importlib.import_module(sys.argv[1]), sys.argv[2]
    system, prepare = by_opkernel() if name == "opkernel" else by_tensorflow()
    step: Callable[[], object] = tuple
    for line in sys.stdin:
        command, *arguments = json.loads(line)
        answer: object = None
        if command == "load":
            step = tuple  # lets go of the inputs before
            try:
                step = loaded(rows, system, prepare, *arguments)
            except Exception as error:
                answer = f"{type(error).__name__}: {error}"
        else:
            answer = median_seconds(step, *arguments)
        print(json.dumps(answer), flush=True)


if __name__ == "__main__":
    main()
