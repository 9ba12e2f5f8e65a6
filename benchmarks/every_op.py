"""How fast every op is, beside TensorFlow: recorded calls of each, made larger until TensorFlow takes a millisecond.

    python benchmarks/catalogue.py --every --tensorflow PYTHON_WITH_TENSORFLOW [--ops NAME ...] [--without-numba]
                                   [--rounds N] [--json FILE]

The calls are those of the campaign `scaled`; `tools/campaigns/growth.py` makes them larger as long as opkernel and
TensorFlow take them. Floating-point numbers are then drawn between the least and the largest, where the call takes these.
The call runs in a graph with all that it needs, so that its time has theirs too. Prints the calls by the ratio of the
processors' time, the worst first: those that take 1 ms or more by one of the two. The others are counted, and stand in
the JSON. With `--without-numba` the loops of opkernel run in NumPy.
"""

import argparse
import json
import os
import pickle
import statistics
import sys
import tempfile
import threading
import time
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
from measure import Worker, rerun_in_clean_environment
from tools.campaigns.growth import constants_of, grown, with_constants
from tools.campaigns.scaled_samples import samples
from tools.campaigns.scaling import Arrays, size_in_bytes

from opkernel.device.budget import Budget
from opkernel.errors import OpError
from opkernel.graph import Graph, import_graph_def
from opkernel.kernel import get_registered_kernels_for_op, under_budget
from opkernel.ops.catalogue import MODULE_OF_OP
from opkernel.ops.loader import load_all_ops
from opkernel.proto import GraphDef
from opkernel.runtime import Session

HERE = Path(__file__).parent
INPUT_BYTES, MEMORY_BYTES = 1 << 25, 1 << 30
WORK_S, SMALL_S, MOST_S, PATIENCE_S = 1e-3, 1e-3, 1.0, 60.0
SECONDS, SAMPLE_SECONDS = 0.02, 4.0
SAMPLES = 2


@dataclass
class Found:
    """What was measured of an op: seconds of a call on the clock, and of the processors; the error if there is one."""

    op: str
    inputs: str = ""
    opkernel: float = 0.0
    tensorflow: float = 0.0
    opkernel_work: float = 0.0
    tensorflow_work: float = 0.0
    error: str = ""

    @property
    def ratio(self) -> float:
        """How many times as much of the processors' time opkernel takes."""
        return self.opkernel_work / max(self.tensorflow_work, 1e-9)

    def is_work(self) -> bool:
        """Whether the call takes a millisecond."""
        return max(self.opkernel, self.tensorflow) >= WORK_S

    def line(self) -> str:
        """What is printed of it."""
        return (
            f"{self.op:44s} {self.opkernel * 1e3:9.2f} ms  TensorFlow {self.tensorflow * 1e3:9.2f} ms  processors' "
            f"{self.opkernel_work * 1e3:9.2f} / {self.tensorflow_work * 1e3:9.2f}  ratio {self.ratio:8.2f}   {self.inputs}"
        )


class Contender:
    """A worker that is started again when it broke, or did not answer in time."""

    def __init__(self, python: str, system: str, path: Path) -> None:
        self._command = [python, str(HERE / "catalogue_worker.py"), "call_rows", system]
        self._worker: Worker | None = None
        self._path = path

    def ask(self, *command: Any) -> Any:
        """The answer; a text where there is none."""
        worker = self._worker = self._worker or Worker(self._command)
        timer = threading.Timer(PATIENCE_S, worker.kill)
        timer.start()
        try:
            return worker.ask(*command)
        except (OSError, ValueError):
            self._worker = None
            return "the process ended"
        finally:
            timer.cancel()

    def load(self, name: str, graph_def: GraphDef) -> str | None:
        """Load a call; the error if there is one."""
        self._path.write_bytes(pickle.dumps([graph_def.SerializeToString()]))
        answer: str | None = self.ask("load", name, str(self._path))
        return answer

    def close(self) -> None:
        """End the process."""
        if self._worker:
            self._worker.close()


class Trial:
    """Runs calls of a sample, to see whether they are right and how long they take."""

    def __init__(self, sample: GraphDef, deadline: float) -> None:
        self.sample = sample
        self.deadline = deadline
        self.seconds = 0.0
        self._elements = -1

    def accepts(self, arrays: Arrays) -> bool:
        """Whether opkernel takes the call, in little enough time, and it is larger than the one before."""
        if time.monotonic() > self.deadline or self.seconds > MOST_S:
            return False
        with suppress(OpError, TypeError, ValueError, MemoryError, OverflowError):
            return self._run(arrays)
        return False

    def _run(self, arrays: Arrays) -> bool:
        graph, graph_def = Graph(), with_constants(self.sample, arrays)
        with under_budget(Budget(deadline=time.monotonic() + 2 * MOST_S)):
            import_graph_def(graph_def, name="", graph=graph)
            called = graph.get_operation_by_name(graph_def.node[-1].name)
            outputs = sum(tensor.shape.num_elements() or 0 for tensor in called.outputs)
            elements = outputs + sum(map(size_in_bytes, arrays.values()))
            if elements <= self._elements:
                return False
            with Session(graph, optimize=False, memory_limit_bytes=MEMORY_BYTES) as session:
                session.run(called)
                start = time.perf_counter()
                session.run(called)
                self.seconds = time.perf_counter() - start
        self._elements = elements
        return True


