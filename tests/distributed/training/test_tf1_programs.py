"""Queues and accumulators on a parameter server, as TensorFlow 1's programs use them from several workers.

The pattern is that of SyncReplicasOptimizer: workers put gradients into an accumulator; the chief takes their mean,
applies it, and hands out a token for each worker, without which no worker goes on.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator

import numpy as np
import pytest

import opkernel
from opkernel.distributed import LocalCluster
from opkernel.graph import Graph

ops = opkernel.raw_ops
PS, WORKERS, STEPS = "/job:ps/task:0", 3, 4
FLOAT, INT64 = opkernel.float32, opkernel.int64


@pytest.fixture
def cluster() -> Iterator[LocalCluster]:
    with LocalCluster({"ps": 1, "worker": WORKERS}) as cluster:
        yield cluster


def synchronous_replicas() -> Graph:
    """`w` starts at 8. Each worker's gradient is its number + 1 times `w`; a step subtracts a tenth of the mean."""
    with Graph().as_default() as graph:
        with graph.device(PS):
            w = ops.VarHandleOp(dtype=FLOAT, shape=[], shared_name="w", name="w")
            step = ops.VarHandleOp(dtype=INT64, shape=[], shared_name="step", name="step")
            first = [
                ops.AssignVariableOp(resource=w, value=np.float32(8)),
                ops.AssignVariableOp(resource=step, value=np.int64(0)),
            ]
            with graph.control_dependencies(first):
                ops.NoOp(name="init")
            gradients = ops.ConditionalAccumulator(
                dtype=FLOAT, shape=[], shared_name="gradients", reduction_type="MEAN"
            )
            tokens = ops.FIFOQueueV2(component_types=[INT64], shared_name="tokens")
        for index in range(WORKERS):
            with graph.device(PS):
                value = ops.ReadVariableOp(resource=w, dtype=FLOAT)
                local_step = ops.ReadVariableOp(resource=step, dtype=INT64)
            with graph.device(f"/job:worker/task:{index}"):
                gradient = ops.Mul(x=value, y=np.float32(index + 1))
            with graph.device(PS):
                put = ops.AccumulatorApplyGradient(
                    handle=gradients, local_step=local_step, gradient=gradient
                )
            with graph.control_dependencies([put]), graph.device(PS):
                ops.QueueDequeueV2(handle=tokens, component_types=[INT64], name=f"token_{index}")
        with graph.device(PS):
            mean = ops.AccumulatorTakeGradient(
                handle=gradients, num_required=np.int32(WORKERS), dtype=FLOAT
            )
            applied = ops.ResourceApplyGradientDescent(
                var=w, alpha=np.float32(0.1), delta=mean, name="apply"
            )
            with graph.control_dependencies([applied]):
                counted = ops.AssignAddVariableOp(resource=step, value=np.int64(1))
            with graph.control_dependencies([counted]):
                now = ops.ReadVariableOp(resource=step, dtype=INT64)
                set_step = ops.AccumulatorSetGlobalStep(handle=gradients, new_global_step=now)
            with graph.control_dependencies([set_step]):
                given = ops.Fill(dims=np.array([WORKERS], np.int32), value=now)
                ops.QueueEnqueueManyV2(handle=tokens, components=[given], name="chief")
            ops.ReadVariableOp(resource=w, dtype=FLOAT, name="read")
    return graph


def test_replicas_wait_for_each_other(cluster: LocalCluster) -> None:
    graph = synchronous_replicas()
    with opkernel.Session(graph, target=cluster) as session:
        session.run("init")

        def work(index: int) -> None:
            for _ in range(STEPS):
                session.run(f"token_{index}:0")

        threads = [threading.Thread(target=work, args=[index]) for index in range(WORKERS)]
        for thread in threads:
            thread.start()
        for _ in range(STEPS):
            session.run("chief")
        for thread in threads:
            thread.join(600)
        assert not any(thread.is_alive() for thread in threads)
        # The mean gradient is 2 w: each step leaves 0.8 of it.
        assert session.run("read:0") == pytest.approx(8 * 0.8**STEPS, rel=1e-6)


def test_a_queue_brings_work_to_whoever_takes_it(cluster: LocalCluster) -> None:
    """Each item is taken once, and a closed queue ends the workers with OUT_OF_RANGE."""
    with Graph().as_default() as graph:
        with graph.device(PS):
            queue = ops.FIFOQueueV2(component_types=[FLOAT], shared_name="work")
            items = ops.Placeholder(dtype=FLOAT, shape=[None], name="items")
            ops.QueueEnqueueManyV2(handle=queue, components=[items], name="put")
            ops.QueueCloseV2(handle=queue, name="close")
        for index in range(WORKERS):
            with graph.device(PS):
                (item,) = ops.QueueDequeueV2(handle=queue, component_types=[FLOAT])
            with graph.device(f"/job:worker/task:{index}"):
                ops.Square(x=item, name=f"square_{index}")
    found: list[float] = []
    ends: list[type] = []
    with opkernel.Session(graph, target=cluster) as session:

        def work(index: int) -> None:
            try:
                while True:
                    found.append(float(session.run(f"square_{index}:0")))
            except opkernel.errors.OpError as error:
                ends.append(type(error))

        threads = [threading.Thread(target=work, args=[index]) for index in range(WORKERS)]
        for thread in threads:
            thread.start()
        session.run("put", {"items:0": np.arange(20)})
        session.run("close")
        for thread in threads:
            thread.join(600)
    assert sorted(found) == [float(k * k) for k in range(20)]
    assert ends == [opkernel.errors.OutOfRangeError] * WORKERS
