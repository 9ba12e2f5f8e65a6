"""Collectives: computations of a group of devices, each of which brings a tensor of its own.

Source: TensorFlow core/framework/collective.h.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from enum import IntEnum
from typing import Any

from opkernel.errors import OpError
from opkernel.kernel.context.params import FrameAndIter
from opkernel.kernel.services.cancellation import CancellationManager
from opkernel.records import dataclass
from opkernel.types import DataType

CollectiveDone = Callable[[OpError | None, Any], object]
"""Called with an error or None, and the member's part of the result. It must not raise."""

_ROOT = FrameAndIter()


class CollectiveType(IntEnum):
    """The kind of computation of a group."""

    REDUCTION_COLLECTIVE = 0
    """All get the tensors merged into one."""
    BROADCAST_COLLECTIVE = 1
    """All get the tensor of the one that is the source."""
    GATHER_COLLECTIVE = 2
    """All get the tensors one after the other, along their first dimension."""
    ALL_TO_ALL_COLLECTIVE = 4
    """Each cuts its tensor into a row for each member; each gets the rows that are meant for it."""
    REDUCE_SCATTER_COLLECTIVE = 5
    """The tensors are merged into one, and each gets a part of it along its first dimension."""


@dataclass(frozen=True, slots=True)
class CollectiveMember:
    """A member of a group.

    Attributes:
        device: The full name of its device.
        session_handle: The name of its session; empty where there is none.
        step_id: The step that it belongs to: a number, or the name that it has in all tasks.
        node: The name of its node.
        rank: Its place in the group; -1 for the place that the other names give it.
    """

    device: str
    session_handle: str = ""
    step_id: int | str = 0
    node: str = ""
    rank: int = -1


@dataclass(frozen=True, slots=True)
class CollectiveParams:
    """The computation of a group. All members must agree, except about `is_source`.

    Attributes:
        type: The kind of collective.
        group_key: Names the group.
        group_size: How many members it has.
        instance_key: Names this among the collectives of the group.
        data_type: The type of the tensors.
        shape: Their sizes.
        merge_op: Merges two tensors (reductions only).
        final_op: Makes the result of the merged tensor and the group's size; None for no change.
        frame_iter: Where in the loops of the graph it happens.
        is_source: This member's tensor is the one (broadcasts only).
        timeout_seconds: For how long this member waits for the others; 0 for no limit.
        reduction: Names `merge_op` and `final_op` where only their names have come to this process.
    """

    type: CollectiveType
    group_key: int | str
    group_size: int
    instance_key: int | str
    data_type: DataType
    shape: tuple[int, ...]
    merge_op: Callable[[Any, Any], Any] | None = None
    final_op: Callable[[Any, int], Any] | None = None
    frame_iter: FrameAndIter = _ROOT
    is_source: bool = False
    timeout_seconds: float = 0.0
    reduction: str = ""


class CollectiveExecutor(ABC):
    """Where the members of groups meet."""

    @abstractmethod
    def execute_async(
        self,
        member: CollectiveMember,
        params: CollectiveParams,
        tensor: Any,
        done: CollectiveDone,
        cancellation_manager: CancellationManager | None = None,
    ) -> None:
        """Take part in a collective; `done` is called when all have come, or one has failed.

        Args:
            member: the member that takes part.
            params: the collective.
            tensor: the member's tensor; None where it only receives.
            done: called once, by any thread.
            cancellation_manager: its cancellation fails the collective for all members.
        """

    @abstractmethod
    def start_abort(self, status: OpError) -> None:
        """Fail all collectives, waiting and future, with `status`; the status of the first call counts."""
