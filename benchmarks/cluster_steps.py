"""Steps on a cluster beside plain Ray: what a tensor costs that crosses from task to task, and a step by tasks.

`distributed.py` runs these sections. A step of one task is a call of an actor and back. What crosses is measured as the
step of two tasks, less that of one.
"""

import time
from collections import Counter
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np
from measure import interleaved

import opkernel
from opkernel import raw_ops
from opkernel.distributed import LocalCluster, RayCluster, TaskName

__all__ = ["measure_crossing", "measure_registration", "measure_steps"]

FLOATS = 16 << 20
"""64 MB of float32."""
DEVICE = "/job:worker/task:{}"


def two_negations(second: int) -> opkernel.Graph:
    """`y` = -(-x), the second on a task."""
    with opkernel.Graph().as_default() as graph:
        with graph.device(DEVICE.format(0)):
            x = raw_ops.Placeholder(dtype=opkernel.float32, shape=[None], name="x")
            first = raw_ops.Tanh(x=x)
        with graph.device(DEVICE.format(second)):
            raw_ops.Neg(x=first, name="y")
    return graph


def large_sum(second: int) -> opkernel.Graph:
    """`y` = the first element, on a task, of 64 MB that task 0 makes."""
    with opkernel.Graph().as_default() as graph:
        with graph.device(DEVICE.format(0)):
            x = raw_ops.Placeholder(dtype=opkernel.float32, shape=[], name="x")
            made = raw_ops.Fill(dims=np.array([FLOATS], np.int32), value=x)
        with graph.device(DEVICE.format(second)):
            begin, size = np.array([0], np.int32), np.array([1], np.int32)
            raw_ops.Slice(input=made, begin=begin, size=size, name="y")
    return graph


class Maker:
    """An actor of plain Ray that makes an array, and one that takes it."""

    def echo(self, value: Any) -> Any:
        return value

    def make(self, value: float) -> Any:
        return np.full(FLOATS, value, np.float32)

    def first(self, made: Any) -> float:
        return float(made[0])


def measure_crossing(ray: Any, rounds: int) -> None:
    """A small and a large tensor from task to task."""
    actor = ray.remote(num_cpus=0)(Maker)
    one, two = actor.remote(), actor.remote()
    small, x = np.ones(2, np.float32), np.float32(2)
    with RayCluster({"worker": 2}) as cluster:
        steps = [
            opkernel.Session(two_negations(k), target=cluster).make_callable("y:0", ["x:0"])
            for k in (0, 1)
        ]
        large = [
            opkernel.Session(large_sum(k), target=cluster).make_callable("y:0", ["x:0"])
            for k in (0, 1)
        ]
        calls = {
            "actor": lambda: ray.get(one.echo.remote(small)),
            "step of one task": lambda: steps[0](small),
            "step of two tasks": lambda: steps[1](small),
            "64 MB, plain": lambda: ray.get(two.first.remote(one.make.remote(2.0))),
            "64 MB, one task": lambda: large[0](x),
            "64 MB, two tasks": lambda: large[1](x),
        }
        found = {name: 1e3 * seconds for name, seconds in interleaved(calls, rounds).items()}
    for name, milliseconds in found.items():
        print(f"  {name:18s} {milliseconds:8.2f} ms")
    crossing = found["step of two tasks"] - found["step of one task"]
    print(f"  a small tensor that crosses: {crossing / found['actor']:.2f} x an actor's call")
    moved = found["64 MB, two tasks"] - found["64 MB, one task"]
    print(
        f"  64 MB that cross: {moved:.1f} ms; plain Ray, made and moved: {found['64 MB, plain']:.1f} ms"
    )


def measure_steps(ray: Any, rounds: int) -> None:
    """A step by the number of its tasks, each of which computes a little; and the messages between them."""
    for count in (1, 2, 4):
        with (
            RayCluster({"worker": count}) as on_ray,
            LocalCluster({"worker": count}) as here,
        ):
            calls: dict[str, Callable[[], object]] = {}
            for name, cluster in (("Ray", on_ray), ("this process", here)):
                session = opkernel.Session(_ring(count), target=cluster)
                run = session.make_callable("y:0", ["x:0"])
                calls[name] = partial(run, np.float32(1))
            found = {name: 1e3 * seconds for name, seconds in interleaved(calls, rounds).items()}
        times = ", ".join(f"{name} {milliseconds:.2f} ms" for name, milliseconds in found.items())
        print(f"  {count} tasks: {times}; messages between tasks {_messages(count)}")


class _Counting(LocalCluster):
    """A cluster that counts the messages from task to task."""

    def __init__(self, tasks: int) -> None:
        self.messages: Counter[TaskName] = Counter()
        super().__init__({"worker": tasks})

    def call(self, task: TaskName, method: str, *args: Any) -> Any:
        if method == "receive":
            self.messages[task] += 1
        return super().call(task, method, *args)


def _ring(count: int) -> opkernel.Graph:
    """Each task computes ten values of what it is fed, and the first adds them all."""
    with opkernel.Graph().as_default() as graph:
        x = raw_ops.Placeholder(dtype=opkernel.float32, shape=[], name="x")
        made = []
        for task in range(count):
            with graph.device(DEVICE.format(task)):
                made += [raw_ops.Mul(x=x, y=np.float32(k + 2)) for k in range(10)]
        with graph.device(DEVICE.format(0)):
            raw_ops.AddN(inputs=made, name="y")
    return graph


def _messages(count: int) -> str:
    with _Counting(count) as cluster, opkernel.Session(_ring(count), target=cluster) as session:
        session.run("y:0", {"x:0": 1.0})
        cluster.messages.clear()
        session.run("y:0", {"x:0": 1.0})
        pairs = (
            count - 1
        )  # ten values come from each other task, and what is fed comes from the client
        return f"{sum(cluster.messages.values())} (pairs of tasks {pairs})"


def measure_registration(sizes: Sequence[tuple[int, int]] = ((10**4, 100), (10**5, 1000))) -> None:
    """Placement, partition and registration of large graphs, the tasks simulated in this process."""
    for nodes, tasks in sizes:
        graph = _chains(nodes, tasks)
        with LocalCluster({"worker": tasks}) as cluster:
            session = opkernel.Session(graph, target=cluster)
            start = time.perf_counter()
            session.plan("y:0", ["x:0"])
            seconds = time.perf_counter() - start
        print(
            f"  {nodes:,} nodes on {tasks:,} tasks: {seconds:.1f} s, {1e6 * seconds / nodes:.0f} us a node"
        )


def _chains(nodes: int, tasks: int) -> opkernel.Graph:
    """A chain on each task, which all end in one sum."""
    with opkernel.Graph().as_default() as graph:
        x = raw_ops.Placeholder(dtype=opkernel.float32, shape=[], name="x")
        ends = []
        for task in range(tasks):
            with graph.device(DEVICE.format(task)):
                value = x
                for _ in range(nodes // tasks - 1):
                    value = raw_ops.Tanh(x=value)
                ends.append(value)
        raw_ops.AddN(inputs=ends, name="y")
    return graph
