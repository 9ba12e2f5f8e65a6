"""A step with an all-reduce between the tasks of a cluster on Ray, beside plain Ray and beside a step without.

    python benchmarks/collectives.py [--tasks 2 4] [--kilobytes 1 1024 16384]

Plain Ray: each actor gives its array, the first adds them up, all take the sum, which the actors of one machine read from
shared memory. Prints medians in milliseconds, and the ratio of the all-reduce to plain Ray.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np
from measure import rerun_in_clean_environment

from opkernel import Graph, Session, raw_ops
from opkernel.distributed import RayCluster
from opkernel.libraries import library


class Member:
    """An actor of plain Ray with an array."""

    def __init__(self, floats: int) -> None:
        self._array = np.ones(floats, np.float32)

    def give(self) -> Any:
        """The array."""
        return self._array

    def add(self, *arrays: Any) -> Any:
        """The sum of arrays."""
        return np.add.reduce(arrays)

    def take(self, total: Any) -> int:
        """The size of what has come."""
        return len(total)


def graph_of(tasks: int, floats: int, collective: bool) -> Graph:
    """A node `y0`, `y1`, ... on each task, which gives the first element."""
    with Graph().as_default() as graph:
        for rank in range(tasks):
            with graph.device(f"/job:worker/task:{rank}"):
                x = raw_ops.Fill(dims=np.array([floats], np.int32), value=np.float32(1))
                if collective:
                    x = raw_ops.CollectiveReduceV2(
                        input=x,
                        group_size=tasks,
                        group_key=1,
                        instance_key=1,
                        ordering_token=[],
                        merge_op="Add",
                        final_op="Id",
                    )
                raw_ops.Max(input=x, axis=np.array([0], np.int32), name=f"y{rank}")
    return graph


def plain(ray: Any, members: Sequence[Any]) -> None:
    """One all-reduce of plain Ray."""
    total = members[0].add.remote(*[one.give.remote() for one in members])
    ray.get([one.take.remote(total) for one in members])


def medians(contenders: Sequence[Callable[[], object]], rounds: int) -> list[float]:
    """The median time of each in milliseconds, taken in turns."""
    times: list[list[float]] = [[] for _ in contenders]
    for number in range(rounds + 2):
        for contender, found in zip(contenders, times, strict=True):
            start = time.perf_counter()
            contender()
            if number >= 2:
                found.append(1e3 * (time.perf_counter() - start))
    return [statistics.median(one) for one in times]


def measure(ray: Any, cluster: RayCluster, tasks: int, floats: int, rounds: int) -> list[float]:
    """The medians of a step without a collective, one with an all-reduce, and plain Ray."""
    fetches = [f"y{rank}:0" for rank in range(tasks)]
    members = [ray.remote(Member).options(num_cpus=0).remote(floats) for _ in range(tasks)]
    with (
        Session(graph_of(tasks, floats, False), target=cluster) as without,
        Session(graph_of(tasks, floats, True), target=cluster) as session,
    ):
        contenders = [
            partial(without.run, fetches),
            partial(session.run, fetches),
            partial(plain, ray, members),
        ]
        found = medians(contenders, rounds)
    for one in members:
        ray.kill(one)
    return found


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--tasks", type=int, nargs="+", default=[2, 4])
    parser.add_argument("--kilobytes", type=int, nargs="+", default=[1, 128, 1024, 4096, 16384])
    parser.add_argument("--rounds", type=int, default=15)
    arguments = parser.parse_args()
    ray = library("ray", "This benchmark")
    ray.init(include_dashboard=False, log_to_driver=False, object_store_memory=1 << 30)
    print("tasks      KB   step ms  all-reduce  plain Ray  ratio")
    for tasks in arguments.tasks:
        with RayCluster({"worker": tasks}) as cluster:
            for size in arguments.kilobytes:
                step, ours, theirs = measure(ray, cluster, tasks, size * 256, arguments.rounds)
                ratio = ours / theirs
                print(f"{tasks:5} {size:7} {step:9.1f} {ours:11.1f} {theirs:10.1f} {ratio:6.2f}")
    ray.shutdown()


if __name__ == "__main__":
    rerun_in_clean_environment()
    main()
