"""More than one process.

    python benchmarks/distributed.py [--only SECTION ...] [--rounds N]

crossing: a small tensor, and 64 MB, from task to task of a cluster, beside calls of Ray's actors. Bounds: twice an
actor's call; twice the time that the object store takes.

steps: a step by the number of tasks, on Ray and in one process, and the messages between tasks.

registration: placement, partition and registration of 10^5 nodes on 1,000 tasks, simulated. Bound: 30 s, and linear.

predict: convolutions mapped over images by one worker and by two, which have a BLAS thread each: processes, Ray Data,
and plain Ray, an actor pool that calls the same function. Bound: two workers 1.5 x as fast as one. Start-up
of the workers counts, that of the Ray cluster does not. Each worker needs a processor of its own, so on a machine
that does other work the figures mean something only with `chrt -r 1 python ...`.
"""

import argparse
import os
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from cluster_steps import measure_crossing, measure_registration, measure_steps
from measure import medians, rerun_in_clean_environment

import opkernel
from opkernel import Graph, raw_ops, save_graph
from opkernel.distributed import predict
from opkernel.distributed.batches.mapped_model import ModelSource
from opkernel.distributed.batches.rows import ArrayRows, cut
from opkernel.distributed.batches.workers import BatchWorker

IMAGES, SIDE, CHANNELS, LAYERS, BATCH = 3072, 32, 64, 16, 32


def write_convolutions(path: Path) -> None:
    """Write a graph of convolutions, whose answer for an image is a vector."""
    random = np.random.default_rng(0)
    graph, before = Graph(), 3
    with graph.as_default():
        y = opkernel.placeholder(opkernel.float32, [None, SIDE, SIDE, 3], name="x")
        for _ in range(LAYERS):
            weights = random.normal(size=(3, 3, before, CHANNELS)) / np.sqrt(9 * before)
            y = raw_ops.Conv2D(
                input=y, filter=weights.astype(np.float32), strides=[1, 1, 1, 1], padding="SAME"
            )
            y, before = raw_ops.Relu(features=y), CHANNELS
        raw_ops.Mean(input=y, axis=[1, 2], name="y")
    save_graph(graph, path)


@contextmanager
def ray_cluster() -> Iterator[Any]:
    """Ray on this machine."""
    os.environ.update(RAY_worker_niceness="0")  # as processes have it
    import ray  # what else is measured needs none

    options: dict[str, Any] = {"include_dashboard": False, "log_to_driver": False}
    ray.init(num_cpus=2, object_store_memory=400 << 20, **options)
    try:
        yield ray
    finally:
        ray.shutdown()


def by_plain_ray(
    ray: Any, model: Path, data: dict[str, Any], concurrency: int
) -> list[dict[str, Any]]:
    """The outputs, by a pool of actors as Ray's documentation has it."""
    from ray.util import ActorPool

    request = ModelSource(str(model))
    actor = ray.remote(num_cpus=1)(BatchWorker)
    pool = ActorPool([actor.remote(request) for _ in range(concurrency)])
    batches = [*cut([ArrayRows(data)], BATCH)]
    found = [*pool.map(lambda worker, batch: worker.run.remote(batch), batches)]
    return [dict(outcome.outputs) for outcome in found]


def by_predict(
    model: Path, data: dict[str, Any], concurrency: int, **options: Any
) -> list[dict[str, Any]]:
    """The outputs, by workers of predict."""
    return [*predict(model, data, batch_size=BATCH, concurrency=concurrency, **options)]


def seconds_of(call: Callable[[], list[dict[str, Any]]], expected: Any) -> float:
    """The time of a call, which must give these values."""
    start = time.perf_counter()
    found = call()
    seconds = time.perf_counter() - start
    np.testing.assert_array_equal(np.concatenate([one["y:0"] for one in found]), expected)
    return seconds


def measure_predict(rounds: int) -> None:
    """Two workers over one."""
    with tempfile.TemporaryDirectory() as folder, ray_cluster() as ray:
        model = Path(folder) / "convolutions.pb"
        write_convolutions(model)
        shape = (IMAGES, SIDE, SIDE, 3)
        data = {"x": np.random.default_rng(1).random(shape, np.float32)}
        ways: dict[str, Callable[[int], list[dict[str, Any]]]] = {
            "processes": partial(by_predict, model, data),
            "Ray Data": partial(by_predict, model, data, workers="ray"),
            "plain Ray": partial(by_plain_ray, ray, model, data),
        }
        expected = np.concatenate([one["y:0"] for one in ways["processes"](2)])
        calls = {(way, count): partial(ways[way], count) for way in ways for count in (1, 2)}
        found = medians(
            {
                f"{way} {count}": partial(seconds_of, call, expected)
                for (way, count), call in calls.items()
            },
            rounds,
        )
    print(f"{LAYERS} convolutions over {IMAGES:,} images, batches of {BATCH}, {rounds} rounds")
    for way in ways:
        one, two = (found[f"{way} {count}"] for count in (1, 2))
        print(f"  {way:10s} one worker {one:6.2f} s, two {two:6.2f} s: {one / two:.2f} x as fast")


def measure_on_ray(measure: Callable[[Any, int], None], rounds: int) -> None:
    """A section of `cluster_steps`."""
    with ray_cluster() as ray:
        measure(ray, rounds)


SECTIONS: dict[str, Callable[[int], None]] = {
    "crossing": partial(measure_on_ray, measure_crossing),
    "steps": partial(measure_on_ray, measure_steps),
    "registration": lambda rounds: measure_registration(),
    "predict": measure_predict,
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", nargs="*", choices=[*SECTIONS], default=[*SECTIONS])
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()
    warnings.simplefilter("ignore", DeprecationWarning)  # of Ray's own modules
    for name in options.only:
        print(name)
        SECTIONS[name](options.rounds)
    print(f"load when it ended: {os.getloadavg()[0]:.1f}")


if __name__ == "__main__":
    rerun_in_clean_environment()
    main()
