"""Models mapped over data sets whose processes are killed: what is there counts, and the next run gives the rest.

The command `opkernel predict` runs in a process. At random moments the command, or one of its workers, is killed by
SIGKILL, up to three times. Then it runs to its end. The outputs are those of a run that nobody kills, no part is computed
twice, and no process and no unfinished file is left.
"""

import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from tools.campaigns.campaign import Finding

import opkernel
from opkernel import Graph, raw_ops, save_graph

__all__ = ["case"]

_WEIGHTS = np.array([[1, 2], [3, 4], [5, 6]], np.float32)
_LONGEST_S = 15.0


def case(rng: random.Random) -> str:
    """Kill a command up to three times, and let it end."""
    with tempfile.TemporaryDirectory() as name:
        run = _Run(Path(name), rng)
        kills = [run.killed(rng) for _ in range(rng.randint(1, 3))]
        whole = run.whole_parts()
        report = run.ended()
        run.check(report, whole)
    return f"killed {', '.join(sorted({*kills}))}"


class _Run:
    """A model, rows of which some fail, and the command that maps the one over the other.

    Args:
        folder: Where its files are.
        rng: Decides the number of rows, those that fail, and how many processes compute.
    """

    def __init__(self, folder: Path, rng: random.Random) -> None:
        self.rows, self.batch_size = rng.randint(40, 160), rng.randint(1, 4)
        self.failing = set(rng.sample(range(self.rows), rng.randint(0, 5)))
        self.x = np.arange(3 * self.rows, dtype=np.float32).reshape(-1, 3)
        text = [f"{'no ' * (row in self.failing)}{row}" for row in range(self.rows)]
        _write_model(folder / "model.pb")
        np.savez(folder / "in.npz", x=self.x, text=np.array(text))
        self.out = folder / "out"
        words = ["predict", folder / "model.pb", folder / "in.npz", self.out, "--json"]
        words += [f"--batch-size={self.batch_size}"]
        words += rng.choice([[], ["--concurrency=1"], ["--concurrency=2"]])
        self._command = [sys.executable, "-m", "opkernel", *map(str, words)]

    def killed(self, rng: random.Random) -> str:
        """Start the command and kill it, or a worker; what was killed."""
        before = len(self.whole_parts())
        parts = before + rng.choice([0, 1, rng.randint(1, self.rows // self.batch_size)])
        process = self._started()
        try:
            _wait_until(lambda: len(self._lines()) >= parts or process.poll() is not None)
            time.sleep(rng.random() * (0.02 if parts > before else 0.8))
            workers = [*_workers(process.pid)]
            victim = rng.choice([process.pid, *workers])
            is_over = process.poll() is not None
            _kill(victim)
            process.communicate(timeout=_LONGEST_S)
        except subprocess.TimeoutExpired:
            raise Finding("the command hangs after a kill") from None
        finally:
            process.kill()
            process.wait()
        _wait_until(lambda: not any(map(_is_there, workers)), "workers outlive the command")
        if is_over:
            return "nothing"
        return "the command" if victim == process.pid else "a worker"

    def ended(self) -> Any:
        """Run the command to its end; its report."""
        process = self._started()
        try:
            printed, errors = process.communicate(timeout=_LONGEST_S)
        finally:
            process.kill()
        if process.returncode != bool(self.failing):
            raise Finding(f"the last run ends with {process.returncode}: {errors}")
        return json.loads(printed)

    def whole_parts(self) -> set[str]:
        """The parts that count: those that have a line."""
        return {line["part"] for line in self._lines()}

    def check(self, report: Any, whole: set[str]) -> None:
        """Raise Finding where something is lost, wrong, left over, or was computed again."""
        count = -(-self.rows // self.batch_size)
        expected = {"rows": self.rows, "failed": len(self.failing), "parts": count}
        expected["computed"] = count - len(whole)
        told = {name: report[name] for name in expected}
        if told != expected:
            raise Finding(f"the last run tells {told}, and {expected} is right")
        names = {f"part-{number:05}.npz" for number in range(count)}
        left = {path.name for path in self.out.iterdir()} - names
        if left != {"manifest.json", "parts.jsonl", "failed.jsonl"}:
            raise Finding(f"the folder has {sorted(left)}")
        for number in range(count):
            self._check_part(number)
        lines = (self.out / "failed.jsonl").read_text().splitlines()
        if {json.loads(line)["row"] for line in lines} != self.failing:
            raise Finding(f"failed.jsonl has {lines}, and {self.failing} fail")

    def _check_part(self, number: int) -> None:
        first = number * self.batch_size
        rows = range(first, min(first + self.batch_size, self.rows))
        good = [row for row in rows if row not in self.failing]
        with np.load(self.out / f"part-{number:05}.npz") as part:
            found = {name: part[name] for name in part.files}
        if not good and not found:
            return
        np.testing.assert_array_equal(found["y:0"], self.x[good] @ _WEIGHTS)
        np.testing.assert_array_equal(found["number:0"], np.array(good, np.float32))

    def _started(self) -> subprocess.Popen[str]:
        pipe = subprocess.PIPE
        return subprocess.Popen(self._command, stdout=pipe, stderr=pipe, text=True)

    def _lines(self) -> list[Any]:
        """The whole lines of parts.jsonl."""
        try:
            text = (self.out / "parts.jsonl").read_text()
        except FileNotFoundError:
            return []
        return [json.loads(line) for line in text.splitlines(keepends=True) if line.endswith("\n")]


def _write_model(path: Path) -> None:
    """Write a graph: y = x @ weights, and the number that a text is."""
    graph = Graph()
    with graph.as_default():
        x = opkernel.placeholder(opkernel.float32, [None, 3], name="x")
        text = opkernel.placeholder(opkernel.string, [None], name="text")
        raw_ops.MatMul(a=x, b=_WEIGHTS, name="y")
        raw_ops.StringToNumber(string_tensor=text, out_type=opkernel.float32, name="number")
    save_graph(graph, path)


def _workers(parent: int) -> Iterator[int]:
    """The processes that a command has started to compute."""
    for path in Path("/proc").glob("[0-9]*"):
        try:
            of = int((path / "stat").read_text().rpartition(")")[2].split()[1])
            if of == parent and b"spawn_main" in (path / "cmdline").read_bytes():
                yield int(path.name)
        except OSError:  # it has ended
            continue


def _kill(process: int) -> None:
    try:
        os.kill(process, signal.SIGKILL)
    except ProcessLookupError:
        return


def _is_there(process: int) -> bool:
    try:
        return "Z" not in Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return False


def _wait_until(is_so: Callable[[], bool], problem: str = "nothing happens") -> None:
    end = time.monotonic() + _LONGEST_S
    while not is_so():
        if time.monotonic() > end:
            raise Finding(problem)
        time.sleep(0.002)
