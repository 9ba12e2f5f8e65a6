"""Partitions: the part of a program that each device runs.

Source: TensorFlow core/graph/graph_partition.cc.
"""

from __future__ import annotations

from collections.abc import Sequence

from opkernel.device.local_device import LocalDevice
from opkernel.graph import Tensor
from opkernel.records import dataclass
from opkernel.runtime import placement
from opkernel.runtime.placement.placer import Assignment
from opkernel.runtime.program.subgraph import Subgraph


@dataclass(frozen=True, slots=True)
class Partition:
    """The part of a graph that one device runs.

    Attributes:
        device: The device.
        part: The operations, with their feeds, fetches and targets. Sends to other partitions are
            targets; receives have no inputs.
        feed_indices: Which of the program's feeds those of the part are.
        fetch_indices: Which of the program's fetches those of the part are.
    """

    device: LocalDevice
    part: Subgraph
    feed_indices: Sequence[int] = ()
    fetch_indices: Sequence[int] = ()

    @classmethod
    def of_all(cls, device: LocalDevice, whole: Subgraph) -> Partition:
        """The partition of a program that runs on one device."""
        return cls(device, whole, range(len(whole.feeds)), range(len(whole.fetches)))


def partition(whole: Subgraph, assignment: Assignment) -> list[Partition]:
    """Cut what a program needs into a part for each device that runs any of it.

    The first part runs on the client's device; it is given all feeds and gives all fetches.

    Args:
        whole: The operations that the program needs; its graph stays as it is.
        assignment: Where each operation runs.
    """
    if not assignment.elsewhere:
        return [Partition.of_all(assignment.client_device, whole)]
    return placement.Partitioning(whole, assignment).partitions()


def arg_name(feed: Tensor, index: int) -> str:
    """The name of the node that stands for a feed of a program in its partition."""
    return f"_arg_{feed.op.name}_{feed.value_index}_{index}"
