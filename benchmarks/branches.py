"""Graphs of two towers: node after node, with branches on threads, and beside TensorFlow.

    python benchmarks/branches.py [--tensorflow PYTHON_WITH_TENSORFLOW]

Two chains of kernels that keep one processor busy each (sorts, running sums, reductions with
transposes, small products), whose results are added. Prints the time of a step of the compiled plan
alone, of a session that has found out whether branches pay, and of TensorFlow, which runs the same
GraphDef. Bounds, with two processors that nothing else uses: 1.3 x the speed of the plan, 1.1 x where
memory is what limits it; where branches do not pay, 0.95 x.
"""

import argparse
import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from loops import Case, TensorFlow
from measure import Row, note_row, rerun_in_clean_environment, seconds_a_call

import opkernel
from opkernel.graph import Graph, Tensor

MEASURED_STEPS = 30  # until a session has found out what is the fastest
FASTER, A_LITTLE_FASTER, NOT_SLOWER = 1.3, 1.1, 0.95

Make = Callable[..., Any]


def sorts(x: Tensor, make: Make) -> Tensor:
    """The largest numbers of rows, three times over."""
    for _ in range(3):
        largest = make("TopKV2", x, np.int32(200))[0]
        x = make("Sub", x, make("Mean", largest, np.array([1], np.int32), keep_dims=True))
    total: Tensor = make("Sum", x, np.array([0, 1], np.int32))
    return total


def running_sums(x: Tensor, make: Make) -> Tensor:
    """Sums along columns, four times over."""
    for _ in range(4):
        x = make("Mul", make("Cumsum", x, np.int32(0)), np.float32(0.01))
    return x


def transposes(x: Tensor, make: Make) -> Tensor:
    """Rows and columns less their means."""
    for _ in range(4):
        centred = make("Sub", x, make("Mean", x, np.array([0], np.int32), keep_dims=True))
        x = make("Transpose", centred, np.array([1, 0], np.int32))
    return x


def products(x: Tensor, make: Make) -> Tensor:
    """A deep network of narrow layers."""
    random = np.random.default_rng(0)
    for _ in range(20):
        weights = random.standard_normal((256, 256)).astype(np.float32) / 16
        x = make("Relu", make("MatMul", x, weights))
    return x


class Towers(NamedTuple):
    """What each tower is, the shape of what it is fed, and how fast branches must be at least."""

    tower: Callable[[Tensor, Make], Tensor]
    shape: tuple[int, ...]
    bound: float


CASES = {
    "sorts": Towers(sorts, (100, 20_000), FASTER),
    "running sums": Towers(running_sums, (1000, 1000), FASTER),
    "transposes": Towers(transposes, (1000, 1000), A_LITTLE_FASTER),
    "products, batch 16": Towers(products, (16, 256), NOT_SLOWER),
    "products, batch 256": Towers(products, (256, 256), NOT_SLOWER),
}


def two_towers(towers: Towers) -> Case:
    """The graph of two towers, with values for it."""
    graph = Graph()

    def make(op: str, *inputs: Any, **attrs: Any) -> Any:
        outputs = graph.create_op(op, list(inputs), attrs=attrs).outputs
        return outputs[0] if len(outputs) == 1 else outputs

    inputs = [make("Placeholder", dtype=opkernel.float32) for _ in range(2)]
    result = make("AddV2", *[towers.tower(x, make) for x in inputs])
    random = np.random.default_rng(1)
    values = {x.name: random.standard_normal(towers.shape).astype(np.float32) for x in inputs}
    return Case(graph, result.name, values, 1)


def prepared(case: Case, executor_type: str) -> Callable[[], Any]:
    """What runs a step of a session that has run some."""
    session = opkernel.Session(case.graph, executor_type=executor_type)
    call = partial(session.make_callable(case.fetch, list(case.feeds)), *case.feeds.values())
    for _ in range(MEASURED_STEPS):
        call()
    return call


def measure(
    name: str, case: Case, bound: float, tensorflow: TensorFlow | None, rounds: int
) -> None:
    """Print the least times of a case."""
    calls = {"plan": prepared(case, "COMPILED_PLAN"), "branches": prepared(case, "")}
    seconds = {how: partial(seconds_a_call, call) for how, call in calls.items()}
    if tensorflow is not None:
        scale = np.abs(calls["plan"]()).max()
        np.testing.assert_allclose(
            tensorflow.prepare(name, case), calls["plan"](), atol=1e-4 * scale
        )
        seconds["TensorFlow"] = partial(tensorflow.seconds, name)
    times = {how: min(measured() for _ in range(rounds)) for how, measured in seconds.items()}
    faster = times["plan"] / times["branches"]
    print(f"{name}: with branches {faster:.2f} x the speed of the plan (bound {bound})")
    note_row(Row(f"{name}, with branches", times["branches"], "the plan", times["plan"], bound))
    for how, least in times.items():
        print(
            f"  {how:12s} {least * 1e3:9.3f} ms   {times['plan'] / least:6.3f} x the speed of the plan"
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tensorflow", metavar="PYTHON")
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()
    rerun_in_clean_environment()
    with tempfile.TemporaryDirectory() as folder:
        python = options.tensorflow
        tensorflow = None if python is None else TensorFlow(python, Path(folder))
        for name, towers in CASES.items():
            measure(name, two_towers(towers), towers.bound, tensorflow, options.rounds)
        if tensorflow is not None:
            tensorflow.close()


if __name__ == "__main__":
    main()
