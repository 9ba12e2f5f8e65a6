"""What building a plan costs: chains of AddV2, Mul and Relu, in microseconds a node.

    python benchmarks/plan_building.py [--sizes 1000 10000 100000 1000000]

A graph is imported; what is measured is its first step, optimised and as it is: kernels, plan, the
step itself. Each size runs in a process of its own, which also tells its peak memory; up to 10,000
nodes it is the median of 5 graphs. The processor's time counts, for the machine may be shared.
Bounds: 20,000 nodes a second whatever the size; 100 ms for 1,000 nodes, the first graph of the
process included.
"""

import argparse
import json
import resource
import statistics
import subprocess
import sys
import time

import numpy as np
from dispatch import chain_graph
from measure import Row, clean_environment, note_row

import opkernel
from opkernel.proto import GraphDef

SIZES = (1000, 10_000, 100_000, 1_000_000)


def first_step(graph_def: GraphDef, size: int, *, optimize: bool) -> float:
    """The processor's seconds that the first step of a fresh session takes."""
    graph = opkernel.Graph()
    with graph.as_default():
        opkernel.import_graph_def(graph_def, name="")
    session = opkernel.Session(graph, optimize=optimize)
    x = np.ones(8, np.float32)
    start = time.process_time()
    session.run(f"n{size - 1}:0", {"x:0": x})
    return time.process_time() - start


def measure(size: int) -> dict[str, float]:
    """Seconds for the first of all first steps, and medians; peak memory in bytes."""
    graph_def = chain_graph(size)[0].as_graph_def()
    rounds = 5 if size <= 10_000 else 1
    first = first_step(graph_def, size, optimize=True)
    optimized = [first_step(graph_def, size, optimize=True) for _ in range(rounds)]
    plain = [first_step(graph_def, size, optimize=False) for _ in range(rounds)]
    return {
        "first": first,
        "optimized": statistics.median(optimized),
        "plain": statistics.median(plain),
        "peak": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sizes", type=int, nargs="+", default=SIZES)
    parser.add_argument("--worker", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.worker:
        print(json.dumps(measure(options.sizes[0])))
        return
    for size in options.sizes:
        command = [sys.executable, __file__, "--worker", "--sizes", str(size)]
        output = subprocess.run(
            command, env=clean_environment(), check=True, capture_output=True, text=True
        ).stdout
        found = json.loads(output)
        note_row(Row(f"{size:,d} nodes", found["optimized"], "25 us a node", 25e-6 * size, 1.0))
        print(
            f"{size:9,d} nodes: first graph of the process {found['first'] * 1e3:9.1f} ms, "
            f"then {found['optimized'] / size * 1e6:5.1f} us a node, not optimised "
            f"{found['plain'] / size * 1e6:5.1f}; peak {found['peak'] / 2**20:6.0f} MiB"
        )


if __name__ == "__main__":
    main()
