"""The tensors that members of a group receive from each other.

Source: TensorFlow core/common_runtime/ring_reducer.cc, ring_gatherer.cc, all_to_all.cc,
hierarchical_tree_broadcaster.cc.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from opkernel.errors import InternalError, InvalidArgumentError
from opkernel.kernel.services.collective import CollectiveParams, CollectiveType


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


def _reduce(params: CollectiveParams, tensors: Sequence[Any], rank: int) -> Any:
    return merged(params, tensors)


def _gather(params: CollectiveParams, tensors: Sequence[Any], rank: int) -> Any:
    return np.concatenate(tensors)


def _all_to_all(params: CollectiveParams, tensors: Sequence[Any], rank: int) -> Any:
    return np.stack([tensor[rank] for tensor in tensors])


def _reduce_scatter(params: CollectiveParams, tensors: Sequence[Any], rank: int) -> Any:
    return merged(params, [np.split(tensor, len(tensors))[rank] for tensor in tensors])


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
    CollectiveType.REDUCTION_COLLECTIVE: _reduce,
    CollectiveType.GATHER_COLLECTIVE: _gather,
    CollectiveType.ALL_TO_ALL_COLLECTIVE: _all_to_all,
    CollectiveType.REDUCE_SCATTER_COLLECTIVE: _reduce_scatter,
}
