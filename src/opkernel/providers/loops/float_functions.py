"""Loops of the functions of floats: all steps for one number after the other, several of them in one instruction."""

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from opkernel.ops.math import float_functions as formulas
from opkernel.ops.math.error_functions import erfc_float
from opkernel.providers import LOOPS
from opkernel.providers.loops.compiled_loop import Loop, loop, part_of_loops
from opkernel.types import Array

_F = np.float32
_TINY = np.finfo(np.float32).tiny
_NAN, _INFINITY = _F(np.nan), _F(np.inf)

_MANTISSA = np.int32(23)
"""How many bits of a float are behind its exponent."""
_ROOT_OF_HALF = np.int32(0x3F3504F3)
_LN_2_HIGH, _LN_2_LOW = _F(0.693359375), _F(-2.12194440e-4)
_LOG2_E = _F(np.log2(np.e))
_ROUNDS = _F(1.5 * 2**23)
"""A number that rounds another to an integer, by being added."""
_LN_2 = _F(np.log(2.0))
_LOG_ABOVE = formulas.floats(0.0, 1.0000000190281136, 1.0000000190281063, 0.18256296349849254)
_LOG_BELOW = formulas.floats(1.0, 1.4999999999999927, 0.5992324959082352, 0.049616247954120038)
"""log(1 + x) as a quotient, around 0 by a factor of 2: Eigen's coefficients, GenericPacketMathFunctions.h."""
_EXP = formulas.floats(
    0.5, 0.1666666716337204, 0.041666463017463684, 0.008333360776305199, 0.0013933833688497543,
    0.00019857885490637273,
)  # fmt: skip
"""(exp(x) - 1 - x) / x**2, by powers of x, up to half of log(2)."""


@part_of_loops
def _choice(condition: Any, x: Any, y: Any) -> Any:
    """Of bits: behind a branch, the compiler would not compute several numbers at once."""
    mask = np.int32(-np.int32(condition))
    kept = (_F(x).view(np.int32) & mask) | (_F(y).view(np.int32) & ~mask)
    return np.int32(kept).view(np.float32)


@part_of_loops
def _log(x: Any) -> Any:
    """The logarithm, to 4e-7, in Eigen's steps; of numbers below the normal format that of 0."""
    bits = _F(x).view(np.int32)
    exponent = np.int32((bits - _ROOT_OF_HALF) >> _MANTISSA)
    rest = np.int32(bits - np.int32(exponent << _MANTISSA)).view(np.float32) - _F(1)
    above = formulas.float_polynomial(rest, _LOG_ABOVE)
    result = _LN_2 * _F(exponent) + above / formulas.float_polynomial(rest, _LOG_BELOW)
    result = _choice(x == _INFINITY, x, result)
    result = _choice(abs(x) < _TINY, -_INFINITY, result)
    return _choice(x > -_TINY, result, _NAN)


@part_of_loops
def _power_of_2(exponent: Any) -> Any:
    return np.int32((exponent + np.int32(127)) << _MANTISSA).view(np.float32)


@part_of_loops
def _exp(x: Any) -> Any:
    """The exponential function, to 2e-7."""
    inside = min(max(x, _F(-104)), _F(89))
    whole = (inside * _LOG2_E + _ROUNDS) - _ROUNDS
    rest = inside - whole * _LN_2_HIGH - whole * _LN_2_LOW
    result = rest * rest * formulas.float_polynomial(rest, _EXP) + rest + _F(1)
    exponent = np.int32(whole)
    half = np.int32(exponent >> np.int32(1))
    result = result * _power_of_2(half) * _power_of_2(np.int32(exponent - half))
    return _choice(x == x, result, x)


def _of_each(function: Callable[[Any], Any]) -> Loop:
    by_numpy = formulas.by_blocks(function)
    if function is formulas.erfc:  # faster on large blocks
        by_numpy = partial(erfc_float, xp=np)

    @loop(otherwise=by_numpy, source=formulas.__file__)
    def of_each(x: Array) -> Array:
        out = np.empty_like(x)
        for i in range(x.size):
            out[i] = function(x[i])
        return out

    return of_each


def _of_pairs(function: Callable[[Any, Any], Any]) -> Loop:
    @loop(otherwise=formulas.by_blocks(function), source=formulas.__file__)
    def of_pairs(x: Array, y: Array) -> Array:
        out = np.empty_like(x)
        for i in range(x.size):
            out[i] = function(x[i], y[i])
        return out

    return of_pairs


part_of_loops(_choice, in_place_of=formulas.where)
part_of_loops(_log, in_place_of=formulas.log)
part_of_loops(_exp, in_place_of=formulas.exp)
part_of_loops(lambda x: x, in_place_of=formulas.flushed)
for _part in formulas.PARTS:
    part_of_loops(_part)
for _op, _function in formulas.FUNCTIONS.items():
    part_of_loops(_function)
    _looping = _of_pairs if _op == "Atan2" else _of_each
    formulas.register_float_function(_op, _looping(_function), LOOPS.kernels)