def large_call(
    sample: GraphDef, theirs: Contender, deadline: float
) -> tuple[GraphDef, Arrays] | None:
    """A call of some work for TensorFlow, or the largest that there is; None if neither takes the sample."""
    trial, arrays = Trial(sample, deadline), constants_of(sample)
    if not trial.accepts(arrays) or theirs.load("", sample):
        return None
    taken = [arrays]
    for larger in grown(arrays, trial.accepts, INPUT_BYTES):
        taken.append(larger)
        if trial.seconds > SMALL_S and _is_enough(theirs, sample, larger):
            break
    drawn = _drawn(taken[-1])
    if Trial(sample, deadline).accepts(drawn):
        taken.append(drawn)
    while taken:
        call = with_constants(sample, taken[-1])
        if not theirs.load("", call):
            return call, taken[-1]
        taken.pop()
    return None


def _is_enough(theirs: Contender, sample: GraphDef, arrays: Arrays) -> bool:
    """Whether TensorFlow takes long enough for a call, or refuses it."""
    if theirs.load("", with_constants(sample, arrays)):
        return True
    answer = theirs.ask("time", 4 * WORK_S)
    return isinstance(answer, str) or min(answer) >= 1.5 * WORK_S


def _drawn(arrays: Arrays) -> Arrays:
    """The constants with floating-point numbers between the least and the largest instead of what repeats."""
    generator = np.random.default_rng(0)
    drawn = {**arrays}
    for name, array in arrays.items():
        if array.dtype.kind == "f" and array.size > 1 and np.isfinite(array).all():
            low, high = float(array.min()), float(array.max())
            drawn[name] = generator.uniform(low, high, array.shape).astype(array.dtype)
    return drawn


def measure(
    op: str, contenders: dict[str, Contender], rounds: int, is_without_numba: bool
) -> Found:
    """The times of an op."""
    found, ours = Found(op), op + " in NumPy" * is_without_numba
    for contender in contenders.values():
        contender.ask("time", 1e-9)  # starts it
    best: Found | None = None
    measured = 0
    for sample in sorted(samples()[op], key=_rank):
        deadline = time.monotonic() + SAMPLE_SECONDS
        call = large_call(sample, contenders["tensorflow"], deadline)
        if call is None:
            continue
        measured += 1
        error = contenders["opkernel"].load(ours, call[0])
        if error:
            found.error = error
            continue
        found = Found(op, _shown(call[1]))
        _time(found, contenders, rounds)
        best = max(best or found, found, key=lambda one: one.tensorflow)
        if found.tensorflow >= WORK_S or measured == SAMPLES:
            break
    if best is None:
        found.error = found.error or "no recorded call that both run"
    return best or found


def _rank(sample: GraphDef) -> tuple[bool, int]:
    """Typical calls first: of float, then of many numbers."""
    types = [value.type for value in sample.node[-1].attr.values()]
    return 1 not in types, -sum(map(size_in_bytes, constants_of(sample).values()))


def _time(found: Found, contenders: dict[str, Contender], rounds: int) -> None:
    times: dict[str, list[Any]] = {system: [] for system in contenders}
    for _ in range(rounds):
        for system, contender in contenders.items():
            answer = contender.ask("time", SECONDS)
            if isinstance(answer, str):
                found.error = f"{system}: {answer}"
                return
            times[system].append(answer)
    for system, answers in times.items():
        wall, work = (statistics.median(part) for part in zip(*answers, strict=True))
        setattr(found, system, wall)
        setattr(found, f"{system}_work", work)


def _shown(arrays: Arrays) -> str:
    return " ".join(
        f"{array.dtype}{list(array.shape)}".replace(" ", "") for array in arrays.values()
    )


def main() -> None:
    """Run the command."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--every", action="store_true", required=True)
    parser.add_argument("--tensorflow", metavar="PYTHON", required=True)
    parser.add_argument("--ops", nargs="+", metavar="NAME")
    parser.add_argument("--without-numba", action="store_true")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--json", type=Path, metavar="FILE", help="write what was measured, too")
    options = parser.parse_args()
    rerun_in_clean_environment()
    load_all_ops()
    ops = options.ops or sorted(samples())
    results: list[Found] = []
    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory) / "call.pickle"
        contenders = {
            "opkernel": Contender(sys.executable, "opkernel", path),
            "tensorflow": Contender(options.tensorflow, "tensorflow", path),
        }
        for op in ops:
            results.append(measure(op, contenders, options.rounds, options.without_numba))
            print(end=".", file=sys.stderr, flush=True)
            if options.json:
                options.json.write_text(json.dumps([*map(asdict, results)], indent=1) + "\n")
        for contender in contenders.values():
            contender.close()
    _report(results, None if options.ops else _uncalled(ops))


def _uncalled(ops: list[str]) -> list[str]:
    """The ops with kernels that have no recorded call."""
    return [op for op in MODULE_OF_OP if op not in ops and get_registered_kernels_for_op(op).kernel]


def _report(results: list[Found], uncalled: list[str] | None) -> None:
    print(f"load {os.getloadavg()[0]:.1f}")
    measured = [found for found in results if not found.error]
    work = [found for found in measured if found.is_work()]
    for found in sorted(work, key=lambda found: -found.ratio):
        print(found.line())
    print(f"{len(work)} ops; {len(measured) - len(work)} more take less than 1 ms by both")
    for found in results:
        if found.error:
            print(f"{found.op:44s} {found.error[:160]}")
    if uncalled:
        print(f"without a recorded call of the op alone: {len(uncalled)}")
