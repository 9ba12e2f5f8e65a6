"""A task on Ray is killed at any moment of reductions: all members hear of it, and the next group meets."""

import atexit
import functools
import itertools
import logging
import random
import threading
import time
from typing import Any

import numpy as np
from tools.campaigns.campaign import Finding

import opkernel
from opkernel import raw_ops
from opkernel.distributed import RayCluster
from opkernel.errors import OpError

__all__ = ["case"]

_MEMBERS = 3
_MOST_SECONDS = 30
_keys = itertools.count(1)


def case(rng: random.Random) -> str:
    """Reduce again and again, by one session or one for each member, until a task is killed."""
    cluster = _cluster()
    cluster.wait_for_tasks(_MOST_SECONDS)
    floats = rng.choice([10, 300_000, 2_000_000])
    ranks = [0, 1, 2]
    parts = [ranks] if rng.random() < 0.5 else [[rank] for rank in ranks]
    key = next(_keys)
    clients = [_Client(cluster, part, floats, key) for part in parts]
    for client in clients:
        client.start()
    while not all(client.steps for client in clients):
        for client in clients:
            if client.error is not None:
                raise Finding(f"no task was killed: {client.error!r}")
        time.sleep(0.01)
    time.sleep(rng.uniform(0, 0.5))
    killed = rng.choice(cluster.spec.tasks)
    cluster.kill(killed)
    until = time.monotonic() + _MOST_SECONDS
    for client in clients:
        client.join(max(until - time.monotonic(), 0))
        if client.is_alive():
            raise Finding(f"{killed} was killed, and the member on {client.ranks} waits still")
        client.session.close()
        if not isinstance(client.error, OpError) or str(killed) not in client.error.message:
            raise Finding(f"{killed} was killed: {client.error!r}")
    return f"{floats} floats, {len(parts)} sessions"


class _Client(threading.Thread):
    """Runs steps of a session until one fails."""

    def __init__(self, cluster: RayCluster, ranks: list[int], floats: int, key: int) -> None:
        super().__init__(daemon=True)
        self.ranks = ranks
        self.session = opkernel.Session(_graph(ranks, floats, key), target=cluster)
        self.steps = 0
        self.error: BaseException | None = None

    def run(self) -> None:
        """Run steps; each member has 1 + 2 + 4."""
        try:
            while True:
                found = self.session.run([f"y{rank}:0" for rank in self.ranks])
                if any(one != 7 for one in found):
                    raise Finding(f"the sum is {found}")
                self.steps += 1
        except Exception as error:
            self.error = error


def _graph(ranks: list[int], floats: int, key: int) -> opkernel.Graph:
    with opkernel.Graph().as_default() as graph:
        for rank in ranks:
            with graph.device(f"/job:worker/task:{rank}"):
                total = raw_ops.CollectiveReduceV2(
                    input=raw_ops.Fill(
                        dims=np.array([floats], np.int32), value=np.float32(1 << rank)
                    ),
                    group_size=_MEMBERS,
                    group_key=key,
                    instance_key=1,
                    ordering_token=[],
                    merge_op="Add",
                    final_op="Id",
                )
                raw_ops.Max(input=total, axis=np.array([0], np.int32), name=f"y{rank}")
    return graph


@functools.cache
def _cluster() -> RayCluster:
    import ray

    options: dict[str, Any] = {"include_dashboard": False, "log_to_driver": False}
    try:
        ray.init(num_cpus=4, object_store_memory=400 << 20, logging_level=logging.ERROR, **options)
    except Exception as error:  # a second try ends the process
        raise SystemExit(f"Ray does not start: {error}") from error
    cluster = RayCluster({"worker": _MEMBERS})
    atexit.register(ray.shutdown)
    atexit.register(cluster.close)
    return cluster
