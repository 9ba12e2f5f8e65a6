"""Loops that draw numbers of Poisson, binomial and gamma distributions, each from a stream of its own."""

import math
from typing import Any

import numpy as np

from opkernel.ops.random import gamma, poisson_and_binomial
from opkernel.ops.random.distributions import LEAST_UNIFORM
from opkernel.ops.random.gamma import SQUEEZE
from opkernel.ops.random.philox import MULTIPLIERS, ROUNDS, WEYL
from opkernel.ops.random.poisson_and_binomial import SMALL_RATE, STIRLING_TAILS
from opkernel.providers import LOOPS
from opkernel.providers.loops.compiled_loop import loop, part_of_loops
from opkernel.types import Array

_M0, _M1 = MULTIPLIERS
_W0, _W1 = (np.uint64(one) for one in WEYL)
_MASK, _HALF = np.uint64(0xFFFFFFFF), np.uint64(32)
_MANTISSA, _UNIT = np.uint64((1 << 52) - 1), 2.0**-52
_NEXT, _UNIFORMS, _NORMALS = 0, 1, 2
"""Of a stream: the next block, how many uniform numbers are left of a block, and how many normal ones."""


@part_of_loops
def _two_uniforms(place: Array, offset: Any, out: Array) -> None:
    """The numbers of double of the block so far from a place, as `Philox.blocks_at` and `uniforms_of_words`."""
    low = place[1] + offset
    high = place[2] + (np.uint64(1) if low < offset else np.uint64(0))
    c0, c1, c2, c3 = low & _MASK, low >> _HALF, high & _MASK, high >> _HALF
    k0, k1 = place[0] & _MASK, place[0] >> _HALF
    for _ in range(ROUNDS):
        p0, p1 = c0 * _M0, c2 * _M1
        c0, c2 = (p1 >> _HALF) ^ c1 ^ k0, (p0 >> _HALF) ^ c3 ^ k1
        c1, c3 = p1 & _MASK, p0 & _MASK
        k0, k1 = (k0 + _W0) & _MASK, (k1 + _W1) & _MASK
    out[0] = np.float64(np.int64((c0 << _HALF | c1) & _MANTISSA)) * _UNIT
    out[1] = np.float64(np.int64((c2 << _HALF | c3) & _MANTISSA)) * _UNIT


@part_of_loops
def _uniform(place: Array, stream: Array, kept: Array) -> Any:
    """The next uniform number; the last one of a block comes first."""
    if stream[_UNIFORMS] == 0:
        _two_uniforms(place, stream[_NEXT], kept[_UNIFORMS])
        stream[_NEXT] += np.uint64(1)
        stream[_UNIFORMS] = 2
    stream[_UNIFORMS] -= np.uint64(1)
    return kept[_UNIFORMS, stream[_UNIFORMS]]


@part_of_loops
def _normal(place: Array, stream: Array, kept: Array) -> Any:
    """The next normal number, by the transform of Box and Muller; the last one of a block comes first."""
    if stream[_NORMALS] == 0:
        of_block = kept[_NORMALS]
        _two_uniforms(place, stream[_NEXT], of_block)
        length = math.sqrt(-2.0 * math.log(max(of_block[0], LEAST_UNIFORM)))
        angle = 2 * math.pi * of_block[1]
        of_block[0], of_block[1] = math.sin(angle) * length, math.cos(angle) * length
        stream[_NEXT] += np.uint64(1)
        stream[_NORMALS] = 2
    stream[_NORMALS] -= np.uint64(1)
    return kept[_NORMALS, stream[_NORMALS]]


@part_of_loops
def _begin(stream: Array, start: Any) -> None:
    stream[_NEXT], stream[_UNIFORMS], stream[_NORMALS] = start, 0, 0


@part_of_loops
def _events(place: Array, rate: float, stream: Array, kept: Array) -> Any:
    """As many events as there are before the time 1."""
    bound, product, count = math.exp(-rate), 1.0, 0.0
    while True:
        product *= _uniform(place, stream, kept)
        if not product > bound:
            return count
        count += 1


@part_of_loops
def _by_rejection(place: Array, rate: float, stream: Array, kept: Array) -> Any:
    """Transformed uniform numbers, some of which are rejected."""
    b = 0.931 + 2.53 * math.sqrt(rate)
    a = -0.059 + 0.02483 * b
    inverse = 1.1239 + 1.1328 / (b - 3.4)
    while True:
        u = _uniform(place, stream, kept) - 0.5
        v = _uniform(place, stream, kept)
        shifted = 0.5 - abs(u)
        k = math.floor((2 * a / shifted + b) * u + rate + 0.43) * 1.0
        if shifted >= 0.07 and v <= 0.9277 - 3.6224 / (b - 2):
            return k
        if k < 0 or (shifted < 0.013 and v > shifted):
            continue
        s = math.log(v * inverse / (a / (shifted * shifted) + b))
        if s <= -rate + k * math.log(rate) - math.lgamma(k + 1):
            return k


