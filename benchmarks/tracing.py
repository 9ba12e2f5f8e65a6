"""What tracing costs a node: a chain of 1,000 tiny ops, by both executors.

    python benchmarks/tracing.py

Prints, of the fastest of many steps, the time a node: of a step that is not traced, against that of a
session that never traces; what a traced step takes more, by its own statistics (bound: 10 us); and what
writing these takes when it is over.
"""

import time
from collections.abc import Callable

import numpy as np
from dispatch import CHAIN, chain_graph
from measure import rerun_in_clean_environment

import opkernel
from opkernel.runtime.traces import profile_of

BOUND_US = 10.0
ROUNDS = 100


def microseconds_a_node(function: Callable[[], object]) -> float:
    """The time of a call, by nodes."""
    start = time.perf_counter()
    function()
    return (time.perf_counter() - start) / CHAIN * 1e6


def measure(executor: str) -> list[float]:
    """Microseconds a node: never traced, not traced, traced, traced and written."""
    graph, first, last = chain_graph(CHAIN)
    feeds = {first: np.ones(8, np.float32)}
    options = opkernel.RunOptions(trace_level=opkernel.RunOptions.FULL_TRACE)
    never, sometimes = (opkernel.Session(graph, executor_type=executor) for _ in range(2))
    metadata = opkernel.RunMetadata()
    rounds = []
    for _ in range(ROUNDS):
        found = [
            microseconds_a_node(lambda: never.run(last, feeds)),
            microseconds_a_node(lambda: sometimes.run(last, feeds)),
            microseconds_a_node(lambda: sometimes.run(last, feeds, options, metadata)),
        ]
        (seconds,) = profile_of(metadata.step_stats).steps
        rounds.append([*found[:2], seconds / CHAIN * 1e6, found[2]])
    return [min(times) for times in zip(*rounds, strict=True)]


def main() -> None:
    rerun_in_clean_environment()
    for executor in ("COMPILED_PLAN", "DATAFLOW"):
        never, untraced, traced, written = measure(executor)
        print(
            f"{executor}: a node takes {untraced:.2f} us untraced ({never:.2f} in a session that "
            f"never traces), {traced - untraced:.2f} us more when traced (bound {BOUND_US:g}), and "
            f"{written - traced:.1f} us to be written"
        )


if __name__ == "__main__":
    main()
