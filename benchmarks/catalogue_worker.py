"""A process that measures rows of `catalogue_rows.py` when told to: by opkernel, or by TensorFlow.

    python benchmarks/catalogue_worker.py opkernel|tensorflow

`catalogue.py` starts it. It answers each line of its input, a JSON list, with one line: `["load", row, path]`
reads the inputs of a row and takes its first step; `["time", seconds]` tells the median of as many steps as take
that long, one at least: the seconds on the clock, and those of the processors.
"""

import json
import pickle
import statistics
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from catalogue_rows import ROWS


def by_tensorflow() -> tuple[Any, Callable[[Any], Any]]:
    """The raw ops, and what makes their inputs of arrays."""
    import tensorflow as tf

    return tf.raw_ops, tf.constant


def by_opkernel() -> tuple[Any, Callable[[Any], Any]]:
    """The raw ops, which take arrays."""
    import opkernel.raw_ops

    return opkernel.raw_ops, lambda array: array


def median_seconds(step: Callable[[], object], at_least_s: float) -> tuple[float, float]:
    """The median time of as many steps as take `at_least_s`: on the clock, and of the processors."""
    times: list[tuple[float, float]] = []
    while sum(wall for wall, _ in times) < at_least_s:
        start = time.perf_counter(), time.process_time()
        step()
        times.append((time.perf_counter() - start[0], time.process_time() - start[1]))
    wall, processors = (statistics.median(part) for part in zip(*times, strict=True))
    return wall, processors


def main() -> None:
    ops, prepare = by_opkernel() if sys.argv[1] == "opkernel" else by_tensorflow()
    step: Callable[[], object] = tuple
    for line in sys.stdin:
        command, *arguments = json.loads(line)
        answer = None
        if command == "load":
            row, path = arguments
            step = tuple  # lets go of the inputs before
            inputs = [prepare(array) for array in pickle.loads(Path(path).read_bytes())]
            step = partial(ROWS[row].step, ops, *inputs)
            step()
        else:
            answer = median_seconds(step, *arguments)
        print(json.dumps(answer), flush=True)


if __name__ == "__main__":
    main()
