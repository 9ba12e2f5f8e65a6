"""Train the network of examples/digits on several tasks: on Ray, or in this process.

    python examples/cluster/train_on_tasks.py [--way synchronous] [--workers 2] [--servers 1] [--steps 60] [--local]
                                     [--folder training]

Interrupt it and start it again: it goes on from its last checkpoint. Kill one of its processes (`ray::TaskActor`):
it goes on, too.
"""

import argparse
import tempfile
from collections.abc import Sequence
from pathlib import Path

from digits_graph import training_graph
from resumable_training import (
    AsynchronousTraining,
    Batch,
    Training,
    batches,
    mean_of_last,
)

from opkernel.distributed import ClusterSpec, LocalCluster, RayCluster


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    ways = ["synchronous", "asynchronous", "all_reduce"]
    parser.add_argument("--way", choices=ways, default="synchronous")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--servers", type=int, default=1)
    parser.add_argument("--steps", type=int, default=60)
    parser.add_argument("--local", action="store_true", help="tasks in this process, not on Ray")
    parser.add_argument("--folder", type=Path, help="where checkpoints are; none are kept else")
    options = parser.parse_args()

    spec = ClusterSpec({"ps": options.servers, "worker": options.workers})
    graph, data = training_graph(spec, options.way), batches(options.steps)
    with (LocalCluster if options.local else RayCluster)(spec) as cluster:
        print(f"{options.way} on {spec!r}")
        with tempfile.TemporaryDirectory() as temporary:
            folder = options.folder or Path(temporary)
            if options.way == "asynchronous":
                train_asynchronously(AsynchronousTraining(graph, cluster, folder), data)
            else:
                train(Training(graph, cluster, folder), data)


def train(training: Training, data: Sequence[Batch]) -> None:
    """Train, and tell how the loss fell."""
    training.run(data)
    steps = sorted(training.losses)
    if steps:
        last = mean_of_last([training.losses[step] for step in steps])
        print(
            f"steps {steps[0]} to {steps[-1]}: loss {training.losses[steps[0]]:.4f} to {last:.4f}"
        )
    print(f"{len(training.failures)} failures")


def train_asynchronously(training: AsynchronousTraining, data: Sequence[Batch]) -> None:
    """The same, for each worker."""
    training.run(data)
    for index, losses in enumerate(training.losses):
        print(f"worker {index}: loss {losses[0]:.4f} to {mean_of_last(losses):.4f}")
    print(f"{len(training.failures)} failures")


if __name__ == "__main__":
    main()
