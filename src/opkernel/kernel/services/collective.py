"""Collectives: computations of a group of devices, each of which brings a tensor of its own, and what each receives.

Source: TensorFlow core/framework/collective.h; common_runtime/ring_reducer.cc, ring_gatherer.cc, all_to_all.cc,
hierarchical_tree_broadcaster.cc.
"""

from __future__ import annotations

import functools
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from enum import IntEnum
from typing import Any

import numpy as np

from opkernel.errors import InternalError, InvalidArgumentError, OpError
from opkernel.kernel.context.inputs import FrameAndIter
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


def collective_results(
    params: CollectiveParams, tensors: Sequence[Any], is_source: Sequence[bool]
) -> list[Any]:
    """The result of each member, in the order of their ranks.

    No two members share the memory of a result.

    Args:
        params: the parameters, on which all members agree.
        tensors: their tensors; None where a member only receives.
        is_source: for each member, whether a broadcast sends its tensor.

    Raises:
        InternalError: a broadcast has no source, or several.
        InvalidArgumentError: the first dimension cannot be divided among the members.
    """
    check_collective(params, is_source)
    if params.type in _SAME_FOR_ALL:
        first = collective_result(params, tensors, is_source, 0)
        return [first, *(first.copy() for _ in tensors[1:])]
    ranks = range(len(tensors))
    return [collective_result(params, tensors, is_source, rank) for rank in ranks]


def collective_result(
    params: CollectiveParams, tensors: Sequence[Any], is_source: Sequence[bool], rank: int
) -> Any:
    """The result of one member; the others are as for `collective_results`, and have been checked."""
    with np.errstate(all="ignore"):
        if params.type is CollectiveType.BROADCAST_COLLECTIVE:
            sent = tensors[is_source.index(True)]
            return sent if is_source[rank] else sent.copy()
        return _RESULTS[params.type](params, tensors, rank)


def check_collective(params: CollectiveParams, is_source: Sequence[bool]) -> None:
    """Check what the members can only know together.

    Raises:
        InternalError: a broadcast has no source, or several.
        InvalidArgumentError: the first dimension cannot be divided among the members.
    """
    if params.type is CollectiveType.BROADCAST_COLLECTIVE:
        _check_source(params, is_source)
    members = len(is_source)
    rows = params.shape[0] if params.shape else 0
    if params.type is CollectiveType.ALL_TO_ALL_COLLECTIVE and rows != members:
        raise InvalidArgumentError(
            f"input to all-to-all first dimension size ({rows}) must be the same as the group size "
            f"({members}) in the collective instance {params.instance_key}"
        )
    is_scatter = params.type is CollectiveType.REDUCE_SCATTER_COLLECTIVE
    if is_scatter and (not params.shape or rows % members):
        raise InvalidArgumentError(
            f"input to reduce-scatter first dimension size ({rows}) must be a multiple of the "
            f"group size ({members}) in the collective instance {params.instance_key}"
        )


def _check_source(params: CollectiveParams, is_source: Sequence[bool]) -> None:
    instance = f"Instance {params.instance_key} of group {params.group_key}"
    ranks = [rank for rank, source in enumerate(is_source) if source]
    if not ranks:
        raise InternalError(
            f"{instance} found no source for broadcast. There were group_size="
            f"{len(is_source)} BcastRecvs but no BcastSend"
        )
    if len(ranks) > 1:
        raise InternalError(
            f"{instance} already has source {ranks[0]}, received second claim from {ranks[1]}"
        )


def merged(params: CollectiveParams, tensors: Sequence[Any]) -> Any:
    """All tensors merged into one, in the order of the ranks; element by element, so that parts may be, too.

    Raises:
        InternalError: the parameters have no merge op.
    """
    if params.merge_op is None:
        raise InternalError(f"the collective instance {params.instance_key} has no merge op")
    total = functools.reduce(params.merge_op, tensors[:2])
    for tensor in tensors[2:]:
        # Fresh memory costs more than the arithmetic.
        is_in_place = isinstance(params.merge_op, np.ufunc) and isinstance(total, np.ndarray)
        out = {"out": total} if is_in_place else {}
        total = params.merge_op(total, tensor, **out)
    return total if params.final_op is None else params.final_op(total, len(tensors))


_SAME_FOR_ALL = {CollectiveType.REDUCTION_COLLECTIVE, CollectiveType.GATHER_COLLECTIVE}
_RESULTS: dict[CollectiveType, Callable[[CollectiveParams, Sequence[Any], int], Any]] = {
    CollectiveType.REDUCTION_COLLECTIVE: lambda params, tensors, rank: merged(params, tensors),
    CollectiveType.GATHER_COLLECTIVE: lambda params, tensors, rank: np.concatenate(tensors),
    CollectiveType.ALL_TO_ALL_COLLECTIVE: lambda params, tensors, rank: np.stack(
        [tensor[rank] for tensor in tensors]
    ),
    CollectiveType.REDUCE_SCATTER_COLLECTIVE: lambda params, tensors, rank: merged(
        params, [np.split(tensor, len(tensors))[rank] for tensor in tensors]
    ),
}
"""The result of the member of a rank."""
