"""Loops of the gamma function's logarithm and of the Hurwitz zeta function."""

from typing import Any

import numpy as np

from opkernel.ops.math import gamma_functions, special_functions
from opkernel.ops.math.gamma_functions import (
    BERNOULLI,
    HALF_LOG_2_PI,
    LGAMMA_SERIES,
    SHIFT,
    ZETA_TERMS,
)
from opkernel.providers import LOOPS
from opkernel.providers.loops.compiled_loop import Loop, loop, part_of_loops
from opkernel.types import Array

_SMALL_TERM = 2.0**-56
"""Beside the sum, what follows such a term of the zeta function is nothing."""


@part_of_loops
def _lgamma_of_positive(x: float) -> Any:
    product = 1.0
    if x < SHIFT:
        product = x
        for i in range(1, SHIFT):
            product *= x + i
        x += SHIFT
    inverse = 1 / (x * x)
    series = 0.0
    for k in range(len(LGAMMA_SERIES) - 1, -1, -1):
        series = series * inverse + LGAMMA_SERIES[k]
    logarithm = np.log(x)
    result = (x - 0.5) * logarithm - x + HALF_LOG_2_PI + series / x
    return result if product == 1.0 else result - np.log(product)


@loop(otherwise=gamma_functions.lgamma)
def _lgamma(x: Array) -> Array:
    """As `lgamma` of ops, [n]."""
    out = np.empty_like(x)
    for i in range(x.size):
        one = x[i]
        if np.isinf(one):
            out[i] = np.inf
        elif one in (1.0, 2.0):
            out[i] = 0.0
        elif one >= 0.5:
            out[i] = _lgamma_of_positive(one)
        else:
            sine = abs(np.sin(np.pi * (one - np.rint(one))))
            out[i] = np.log(np.pi / sine) - _lgamma_of_positive(1 - one)
    return out


@part_of_loops
def _zeta_of_positive(x: float, q: float) -> Any:
    """As `zeta_of_positive` of ops; ends where the terms do not count."""
    total = 0.0
    for n in range(ZETA_TERMS):
        term = (q + n) ** -x
        total += term
        if term < _SMALL_TERM * total:
            return total
    w = q + ZETA_TERMS
    power = w**-x
    total += power * w / (x - 1) + 0.5 * power
    factor = x * power / w / 2
    for j in range(len(BERNOULLI)):
        total += BERNOULLI[j] * factor
        k = 2.0 * (j + 1)
        factor = factor * (x + k - 1) * (x + k) / ((k + 1) * (k + 2)) / (w * w)
    return total


@part_of_loops
def _zeta_of_one(x: float, q: float) -> Any:
    if x == 1:
        return np.inf
    if not x > 1 or np.isnan(q):
        return np.nan
    is_even = np.isinf(x) or x % 2 == 0
    if q <= 0 and q == np.floor(q):
        return np.inf if is_even else np.nan
    if q <= 0 and x != np.floor(x):
        return np.nan
    if np.isinf(x) or np.isinf(q):
        return 1.0 if q == 1 else 0.0 if q > 1 else np.inf
    if q > 0:
        return _zeta_of_positive(x, q)
    below, last = -np.floor(q), np.ceil(q) - q
    mirrored = _zeta_of_positive(x, last) - _zeta_of_positive(x, last + below)
    return _zeta_of_positive(x, q + below) + (mirrored if is_even else -mirrored)


@loop(otherwise=gamma_functions.zeta)
def _zeta(x: Array, q: Array) -> Array:
    """As `zeta` of ops, [n]."""
    out = np.empty_like(x)
    for i in range(x.size):
        out[i] = _zeta_of_one(x[i], q[i])
    return out


def _of_any_rank(function: Loop) -> Any:
    """The function of arrays that are broadcast."""

    def of_any_rank(*inputs: Array) -> Array:
        same = np.broadcast_arrays(*inputs)
        flat = [np.ascontiguousarray(one).reshape(-1) for one in same]
        result: Array = function(*flat).reshape(same[0].shape)
        return result

    return of_any_rank


special_functions.register_gamma_functions(
    _of_any_rank(_lgamma), _of_any_rank(_zeta), LOOPS.kernels
)
