"""How many training steps a second five networks make, beside TensorFlow: that of examples/training and four modules here.

    python benchmarks/training.py [--tensorflow PYTHON_WITH_TENSORFLOW] [--batches 1 10 64]
        [--networks digits transformer resnet text_classifier embeddings] [--engines xla auto]

Each contender trains in a process of its own, with the threads that it chooses itself; they take turns of a quarter of a
second. Prints the median steps a second for each size of batches. Before that each contender trains for `--warm` seconds, in
which engines compile, and the first losses are compared.
"""

import argparse
import sys
from functools import partial
from pathlib import Path

import numpy as np
from measure import Row, Worker, medians, note_row

WORKER = str(Path(__file__).resolve().parent / "training_worker.py")
NETWORKS = ["digits", "transformer", "resnet", "text_classifier", "embeddings"]
ROUNDS, SECONDS = 9, 0.25
AIM = 1.0
"""The ratio of steps a second that `auto` is to reach."""
COMPARED, CLOSE = 5, 1e-3


def measure(network: str, workers: dict[str, Worker], batch: int, warm: float) -> str:
    """The steps a second of each, and their ratios to the last."""
    for worker in workers.values():
        worker.ask(batch, warm)
    speeds = medians(
        {name: partial(worker.ask, batch, SECONDS) for name, worker in workers.items()}, ROUNDS
    )
    reference, last = [*speeds.items()][-1]
    for name in [*speeds][:-1]:
        what = f"{network}, batches of {batch}, {name.removeprefix('opkernel:')}"
        aim = AIM if name.endswith(":auto") else None
        note_row(Row(what, 1 / speeds[name], reference, 1 / last, aim))
    return ", ".join(f"{name} {speed:.0f} ({speed / last:.2f} x)" for name, speed in speeds.items())


def difference(workers: dict[str, Worker], batch: int) -> float:
    """How far apart the losses of the first steps are."""
    losses = [worker.ask("losses", batch, COMPARED) for worker in workers.values()]
    return float(np.abs(np.subtract(losses, losses[-1])).max())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tensorflow", metavar="PYTHON")
    parser.add_argument("--batches", type=int, nargs="+", default=[1, 10, 64])
    parser.add_argument("--networks", nargs="+", default=NETWORKS)
    parser.add_argument("--engines", nargs="*", default=[])
    parser.add_argument("--warm", type=float, default=1.0, metavar="SECONDS")
    options = parser.parse_args()
    systems = ["opkernel", *(f"opkernel:{engine}" for engine in options.engines)]
    for network in options.networks:
        workers = {name: Worker([sys.executable, WORKER, network, name]) for name in systems}
        if options.tensorflow:
            workers["tensorflow"] = Worker([options.tensorflow, WORKER, network, "tensorflow"])
        apart = difference(workers, options.batches[0])
        print(f"{network}: losses of the first {COMPARED} steps differ by {apart:.1e}", flush=True)
        if not apart < CLOSE:
            raise SystemExit("they do not train alike")
        for batch in options.batches:
            found = measure(network, workers, batch, options.warm)
            print(f"{network}, steps a second with batches of {batch}: {found}", flush=True)
        for worker in workers.values():
            worker.close()


if __name__ == "__main__":
    main()
