"""Normal numbers between bounds, drawn by rejection: of one set of parameters after the other, from one stream.

The numbers of a set follow each other in the stream; those of the next set begin at the group of blocks after it.
What a number may be made of, its candidates, is computed for a stretch of blocks at once. Then candidates are accepted
or rejected.

Source: TensorFlow core/kernels/parameterized_truncated_normal_op.cc; Robert, Simulation of truncated normal variables
(1995).
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable
from typing import Any

import numpy as np

from opkernel.device.budget import check_time
from opkernel.errors import InternalError, InvalidArgumentError
from opkernel.ops.math.error_functions import rounded_exp
from opkernel.ops.random.distributions import (
    log_of_float,
    normals_of_words,
    numbers_in_block,
    uniforms_of_words,
)
from opkernel.ops.random.philox import Philox
from opkernel.types import Array, DataType

MAX_REJECTED = 1000
"""So many numbers in a row are not rejected."""

_WIDE = 1.3
"""Deviations within the bounds, from which on normal numbers are drawn."""

_FEWEST_BLOCKS, _MOST_BLOCKS = 16, 1 << 13
"""Blocks of a stretch."""

BY_NORMALS, BY_UNIFORMS, BY_EXPONENTIALS = range(3)
"""The methods: normal numbers that lie within the bounds; uniform numbers, accepted as often as normal ones lie there,
one block of numbers, one to decide; exponential numbers beyond the lower bound, every first uniform number of a block,
every second to decide."""

SET, TAKEN, REJECTED, BLOCK = range(4)
"""Where drawing stands: the set of parameters, its numbers taken and those rejected in a row; blocks used of the stretch."""


Choose = Callable[[Array, Array, int, Array, Array], Any]
"""A function as `choose`."""


def numbers_between(
    random: Philox,
    dtype: DataType,
    total: int,
    each: int,
    parameters: list[Array],
    choose: Choose,
) -> Array:
    """Normal numbers between bounds, computed in their own type step by step.

    Args:
        random: The stream.
        dtype: The type of the numbers and the parameters.
        total: How many numbers there are.
        each: How many of them each set of parameters has; the last one may have fewer.
        parameters: Means, deviations, lower and upper bounds, [sets] each.
        choose: A function as `choose`.

    Raises:
        InvalidArgumentError: a deviation is not positive, or no bound is finite, or they leave nothing.
        InternalError: a thousand numbers in a row are rejected.
    """
    limits, deviations = _limits(*parameters)
    numbers = np.empty(total, dtype.numpy_dtype)
    state = np.zeros(4, np.int64)
    methods = set(limits[0].tolist())
    while total and state[SET] < limits.shape[1]:
        check_time("drawing numbers")
        left = (total - int(state[SET]) * each) // numbers_in_block(dtype)
        needed = left + left // 8 if methods == {BY_NORMALS} else 2 * left
        blocks = min(max(_FEWEST_BLOCKS, needed), _MOST_BLOCKS)
        candidates = _candidates(random.blocks(blocks), dtype, methods)
        choose(candidates, limits, each, numbers, state)
        if state[REJECTED] >= MAX_REJECTED:
            raise InternalError("TruncatedNormal rejection sampler failed to accept a sample.")
        random = random.skip(int(state[BLOCK]))
        state[BLOCK] = 0
    of_numbers = np.arange(total) // max(each, 1)
    numbers *= deviations[of_numbers]
    numbers += parameters[0][of_numbers]
    return numbers


def _limits(mean: Any, deviation: Any, low: Any, high: Any) -> tuple[Array, Array]:
    """What sets of parameters accept, and their deviations, negative where numbers are mirrored."""
    if not np.all((deviation > 0) & (low < high) & (np.isfinite(low) | np.isfinite(high))):
        raise InvalidArgumentError("Invalid parameters")
    kind = mean.dtype.type
    is_mirrored = (np.isinf(low) & (low < 0)) | (high < mean)  # so that the lower bound is near
    low, high = np.where(is_mirrored, high, low), np.where(is_mirrored, low, high)
    deviation = np.where(is_mirrored, -deviation, deviation)
    least, most = (low - mean) / deviation, (high - mean) / deviation
    root = np.sqrt(least * least + kind(4))
    exponent = kind(0.5) + (least * (least - root)) / kind(4)
    cutoff = kind(2) * rounded_exp(exponent) / (least + root)
    wide = kind(_WIDE)
    is_wide = ((least < -wide) & (most >= 0)) | ((most > wide) & (least <= 0))
    is_narrow = most - least < cutoff
    likeliest = np.where(least < 0, kind(0), least * least)
    methods = np.where(is_wide, BY_NORMALS, np.where(is_narrow, BY_UNIFORMS, BY_EXPONENTIALS))
    shapes = np.where(is_narrow, likeliest, (least + root) / kind(2))
    return np.stack([methods.astype(kind), least, most, shapes]), deviation


def _candidates(words: Array, dtype: DataType, methods: set[int]) -> Array:
    """What numbers may be made of, as `choose` takes it."""
    candidates = np.empty((3, len(words), numbers_in_block(dtype)), dtype.numpy_dtype)
    if BY_NORMALS in methods:
        candidates[BY_NORMALS] = normals_of_words(words.copy(), dtype)
    if methods != {BY_NORMALS}:
        candidates[BY_UNIFORMS] = uniforms_of_words(words, dtype)
    if BY_EXPONENTIALS in methods:
        candidates[BY_EXPONENTIALS, :, ::2] = -_log(candidates[BY_UNIFORMS, :, ::2])
    return candidates


def _log(x: Array) -> Any:
    """The logarithm of numbers from 0 on, of float as the C library rounds it."""
    if x.dtype != np.float32:
        return np.log(x)
    return np.where(
        x > 0, log_of_float(np.maximum(x, np.finfo(np.float32).tiny)), np.float32(-np.inf)
    )


def choose(candidates: Array, limits: Array, each: int, numbers: Array, state: Array) -> None:
    """The numbers that are accepted, until all sets have theirs or the stretch is used up.

    Sets that are equal and follow each other accept the same candidates.

    Args:
        candidates: [3, blocks, n]: for each block of a stretch normal numbers; uniform ones; at each first of two places
            exponential numbers of the uniform ones there. What no set needs is left out.
        limits: [4, sets]: for each set how its numbers are drawn; in units of deviations from the mean, the near bound and
            the far one; by uniform numbers the square of the likeliest number, by exponential ones their rate.
        each: How many numbers a set has; the last set those that are left.
        numbers: All numbers, in units of deviations from the mean, to be filled in.
        state: Where drawing stands (`SET`, `TAKEN`, `REJECTED`, `BLOCK`), which changes.
    """
    first = int(state[SET])
    is_last = np.ones(limits.shape[1] - first, bool)
    is_last[:-1] = (limits[:, first + 1 :] != limits[:, first:-1]).any(axis=0)
    for last in (first + np.flatnonzero(is_last)).tolist():
        in_group = 2 if limits[0, last] == BY_UNIFORMS else 1
        filled = numbers[: (last + 1) * each]
        while state[SET] <= last:
            left = (candidates.shape[1] - int(state[BLOCK])) // in_group
            if not left or state[REJECTED] >= MAX_REJECTED:
                return
            needed = filled.size - int(state[SET]) * each - int(state[TAKEN])
            groups = min(max(8, needed // 2), left)
            part = candidates[:, state[BLOCK] :][:, : groups * in_group]
            found, accepted = _proposed(part, *limits[:, last])
            state[BLOCK] += in_group * _hand_out(found, accepted, each, filled, state)


def _proposed(
    candidates: Array, method: Any, least: Any, most: Any, shape: Any
) -> tuple[Array, Array]:
    """The numbers that blocks propose, and whether each is accepted, [groups, n] both."""
    normals, uniforms, exponentials = candidates
    if method == BY_NORMALS:
        return normals, (normals >= least) & (normals <= most)
    two = type(least)(2)
    if method == BY_UNIFORMS:
        found = uniforms[::2] * (most - least) + least
        return found, uniforms[1::2] <= rounded_exp((shape - found * found) / two)
    found = exponentials[:, ::2] / shape + least
    distance = shape - found if least < shape else np.full_like(found, least - shape)
    likely = rounded_exp(-distance * distance / two)
    return found, (uniforms[:, 1::2] <= likely) & (found < most)


def _hand_out(found: Array, accepted: Array, each: int, numbers: Array, state: Array) -> int:
    """Give sets the accepted numbers, each from a new group on; how many groups that uses up."""
    groups, in_group = found.shape
    where = np.flatnonzero(accepted)
    found, places = found.reshape(-1)[where], where.tolist()
    gaps = np.flatnonzero(np.diff(where) > MAX_REJECTED).tolist()
    group, (index, taken, rejected, _) = 0, state.tolist()
    while group < groups and index * each < numbers.size:
        start = index * each + taken
        first = bisect_left(places, group * in_group)
        end = min(first + min(each * (index + 1), numbers.size) - start, len(places))
        numbers[start : start + end - first] = found[first:end]
        waited = (places[first] if end > first else groups * in_group) - group * in_group
        if rejected + waited >= MAX_REJECTED or any(first <= gap < end - 1 for gap in gaps):
            rejected = MAX_REJECTED
            break
        taken += end - first
        if index * each + taken == min(each * (index + 1), numbers.size):
            group = places[end - 1] // in_group + 1
            index, taken, rejected = index + 1, 0, 0
        else:
            rejected = groups * in_group - 1 - places[end - 1] if end > first else rejected + waited
            group = groups
    state[:BLOCK] = index, taken, rejected
    return group
