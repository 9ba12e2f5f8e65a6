"""Many sets at once: their union, intersection and differences, and their sizes.

Integers: the number of the set and the member together are one key. Keys are marked in a table where that is small,
and sorted otherwise. Strings: Python's sets, one after the other.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import chain
from typing import Any

import numpy as np

from opkernel.device.work_clock import check_seconds, in_time, parts_work
from opkernel.ops.stable_order import stable_order

_TABLE_BYTES = 16
"""A table has at most so many places for each member."""
_KEY_BITS = 61
_SECONDS_OF_MARKING, _SECONDS_OF_SORTING = 2e-9, 1e-8
"""The least time that a member takes."""
_SECONDS_A_STEP = 3e-9
"""The least time of a comparison of a merge."""
_AT_ONCE = 1 << 16
"""So many strings are taken out of an array at once."""

Choice = Callable[[Any, Any], Any]
"""Whether members are in the result, from whether they are in the first and in the second set."""

_CHOICES: dict[str, Choice] = {
    "a-b": np.greater,
    "b-a": np.less,
    "intersection": np.logical_and,
    "union": np.logical_or,
}
_OF_SETS: dict[str, Callable[[set[bytes], set[bytes]], set[bytes]]] = {
    "a-b": operator.sub,
    "b-a": lambda a, b: b - a,
    "intersection": operator.and_,
    "union": operator.or_,
}


@dataclass(frozen=True, slots=True)
class Sets:
    """Sets: their shape, the number of the set of each member, and the members.

    Both are vectors; or the members are a matrix with a set in each row, and the numbers its one column.
    """

    shape: tuple[int, ...]
    groups: Any
    members: Any

    @property
    def count(self) -> int:
        """How many sets there are."""
        return math.prod(self.shape)


@dataclass(frozen=True, slots=True)
class _Keys:
    """Keys of pairs of a set's number and a member, in the order of the pairs.

    Args:
        bits: So many low bits of a key are the member, less `low`.
        low: The least member.
        is_few: Whether a table of all keys is small beside the members.
    """

    bits: int
    low: int
    is_few: bool

    @classmethod
    def of(cls, *parts: Sets) -> _Keys | None:
        """The keys of the members of sets; None where they have too many bits."""
        ends = [end(one.members) for one in parts if one.members.size for end in (np.min, np.max)]
        low, high = (int(min(ends)), int(max(ends))) if ends else (0, 0)
        bits, count = (high - low).bit_length(), parts[0].count
        if bits + count.bit_length() > _KEY_BITS:
            return None
        most = _TABLE_BYTES * sum(one.members.size for one in parts)
        return cls(bits, low, count << bits <= most)

    def keys(self, sets: Sets) -> Any:
        """The keys of all members."""
        keys = np.subtract(sets.members, self.low, dtype=np.int64)
        keys += sets.groups << self.bits
        return keys.ravel()

    def marked(self, sets: Sets) -> Any:
        """A table of all keys that says which the sets have, [sets, members]."""
        check_seconds(sets.members.size * _SECONDS_OF_MARKING, "combining sets")
        table = np.zeros(sets.count << self.bits, np.bool_)
        table[self.keys(sets)] = True
        return table.reshape(sets.count, 1 << self.bits)

    def pairs(self, keys: Any, dtype: Any) -> tuple[Any, Any]:
        """The numbers of the sets, and the members."""
        members = keys & ((1 << self.bits) - 1)
        members += self.low
        return keys >> self.bits, members.astype(dtype, copy=False)


def combined_integers(first: Sets, second: Sets, operation: str) -> tuple[Any, Any]:
    """For each member of the combined sets the number of its set, and the member; in order.

    Args:
        first: Sets of integers.
        second: As many sets.
        operation: "a-b", "b-a", "intersection" or "union".
    """
    choice, keys = _CHOICES[operation], _Keys.of(first, second)
    if keys is None:
        return _combined_by_order(first, second, choice)
    dtype = first.members.dtype
    if keys.is_few:
        found = np.flatnonzero(choice(keys.marked(first), keys.marked(second)))
        return keys.pairs(found, dtype)
    return keys.pairs(_combined_keys(keys.keys(first), keys.keys(second), choice), dtype)


def _combined_keys(a: Any, b: Any, choice: Choice) -> Any:
    check_seconds((a.size + b.size) * _SECONDS_OF_SORTING, "combining sets")
    both = np.concatenate([a << 1, b << 1 | 1])  # of equal keys that of `a` is first
    both.sort()
    keys = both >> 1
    return keys[_chosen(_are_new(keys), both & 1 == 1, choice)]


def _combined_by_order(first: Sets, second: Sets, choice: Choice) -> tuple[Any, Any]:
    """As `combined_integers`, of numbers that make too long keys."""
    groups, members, are_second = _ordered(first, second)
    chosen = _chosen(_are_new(groups, members), are_second, choice)
    return groups[chosen], members[chosen]


def _ordered(first: Sets, second: Sets) -> tuple[Any, Any, Any]:
    """The members in the order of the sets, with their sets; and whether each is of the second sets, these behind."""
    parts = first, second
    split = first.members.shape[-1]
    if all(one.members.ndim == 2 for one in parts):
        rows = np.concatenate([one.members for one in parts], axis=1)
        descents = int(np.count_nonzero(rows[:, 1:] < rows[:, :-1]))
        steps = rows.size * (1 + descents // max(len(rows), 1)).bit_length()
        check_seconds(steps * _SECONDS_A_STEP, "combining sets")
        order = np.argsort(rows, axis=1, kind="stable")
        groups = np.broadcast_to(first.groups, rows.shape)
        members = np.take_along_axis(rows, order, axis=1)
    else:
        split = first.members.size
        groups = np.concatenate([np.broadcast_to(a.groups, a.members.shape).ravel() for a in parts])
        members = np.concatenate([one.members.ravel() for one in parts])
        order = stable_order(groups, members)
        groups, members = groups[order], members[order]
    return groups.ravel(), members.ravel(), order.ravel() >= split


def _are_new(*keys: Any) -> Any:
    """Whether each of the keys, which are in order, differs from the one before it."""
    are_new = np.ones(keys[0].size, np.bool_)
    np.not_equal(keys[0][1:], keys[0][:-1], out=are_new[1:])
    for key in keys[1:]:
        are_new[1:] |= key[1:] != key[:-1]
    return are_new


def _chosen(are_new: Any, are_second: Any, choice: Choice) -> Any:
    """Where the chosen of the different members stand."""
    starts = np.flatnonzero(are_new)
    ends = np.append(starts[1:], are_new.size)[: starts.size] - 1
    return starts[choice(~are_second[starts], are_second[ends])]


def sizes_of_integers(sets: Sets) -> Any:
    """How many different members each set has, [sets]."""
    keys = _Keys.of(sets)
    if keys is not None and keys.is_few:
        return np.count_nonzero(keys.marked(sets), axis=1)
    if keys is None:
        order = stable_order(sets.groups, sets.members)
        groups = sets.groups[order]
        return np.bincount(groups[_are_new(groups, sets.members[order])], minlength=sets.count)
    check_seconds(sets.members.size * _SECONDS_OF_SORTING, "counting sets")
    found = np.sort(keys.keys(sets))
    return np.bincount(found[_are_new(found)] >> keys.bits, minlength=sets.count)


def combined_strings(first: Sets, second: Sets, operation: str) -> tuple[Any, Any]:
    """As `combined_integers`, of strings."""
    combine = _OF_SETS[operation]
    groups = np.unique(np.concatenate([first.groups.ravel(), second.groups.ravel()]))
    members: list[bytes] = []
    sizes: list[int] = []
    pairs = zip(_members_of(first, groups), _members_of(second, groups), strict=True)
    for a, b in in_time(pairs, lambda pair: parts_work(pair[0]) + parts_work(pair[1])):
        found = combine(set(a), set(b))
        sizes.append(len(found))
        if found:
            members += sorted(found)
    return np.repeat(groups, sizes), np.fromiter(members, object, len(members))


def sizes_of_strings(sets: Sets) -> Any:
    """As `sizes_of_integers`, of strings."""
    sizes, groups = np.zeros(sets.count, np.int64), np.unique(sets.groups)
    members = in_time(_members_of(sets, groups), parts_work)
    sizes[groups] = [len(set(one)) for one in members]
    return sizes


def _members_of(sets: Sets, groups: Any) -> Iterator[list[bytes]]:
    """The members of each of some sets."""
    if sets.members.ndim == 2:
        rows, step = sets.members, _AT_ONCE // max(sets.members.shape[1], 1) + 1
        return chain.from_iterable(
            rows[at : at + step].tolist() for at in range(0, len(rows), step)
        )
    numbers, members = sets.groups, sets.members
    if (numbers[1:] < numbers[:-1]).any():
        order = stable_order(numbers)
        numbers, members = numbers[order], members[order]
    starts, ends = (np.searchsorted(numbers, groups, side).tolist() for side in ("left", "right"))
    flat = members.tolist()
    return (flat[start:end] for start, end in zip(starts, ends, strict=True))
