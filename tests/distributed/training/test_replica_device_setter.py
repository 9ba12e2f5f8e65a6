"""replica_device_setter: TensorFlow's rule for where the nodes of a replica are."""

from __future__ import annotations

import numpy as np
import pytest

import opkernel
from opkernel.distributed import ClusterSpec, replica_device_setter
from opkernel.errors import InvalidArgumentError
from opkernel.graph import Graph

ops = opkernel.raw_ops
SPEC = ClusterSpec({"ps": 2, "worker": 3})


def variable(name: str) -> opkernel.Tensor:
    return ops.VarHandleOp(dtype=opkernel.float32, shape=[], name=name)


def devices(graph: Graph) -> dict[str, str]:
    return {op.name: op.device for op in graph.get_operations()}


def test_variables_go_to_the_servers_in_turns() -> None:
    with Graph().as_default() as graph, graph.device(replica_device_setter(cluster=SPEC)):
        for name in ("v", "w", "x"):
            variable(name)
        ops.VariableV2(shape=[], dtype=opkernel.float32, name="y")
        ops.Placeholder(dtype=opkernel.float32, name="p")
    assert devices(graph) == {
        "v": "/job:ps/task:0",
        "w": "/job:ps/task:1",
        "x": "/job:ps/task:0",
        "y": "/job:ps/task:1",
        "p": "/job:worker",
    }


def test_what_operations_ask_for_counts_more() -> None:
    setter = replica_device_setter(2, worker_device="/job:worker/task:1")
    with Graph().as_default() as graph, graph.device(setter):
        with graph.device("/job:ps/task:1"):
            variable("there")
        with graph.device("/job:other"):
            variable("elsewhere")
        with graph.device("/cpu:1"):
            variable("cpu")
            ops.Placeholder(dtype=opkernel.float32, name="p")
    assert devices(graph) == {
        "there": "/job:ps/task:1",
        "elsewhere": "/job:other",
        "cpu": "/job:ps/task:1/device:CPU:1",
        "p": "/job:worker/task:1/device:CPU:1",
    }


def test_a_strategy_chooses() -> None:
    sizes = [0, 0]

    def smallest(op: opkernel.Operation) -> int:
        task = int(np.argmin(sizes))
        sizes[task] += op.get_attr("shape").dim[0].size
        return task

    setter = replica_device_setter(2, ps_strategy=smallest)
    with Graph().as_default() as graph, graph.device(setter):
        for name, size in (("a", 10), ("b", 3), ("c", 3), ("d", 9)):
            ops.VarHandleOp(dtype=opkernel.float32, shape=[size], name=name)
    assert [device[-1] for device in devices(graph).values()] == ["0", "1", "1", "1"]


def test_without_servers_there_is_no_function() -> None:
    assert replica_device_setter() is None
    assert replica_device_setter(cluster={"worker": 2}) is None


def test_what_is_refused() -> None:
    with pytest.raises(InvalidArgumentError, match="-1"):
        replica_device_setter(-1)
    with pytest.raises(InvalidArgumentError, match="job"):
        replica_device_setter(1, ps_device="job:ps")
