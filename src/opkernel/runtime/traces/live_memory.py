"""LiveMemory: the arrays that a step has brought forth, from their node to their collection."""

import itertools
import time
import weakref
from collections.abc import Sequence
from typing import Any

import numpy as np

from opkernel.device.ownership import counts_mean_ownership, others

Array = np.ndarray[Any, Any]
_now = time.perf_counter_ns
_ids = itertools.count(1)


class Allocation(weakref.ref[Array]):
    """An array that owns its memory; times are those of `time.perf_counter_ns`.

    Attributes:
        id: A number that no other array has.
        size: Its bytes.
        is_new: Whether it seems that a node brought it forth; False once a node has claimed it.
        since: When the node had done so.
        until: When it was collected; 0 while it is alive.
    """

    __slots__ = ("id", "is_new", "key", "since", "size", "until")
    only_counts = True  # nobody reads the array by it

    id: int
    is_new: bool
    key: int
    since: int
    size: int
    until: int


class LiveMemory:
    """Tells memory that nodes took from memory that they were given, and follows it to its end.

    Used from any thread, and without locks: an array may be collected at any instruction.
    """

    def __init__(self) -> None:
        self._alive: dict[int, Allocation] = {}
        alive = self._alive

        def note(allocation: Any) -> None:
            """Note that an array was collected; keeps nothing of the step alive."""
            allocation.until = _now()
            key = allocation.key
            if alive.get(key) is allocation:  # else the address is used again
                del alive[key]

        self._note = note

    def allocations(self, outputs: Sequence[Any]) -> list[Allocation | None]:
        """The new memory of each output of a node; None for outputs that are no arrays.

        Memory is new where no output before had it and nobody else refers to it: neither an input
        nor a variable nor the kernel itself.
        """
        return [  # without a variable that refers to an output
            self._of(outputs, index) if isinstance(outputs[index], np.ndarray) else None
            for index in range(len(outputs))
        ]

    def _of(self, outputs: Sequence[Any], index: int) -> Allocation:
        is_new = counts_mean_ownership() and others(outputs, index) == 0
        owner = outputs[index]
        while isinstance(owner.base, np.ndarray):
            is_new = is_new and others((owner.base,), 0) == 1  # the view's
            owner = owner.base
        key = id(owner)
        known = self._alive.get(key)
        if known is None:
            known = self._alive[key] = Allocation(owner, self._note)
            known.id, known.key, known.size, known.is_new = next(_ids), key, owner.nbytes, is_new
            known.since, known.until = _now(), 0
        return known
