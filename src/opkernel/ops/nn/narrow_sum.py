"""Sums of half and bfloat16 along the last dimension, added up in Eigen's order.

A sum is rounded after each addition, so that its order shows in the result. Eigen adds up packets of eight,
as in TensorFlow's builds for CPUs: every fourth packet into one sum, then these four sums, then the lanes in
float. Elements left over are summed by themselves. Long rows are cut in two, between packets of the whole
tensor.

Source: Eigen unsupported/Eigen/CXX11/src/Tensor/TensorReduction.h (InnerMostDimReducer).
"""

import math
from typing import Any

import numpy as np

from opkernel.device.work_clock import SLOW, in_time

__all__ = ["narrow_sum"]

Array = np.ndarray[Any, Any]

_LANES = 8
_TOGETHER = 4


def narrow_sum(x: Array) -> Array:
    """The sums along the last dimension of a tensor of half or bfloat16; the dimension is kept."""
    width = x.shape[-1]
    rows = x.reshape(-1, width)
    result = np.empty(len(rows), x.dtype)
    period = _LANES // math.gcd(width, _LANES)  # of rows that begin at the same lane
    for first in range(min(period, len(rows))):
        result[first::period] = _sum(rows[first::period], first * width)
    return result.reshape(*x.shape[:-1], 1)


def _sum(rows: Array, start: int) -> Array:
    """The sums of rows that begin at this element of the tensor, give or take whole packets."""
    width = rows.shape[1]
    if width <= _LANES * (200 if rows.dtype == np.float16 else 128):
        return _short_sum(rows)
    end = start + -(-width // 2)
    left = -(-end // _LANES) * _LANES - start
    return _sum(rows[:, :left], start) + _sum(rows[:, left:], start + left)


def _short_sum(rows: Array) -> Array:
    width = rows.shape[1]
    count = width // _LANES
    packets = rows[:, : count * _LANES].reshape(len(rows), count, _LANES)
    in_fours = count - count % _TOGETHER
    total = np.zeros((len(rows), _LANES), rows.dtype)
    if in_fours:
        fours = packets[:, :in_fours].reshape(len(rows), -1, _TOGETHER, _LANES)
        sums = _added_up(fours)
        total = sums[:, 0] + sums[:, 1] + sums[:, 2] + sums[:, 3]
    for i in range(in_fours, count):
        total = total + packets[:, i]
    rest = np.zeros(len(rows), rows.dtype)
    for i in range(count * _LANES, width):
        rest = rest + rows[:, i]
    return rest + _sum_of_lanes(total)


def _added_up(terms: Array) -> Array:
    """The sum along the second dimension, one term after the other."""
    total = terms[:, 0]
    for i in in_time(range(1, terms.shape[1]), SLOW):
        total = total + terms[:, i]
    return total


def _sum_of_lanes(packets: Array) -> Array:
    wide = packets.astype(np.float32)
    while wide.shape[1] > 1:
        half = wide.shape[1] // 2
        wide = wide[:, :half] + wide[:, half:]
    return wide[:, 0].astype(packets.dtype)
