"""How many training steps a second: the network of examples/training, beside TensorFlow.

    python benchmarks/training.py [--tensorflow PYTHON_WITH_TENSORFLOW] [--batches 1 10 64]

Each contender trains in a process of its own, with a Session and the threads that it chooses itself;
they take turns of a quarter of a second. Prints the median steps a second for each size of batches.
"""

import argparse
import statistics
import subprocess
import sys
from pathlib import Path

from measure import clean_environment

EXAMPLE = Path(__file__).resolve().parent.parent / "examples" / "training"
ROUNDS = 9
_WORKER = """
import importlib, sys, time
sys.path.insert(0, sys.argv[1])
from digits import images_and_labels
images, labels = images_and_labels("training")
network = importlib.import_module(sys.argv[2]).Network()
for line in sys.stdin:
    size, steps = int(line), 0
    batch = images[:size], labels[:size]
    network.train(*batch)
    start = time.perf_counter()
    while time.perf_counter() - start < 0.25:
        network.train(*batch)
        steps += 1
    print(steps / (time.perf_counter() - start), flush=True)
"""


class Worker:
    """A process that trains when asked."""

    def __init__(self, python: str, module: str) -> None:
        self.process = subprocess.Popen(
            [python, "-c", _WORKER, str(EXAMPLE), module],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            env={**clean_environment(), "TF_CPP_MIN_LOG_LEVEL": "3"},
        )

    def steps_a_second(self, batch: int) -> float:
        """Of one turn."""
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write(f"{batch}\n")
        self.process.stdin.flush()
        return float(self.process.stdout.readline())

    def close(self) -> None:
        """End the process."""
        self.process.communicate()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tensorflow", metavar="PYTHON")
    parser.add_argument("--batches", type=int, nargs="+", default=[1, 10, 64])
    options = parser.parse_args()
    workers = {"opkernel": Worker(sys.executable, "network")}
    if options.tensorflow:
        workers["TensorFlow"] = Worker(options.tensorflow, "train_tensorflow")
    for batch in options.batches:
        speeds: dict[str, list[float]] = {name: [] for name in workers}
        for _ in range(ROUNDS):
            for name, worker in workers.items():
                speeds[name].append(worker.steps_a_second(batch))
        medians = {name: statistics.median(found) for name, found in speeds.items()}
        shown = ", ".join(f"{name} {value:.0f}" for name, value in medians.items())
        ratio = medians["opkernel"] / list(medians.values())[-1]
        print(f"steps a second with batches of {batch}: {shown} ({ratio:.2f} x)")
    for worker in workers.values():
        worker.close()


if __name__ == "__main__":
    main()
