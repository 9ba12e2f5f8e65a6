"""What members of a group send each other, round by round.

In a round each member sends a part to each other member, and gets one from each. A reduction takes two rounds:
each member merges one part of all tensors, and then all get all merged parts. It moves no more than a ring
does, (2 - 2/n) times the tensor for each of n members, with two steps of latency instead of 2n - 2. Each
element is merged in the order of the ranks, so the result has the bits that one process gets; only the sign of a NaN
that comes of two NaNs depends on where in a part it stands.

Source: TensorFlow core/common_runtime/ring_reducer.cc, ring_gatherer.cc, all_to_all.cc.
"""

from __future__ import annotations

from collections.abc import Generator, Sequence
from typing import Any

import numpy as np

from opkernel.kernel import CollectiveParams, CollectiveType
from opkernel.kernel.services.collective_results import merged

Rounds = Generator[Sequence[Any], Sequence[Any], Any]
"""Yields what goes to each member, gets what has come from each, and returns the member's result.

The part for the member itself comes back to it. None stands for nothing: it is not sent."""

_ALIGNMENT = 64
"""Parts begin at multiples of so many elements."""


def rounds(params: CollectiveParams, tensor: Any, size: int) -> Rounds:
    """What a member does.

    Args:
        params: The collective.
        tensor: What the member brings; None where it only receives.
        size: How many members there are.
    """
    return _ROUNDS[params.type](params, tensor, size)


def _reduce(params: CollectiveParams, tensor: Any, size: int) -> Rounds:
    flat = np.ravel(tensor)
    bounds = [len(flat) * rank // size // _ALIGNMENT * _ALIGNMENT for rank in range(size)]
    parts = yield np.split(flat, bounds[1:])
    parts = yield [merged(params, parts)] * size
    return np.concatenate(parts).reshape(params.shape)


def _reduce_scatter(params: CollectiveParams, tensor: Any, size: int) -> Rounds:
    parts = yield np.split(tensor, size)
    return merged(params, parts)


def _gather(params: CollectiveParams, tensor: Any, size: int) -> Rounds:
    return np.concatenate((yield [tensor] * size))


def _all_to_all(params: CollectiveParams, tensor: Any, size: int) -> Rounds:
    return np.stack((yield list(tensor)))


def _broadcast(params: CollectiveParams, tensor: Any, size: int) -> Rounds:
    parts = yield [tensor] * size
    return next(part for part in parts if part is not None)


_ROUNDS = {
    CollectiveType.REDUCTION_COLLECTIVE: _reduce,
    CollectiveType.REDUCE_SCATTER_COLLECTIVE: _reduce_scatter,
    CollectiveType.GATHER_COLLECTIVE: _gather,
    CollectiveType.ALL_TO_ALL_COLLECTIVE: _all_to_all,
    CollectiveType.BROADCAST_COLLECTIVE: _broadcast,
}
