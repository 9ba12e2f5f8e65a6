"""Loops that choose normal numbers between bounds."""

import math
from typing import Any

import numpy as np

from opkernel.ops.random import normals_between, truncated_normal
from opkernel.ops.random.normals_between import (
    BLOCK,
    BY_EXPONENTIALS,
    BY_NORMALS,
    BY_UNIFORMS,
    MAX_REJECTED,
    REJECTED,
    SET,
    TAKEN,
)
from opkernel.ops.registration import WIDE_FLOATS
from opkernel.providers import LOOPS
from opkernel.providers.loops.compiled_loop import loop, part_of_loops
from opkernel.types import Array


@part_of_loops
def _likely(exponent: Any, kind: Any) -> Any:
    """As `rounded_exp`."""
    return kind(math.exp(np.float64(exponent)))


@part_of_loops
def _proposed(candidates: Array, of_set: Array, block: int, i: int, kind: Any) -> tuple[Any, bool]:
    """Number i that a block proposes, and whether it is accepted."""
    method, least, most, shape = of_set[0], of_set[1], of_set[2], of_set[3]
    if method == BY_NORMALS:
        number = candidates[BY_NORMALS, block, i]
        return number, number >= least and number <= most
    if method == BY_UNIFORMS:
        number = candidates[BY_UNIFORMS, block, i] * (most - least) + least
        likely = _likely((shape - number * number) / kind(2), kind)
        return number, candidates[BY_UNIFORMS, block + 1, i] <= likely
    number = candidates[BY_EXPONENTIALS, block, 2 * i] / shape + least
    distance = shape - number if least < shape else least - shape
    likely = _likely(-distance * distance / kind(2), kind)
    return number, candidates[BY_UNIFORMS, block, 2 * i + 1] <= likely and number < most


@loop(otherwise=normals_between.choose)
def choose(candidates: Array, limits: Array, each: int, numbers: Array, state: Array) -> None:
    """Candidates are accepted or rejected one by one."""
    kind = numbers.dtype.type
    _, blocks, width = candidates.shape
    index, taken, rejected, block = state[SET], state[TAKEN], state[REJECTED], state[BLOCK]
    while index < limits.shape[1] and rejected < MAX_REJECTED:
        of_set = limits[:, index].copy()
        in_group = 2 if of_set[0] == BY_UNIFORMS else 1
        count = width // 2 if of_set[0] == BY_EXPONENTIALS else width
        place, end = index * each + taken, min((index + 1) * each, numbers.size)
        while place < end and block + in_group <= blocks and rejected < MAX_REJECTED:
            for i in range(count):
                number, accepted = _proposed(candidates, of_set, block, i, kind)
                if not accepted:
                    rejected += 1
                    if rejected == MAX_REJECTED:
                        break
                elif place < end:
                    numbers[place] = number
                    place += 1
                    rejected = 0
            block += in_group
        taken = place - index * each
        if place < end:
            break
        index, taken, rejected = index + 1, 0, 0
    state[SET], state[TAKEN], state[REJECTED], state[BLOCK] = index, taken, rejected, block


truncated_normal.register_truncated_normal(choose, types=WIDE_FLOATS, registry=LOOPS.kernels)
