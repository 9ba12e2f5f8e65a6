"""Task parts: a program cut into the part that each task of a cluster runs.

Source: TensorFlow core/distributed_runtime/master_session.cc (PartitionOptions), graph_partition.cc.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence

from opkernel.device.local_device import LocalDevice
from opkernel.distributed.cluster.task_name import TaskName
from opkernel.graph import Operation
from opkernel.proto import GraphDef
from opkernel.records import dataclass
from opkernel.runtime.placement.partition import Partition
from opkernel.runtime.placement.partition_graphs import partition_graph
from opkernel.runtime.placement.partitioning import Partitioning
from opkernel.runtime.placement.placer import Assignment
from opkernel.runtime.program.subgraph import Subgraph


@dataclass(frozen=True)
class TaskPart:
    """The part of a program that a task runs.

    Attributes:
        task: The task.
        graph_def: Its graph; each node says on which of the task's devices it runs.
        partition: Its operations, with the feeds and fetches that are its own.
    """

    task: TaskName
    graph_def: GraphDef
    partition: Partition


def task_parts(
    whole: Subgraph, assignment: Assignment, placed: Mapping[str, LocalDevice]
) -> list[TaskPart]:
    """Cut a program by task; each task cuts its part further, by its devices and their memory.

    A feed comes to each task that takes it. A fetch is given by the task that computes it.

    Args:
        whole: The operations that the program needs; its graph stays as it is.
        assignment: The device of each operation.
        placed: The devices of operations that may not be among those: of feeds that are also fetched.
    """
    if whole.graph is None:
        return []
    first_of: dict[TaskName, LocalDevice] = {}

    @functools.cache
    def task_device(device: LocalDevice) -> LocalDevice:
        return first_of.setdefault(TaskName.parse(device.name), device)

    home = task_device(assignment.client_device)
    elsewhere = {op: task_device(device) for op, device in assignment.elsewhere.items()}
    by_task = Assignment(home, {op: d for op, d in elsewhere.items() if d is not home})
    feeds_at = _feeds_at(whole, by_task, {n: task_device(d) for n, d in placed.items()})
    devices = {op.name: assignment.device_of(op) for op in whole.operations}
    parts = []
    for one in Partitioning(whole, by_task, feeds_at).partitions():
        if one.part.operations or one.feed_indices or one.fetch_indices:
            # The cut may put control flow into another task than that where it was placed.
            own = {
                op.name: devices[op.name].name
                for op in one.part.operations
                if op.name in devices and task_device(devices[op.name]) is one.device
            }
            graph_def = partition_graph(one, whole, own)
            parts.append(TaskPart(TaskName.parse(one.device.name), graph_def, one))
    return parts


def _feeds_at(
    whole: Subgraph, assignment: Assignment, placed: Mapping[str, LocalDevice]
) -> Sequence[LocalDevice]:
    """The device of the first operation that takes each feed; else that of the feed itself."""
    takers: dict[tuple[Operation, int], Operation] = {}
    for op in whole.operations:
        for tensor in op.inputs:
            takers.setdefault((tensor.op, tensor.value_index), op)
    found = []
    for feed in whole.feeds:
        taker = takers.get((feed.op, feed.value_index))
        own = placed.get(feed.op.name, assignment.client_device)
        found.append(own if taker is None else assignment.device_of(taker))
    return found
