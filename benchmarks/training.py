"""How many training steps a second: the network of examples/training, beside TensorFlow.

    python benchmarks/training.py [--tensorflow PYTHON_WITH_TENSORFLOW] [--batches 1 10 64]

Each contender trains in a process of its own, with a Session and the threads that it chooses itself;
they take turns of a quarter of a second. Prints the median steps a second for each size of batches.
"""

import argparse
import statistics
import sys
from pathlib import Path

from measure import Worker

EXAMPLE = Path(__file__).resolve().parent.parent / "examples" / "training"
ROUNDS = 9
_WORKER = """
import importlib, json, sys, time
sys.path.insert(0, sys.argv[1])
from digits import images_and_labels
images, labels = images_and_labels("training")
network = importlib.import_module(sys.argv[2]).Network()
for line in sys.stdin:
    (size,), steps = json.loads(line), 0
    batch = images[:size], labels[:size]
    network.train(*batch)
    start = time.perf_counter()
    while time.perf_counter() - start < 0.25:
        network.train(*batch)
        steps += 1
    print(steps / (time.perf_counter() - start), flush=True)
"""


def worker_of(python: str, module: str) -> Worker:
    """A process that trains the network of a module when asked, and tells its steps a second."""
    return Worker([python, "-c", _WORKER, str(EXAMPLE), module])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tensorflow", metavar="PYTHON")
    parser.add_argument("--batches", type=int, nargs="+", default=[1, 10, 64])
    options = parser.parse_args()
    workers = {"opkernel": worker_of(sys.executable, "network")}
    if options.tensorflow:
        workers["TensorFlow"] = worker_of(options.tensorflow, "train_tensorflow")
    for batch in options.batches:
        speeds: dict[str, list[float]] = {name: [] for name in workers}
        for _ in range(ROUNDS):
            for name, worker in workers.items():
                speeds[name].append(worker.ask(batch))
        medians = {name: statistics.median(found) for name, found in speeds.items()}
        shown = ", ".join(f"{name} {value:.0f}" for name, value in medians.items())
        ratio = medians["opkernel"] / list(medians.values())[-1]
        print(f"steps a second with batches of {batch}: {shown} ({ratio:.2f} x)")
    for worker in workers.values():
        worker.close()


if __name__ == "__main__":
    main()
