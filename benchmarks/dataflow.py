"""What the dataflow executor costs beyond the kernels: a straight chain, and a loop of scalars.

    python benchmarks/dataflow.py [--profile]

Prints the time a node, less that of the bare NumPy calls, single-threaded (bound: 6 us a node), for
graphs and loops of several sizes (bound: linear), and the time of the compiled plan of the chain.
"""

import argparse
import cProfile
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from dispatch import by_hand, chain_graph
from measure import interleaved, rerun_in_clean_environment

import opkernel
from opkernel.graph import Graph, Tensor

BOUND_US = 6.0


def counting_loop() -> tuple[Graph, Tensor, Tensor]:
    """i, x = 0, 1; while i < n: i, x = i + 1, x * 0.5 + 1; of TensorFlow 1."""
    graph = Graph()
    int32, float32 = opkernel.DataType.DT_INT32, opkernel.DataType.DT_FLOAT

    def make(op: str, *inputs: Any, **attrs: Any) -> Any:
        return graph.create_op(op, list(inputs), attrs=attrs)

    def constant(value: Any, dtype: Any, pivot: Any = None) -> Tensor:
        const = make("Const", dtype=dtype, value=np.asarray(value, dtype.numpy_dtype))
        if pivot is not None:
            const.add_control_input(pivot)
        output: Tensor = const.outputs[0]
        return output

    n = make("Placeholder", dtype=int32).outputs[0]
    starts = [constant(0, int32), constant(1, float32)]
    enters = [make("Enter", start, frame_name="loop").outputs[0] for start in starts]
    limit = make("Enter", n, frame_name="loop", is_constant=True).outputs[0]
    merges = [make("Merge", [enter, enter]) for enter in enters]
    go_on = make("LoopCond", make("Less", merges[0].outputs[0], limit).outputs[0]).outputs[0]
    switches = [make("Switch", merge.outputs[0], go_on) for merge in merges]
    i, x = (make("Identity", switch.outputs[1]).outputs[0] for switch in switches)
    half, one = constant(0.5, float32, i.op), constant(1, float32, i.op)
    results = [
        make("AddV2", i, constant(1, int32, i.op)).outputs[0],
        make("AddV2", make("Mul", x, half).outputs[0], one).outputs[0],
    ]
    for merge, result in zip(merges, results, strict=True):
        merge.update_input(1, make("NextIteration", result).outputs[0])
    exits = [make("Exit", switch.outputs[0]).outputs[0] for switch in switches]
    return graph, n, exits[1]


def loop_by_hand(n: int) -> Any:
    """The arithmetic of `counting_loop` as NumPy calls."""
    i, x, limit = np.int32(0), np.float32(1), np.int32(n)
    while np.less(i, limit):
        i, x = np.add(i, np.int32(1)), np.add(np.multiply(x, np.float32(0.5)), np.float32(1))
    return x


NODES_A_TURN = 16
"""Merge, Switch, Identity, NextIteration of 2 variables; 3 constants, Less, LoopCond, 3 sums."""


def print_cost(title: str, seconds: dict[str, float], nodes: int, bare: str) -> None:
    """The time a node beyond the bare calls, for each contender."""
    print(title)
    for name, value in seconds.items():
        over = (value - seconds[bare]) / nodes * 1e6
        print(f"  {name:24s} {value * 1e3:10.3f} ms   {over:8.3f} us a node over the bare calls")


def measure_chain(length: int, value: Any) -> None:
    graph, first, last = chain_graph(length)
    dataflow = opkernel.Session(graph, executor_type="DATAFLOW").make_callable(last, [first])
    plan = opkernel.Session(graph).make_callable(last, [first])
    hand = by_hand(length)
    np.testing.assert_array_equal(dataflow(value), hand(value))
    contenders: dict[str, Callable[[], object]] = {
        "NumPy by hand": partial(hand, value),
        "compiled plan": partial(plan, value),
        "dataflow executor": partial(dataflow, value),
    }
    print_cost(f"A chain of {length} ops", interleaved(contenders), length, "NumPy by hand")


def measure_loop(turns: int) -> None:
    graph, n, result = counting_loop()
    call = opkernel.Session(graph, executor_type="DATAFLOW").make_callable(result, [n])
    assert call(turns) == loop_by_hand(turns)
    contenders: dict[str, Callable[[], object]] = {
        "NumPy by hand": partial(loop_by_hand, turns),
        "dataflow executor": partial(call, turns),
    }
    title = f"A loop of {turns} turns of {NODES_A_TURN} nodes"
    print_cost(title, interleaved(contenders), turns * NODES_A_TURN, "NumPy by hand")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--profile", action="store_true", help="profile one loop instead")
    options = parser.parse_args()
    rerun_in_clean_environment()
    if options.profile:
        graph, n, result = counting_loop()
        call = opkernel.Session(graph, executor_type="DATAFLOW").make_callable(result, [n])
        cProfile.runctx("call(20000)", {"call": call}, {}, sort="tottime")
        return
    value = np.ones(8, np.float32)
    for length in (1_000, 10_000):
        measure_chain(length, value)
    for turns in (100, 1_000, 10_000):
        measure_loop(turns)
    print(f"Bound: {BOUND_US} us a node, and linear")


if __name__ == "__main__":
    main()
