"""replica_device_setter: variables on the parameter servers in turns, all else on a worker.

Source: TensorFlow python/training/device_setter.py.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Collection

from opkernel.distributed.cluster.cluster_spec import ClusterSpec, Jobs
from opkernel.errors import InvalidArgumentError
from opkernel.graph import Operation
from opkernel.opdef import DeviceName
from opkernel.records import replace

PS_OPS = frozenset(
    {
        "AutoReloadVariable",
        "MutableDenseHashTable",
        "MutableDenseHashTableV2",
        "MutableHashTable",
        "MutableHashTableOfTensors",
        "MutableHashTableOfTensorsV2",
        "MutableHashTableV2",
        "ResourceConditionalAccumulator",
        "VarHandleOp",
        "Variable",
        "VariableV2",
    }
)
"""The ops whose nodes have what replicas share."""


def replica_device_setter(
    ps_tasks: int = 0,
    ps_device: str = "/job:ps",
    worker_device: str = "/job:worker",
    *,
    cluster: ClusterSpec | Jobs | None = None,
    ps_ops: Collection[str] = PS_OPS,
    ps_strategy: Callable[[Operation], int] | None = None,
) -> Callable[[Operation], str] | None:
    """A device function for `graph.device`, as a replica of a model wants it.

        with graph.device(replica_device_setter(cluster=spec, worker_device="/job:worker/task:1")):
            ...

    What operations ask for themselves counts more.

    Args:
        ps_tasks: how many parameter servers there are; where 0, the device function is None, and scopes count.
        ps_device: the beginning of their devices' names; empty for none.
        worker_device: the device of all else; empty for none.
        cluster: a cluster, whose job of the name in `ps_device` has the parameter servers.
        ps_ops: the ops whose nodes are on parameter servers.
        ps_strategy: chooses the parameter server of a node by its index; in turns where not given.

    Raises:
        InvalidArgumentError: a text names no device, or the number of parameter servers is negative.
    """
    servers, worker = (
        DeviceName.parse_full_name(ps_device),
        DeviceName.parse_full_name(worker_device),
    )
    if cluster is not None:
        spec = ClusterSpec(cluster)
        ps_tasks = spec.num_tasks(servers.job) if servers.job in spec.jobs and servers.job else 0
    if ps_tasks < 0:
        raise InvalidArgumentError(f"There cannot be {ps_tasks} parameter servers")
    if ps_tasks == 0:
        return None
    numbers = itertools.count()
    choose = ps_strategy or (lambda op: next(numbers) % ps_tasks)

    def device_of(op: Operation) -> str:
        asked = DeviceName.parse_full_name(op.device)
        if op.type not in ps_ops or not ps_device:
            return str(worker.merge(asked))
        is_server_open = servers.task is None and asked.job in (None, servers.job)
        server = replace(servers, task=choose(op)) if is_server_open else servers
        return str(server.merge(asked))

    return device_of
