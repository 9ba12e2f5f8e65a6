"""How the benchmarks measure: contenders interleaved, rounds repeated, medians compared.

Machines are noisy and change their speed; only ratios taken in one run mean anything.
"""

import json
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

__all__ = [
    "ROWS_FILE",
    "Row",
    "Worker",
    "clean_environment",
    "interleaved",
    "medians",
    "note_row",
    "report",
    "seconds_a_call",
    "wall_seconds",
]


ROWS_FILE = "OPKERNEL_BENCHMARK_ROWS"
"""The environment variable that names the file to which rows go."""


class Row(NamedTuple):
    """A row of docs/performance.md: what took so long, beside something else.

    Attributes:
        aim: the ratio of speeds that is wanted, if one is.
    """

    what: str
    seconds: float
    other: str
    other_seconds: float
    aim: float | None = None


def note_row(row: Row) -> None:
    """Have `performance.py`, where it runs this script, put a row into the page."""
    path = os.environ.get(ROWS_FILE)
    if path is not None:
        with open(path, "a") as file:
            file.write(json.dumps(row) + "\n")


def clean_environment() -> dict[str, str]:
    """The environment without OPENBLAS_*: some settings halve NumPy's matmul.

    Modules are compiled once, as on everybody's machine: without PYTHONDONTWRITEBYTECODE.
    """
    left_out = ("OPENBLAS_", "PYTHONDONTWRITEBYTECODE")
    return {key: value for key, value in os.environ.items() if not key.startswith(left_out)}


class Worker:
    """A process that measures when it is asked to: a line of JSON each way."""

    def __init__(self, command: Sequence[str]) -> None:
        self._process = subprocess.Popen(
            command,
            env=clean_environment() | {"TF_CPP_MIN_LOG_LEVEL": "3"},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )

    def ask(self, *command: Any) -> Any:
        """The answer to a command."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps(command) + "\n")
        self._process.stdin.flush()
        return json.loads(self._process.stdout.readline())

    def kill(self) -> None:
        """End the process at once."""
        self._process.kill()

    def close(self) -> None:
        """End the process."""
        self._process.communicate()


def rerun_in_clean_environment() -> None:
    """Start this program again in the clean environment, where this one is another."""
    if clean_environment() != dict(os.environ):
        os.execve(sys.executable, [sys.executable, *sys.argv], clean_environment())


def seconds_a_call(function: Callable[[], object], at_least_s: float = 0.02) -> float:
    """The time of one call, from as many calls as take `at_least_s`."""
    calls = 1
    while True:
        start = time.perf_counter()
        for _ in range(calls):
            function()
        elapsed = time.perf_counter() - start
        if elapsed >= at_least_s:
            return elapsed / calls
        calls = max(calls * 2, int(calls * at_least_s / max(elapsed, 1e-9)))


def interleaved(
    contenders: Mapping[str, Callable[[], object]], rounds: int = 9
) -> dict[str, float]:
    """The median seconds a call of each contender; every round measures each of them once."""
    return medians({name: partial(seconds_a_call, f) for name, f in contenders.items()}, rounds)


def medians(measurements: Mapping[str, Callable[[], float]], rounds: int = 9) -> dict[str, float]:
    """The median of what each measurement tells; every round makes each of them once."""
    found: dict[str, list[float]] = {name: [] for name in measurements}
    for _ in range(rounds):
        for name, measure in measurements.items():
            found[name].append(measure())
    return {name: statistics.median(values) for name, values in found.items()}


def wall_seconds(commands: Mapping[str, Sequence[str]], rounds: int = 7) -> dict[str, float]:
    """The median wall time of each command, started anew each round."""
    times: dict[str, list[float]] = {name: [] for name in commands}
    for _ in range(rounds):
        for name, command in commands.items():
            start = time.perf_counter()
            subprocess.run(command, env=clean_environment(), check=True, capture_output=True)
            times[name].append(time.perf_counter() - start)
    return {name: statistics.median(found) for name, found in times.items()}


def report(title: str, seconds: Mapping[str, float], reference: str, unit: float = 1e-6) -> None:
    """Print each contender's time, and its ratio to the reference's."""
    name_of_unit = {1e-6: "us", 1e-3: "ms", 1.0: "s"}[unit]
    print(title)
    for name, value in seconds.items():
        ratio = value / seconds[reference]
        print(f"  {name:34s} {value / unit:12.3f} {name_of_unit}   {ratio:8.3f} x {reference}")
        if name != reference:
            note_row(Row(f"{title}: {name}", value, reference, seconds[reference]))