@loop(otherwise=poisson_and_binomial.draw_poissons)
def draw_poissons(place: Array, rates: Array, starts: Array) -> Array:
    """Number by number."""
    result = np.full(rates.size, np.nan)
    stream, kept = np.empty(3, np.uint64), np.empty((3, 2))
    for i in range(rates.size):
        _begin(stream, starts[i])
        if rates[i] < SMALL_RATE:
            result[i] = _events(place, rates[i], stream, kept)
        elif rates[i] < np.inf:
            result[i] = _by_rejection(place, rates[i], stream, kept)
    return result


@part_of_loops
def _waits(place: Array, count: float, prob: float, stream: Array, kept: Array) -> Any:
    """As many successes as waits for one fit into the trials."""
    trials, successes, by = 0.0, 0.0, math.log1p(-prob)
    while True:
        trials += np.ceil(np.log(_uniform(place, stream, kept)) / by)
        if not trials <= count:
            return successes
        successes += 1


@part_of_loops
def _stirling_tail(k: float) -> Any:
    if k < STIRLING_TAILS.size:
        return STIRLING_TAILS[max(int(k), 0)]
    square = (k + 1) * (k + 1)
    return (1 / 12 - (1 / 360 - 1 / 1260 / square) / square) / (k + 1)


@part_of_loops
def _bound(count: float, prob: float, k: float) -> Any:
    """The logarithm of how likely `k` successes are, beside the likeliest number."""
    m = np.floor((count + 1) * prob)
    odds = prob / (1 - prob)
    return (
        (m + 0.5) * math.log((m + 1) / (odds * (count - m + 1)))
        + (count + 1) * math.log((count - m + 1) / (count - k + 1))
        + (k + 0.5) * math.log(odds * (count - k + 1) / (k + 1))
        + _stirling_tail(m)
        + _stirling_tail(count - m)
        - _stirling_tail(k)
        - _stirling_tail(count - k)
    )


@part_of_loops
def _trials(place: Array, count: float, prob: float, stream: Array, kept: Array) -> Any:
    """Transformed uniform numbers, some of which are rejected (BTRS)."""
    deviation = math.sqrt(count * prob * (1 - prob))
    b = 1.15 + 2.53 * deviation
    a = -0.0873 + 0.0248 * b + 0.01 * prob
    alpha = (2.83 + 5.1 / b) * deviation
    while True:
        u = _uniform(place, stream, kept) - 0.5
        v = _uniform(place, stream, kept)
        shifted = 0.5 - abs(u)
        k = np.floor((2 * a / shifted + b) * u + (count * prob + 0.5))
        if shifted >= 0.07 and v <= 0.92 - 4.2 / b:
            return k
        if k < 0 or k > count:
            continue
        if np.log(v * alpha / (a / (shifted * shifted) + b)) <= _bound(count, prob, k):
            return k


@loop(otherwise=poisson_and_binomial.draw_successes)
def draw_successes(place: Array, counts: Array, probs: Array, few: Array, starts: Array) -> Array:
    """Number by number."""
    result = np.empty(counts.size)
    stream, kept = np.empty(3, np.uint64), np.empty((3, 2))
    for i in range(counts.size):
        _begin(stream, starts[i])
        if few[i]:
            result[i] = _waits(place, counts[i], probs[i], stream, kept)
        else:
            result[i] = _trials(place, counts[i], probs[i], stream, kept)
    return result


@part_of_loops
def _cube(place: Array, d: float, stream: Array, kept: Array) -> Any:
    """The cube of a normal number, some of which are rejected."""
    c = 1 / 3 / math.sqrt(d)
    while True:
        x = _normal(place, stream, kept)
        v = 1 + c * x
        if v <= 0:
            continue
        v = v * v * v
        u = _uniform(place, stream, kept)
        square = x * x
        if u < 1 - SQUEEZE * square * square:
            return d * v
        if np.log(u) < 0.5 * x * x + d * (1 - v + math.log(v)):
            return d * v


@loop(otherwise=gamma.draw_gammas)
def draw_gammas(place: Array, alpha: Array, starts: Array) -> Array:
    """Number by number."""
    result = np.full(alpha.size, np.nan)
    stream, kept = np.empty(3, np.uint64), np.empty((3, 2))
    for i in range(alpha.size):
        _begin(stream, starts[i])
        d = alpha[i] + (2 / 3 if alpha[i] < 1 else -1 / 3)
        if alpha[i] == 1:
            result[i] = -math.log1p(-_uniform(place, stream, kept))
        elif d > 0:
            result[i] = _cube(place, d, stream, kept)
            if alpha[i] < 1:
                result[i] *= _uniform(place, stream, kept) ** (1 / alpha[i])
    return result


poisson_and_binomial.register_poissons(draw_poissons, LOOPS.kernels)
poisson_and_binomial.register_binomials(draw_successes, LOOPS.kernels)
gamma.register_gammas(draw_gammas, registry=LOOPS.kernels)
