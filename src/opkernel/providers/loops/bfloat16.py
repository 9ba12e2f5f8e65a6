"""Loops of bfloat16 numbers: each is made a float, and the result a bfloat16 number again, by its bits.

Subnormal numbers are 0, as in the kernels of several steps (`flush_subnormals`).
"""

from collections.abc import Callable
from types import ModuleType
from typing import Any

import numpy as np

from opkernel.ops.math import arithmetic
from opkernel.providers.loops.compiled_loop import instruction_in_loops, part_of_loops
from opkernel.providers.loops.half import register_narrow
from opkernel.types import DataType

_U = np.uint32
_EXPONENT, _SIGN, _NAN = _U(0x7F80), _U(0x8000), _U(0x7FC0)
_HALF_LESS_ONE = _U(0x7FFF)
_F = np.float32

# Compiled sums of 32 bits have 64, and then fewer numbers fit an instruction: `_U` cuts each.


def _same_bits(source: str, target: str) -> Callable[[ModuleType], Callable[..., Any]]:
    """Makes the function that takes the bits of one type for a number of the other."""

    def make(numba: ModuleType) -> Callable[..., Any]:
        def typed(_: Any, number: Any) -> Any:
            def build(context: Any, builder: Any, signature: Any, given: Any) -> Any:
                return builder.bitcast(given[0], context.get_value_type(signature.return_type))

            return getattr(numba.types, target)(getattr(numba.types, source)), build

        cast = numba.extending.intrinsic(typed)
        return lambda number: cast(number)

    return make


@instruction_in_loops(_same_bits("uint32", "float32"))
def float_of_bits(bits: Any) -> Any:
    """The float of these 32 bits."""
    return np.uint32(bits).view(np.float32)


@instruction_in_loops(_same_bits("float32", "uint32"))
def bits_of_float(x: Any) -> Any:
    """The 32 bits of a float."""
    return np.float32(x).view(np.uint32)


@part_of_loops
def _flushed(bits: Any) -> Any:
    zero = _U(bits & _SIGN)
    return zero if _U(bits & _EXPONENT) == _U(0) else bits


@part_of_loops
def _widened(bits: Any) -> Any:
    """The number of these 16 bits as float."""
    return float_of_bits(_U(_flushed(_U(bits)) << _U(16)))


@part_of_loops
def _rounded(x: Any) -> Any:
    """The 16 bits of the number nearest to a float, of two the even one."""
    bits = bits_of_float(x)
    high = _U(bits >> _U(16))
    nan = _U(_U(high & _SIGN) | _NAN)
    nearest = _U(_U(_U(bits + _HALF_LESS_ONE) + _U(high & _U(1))) >> _U(16))
    return np.uint16(_flushed(nearest if x == x else nan))


# A choice between quotients, or what is computed for one side, would become a branch.


def _div_no_nan(x: Any, y: Any) -> Any:
    number, divisor = _widened(x), _widened(y)
    number = _F(0) if divisor == _F(0) else number
    return _rounded(number / (_F(1) if divisor == _F(0) else divisor))


def _xdivy(x: Any, y: Any) -> Any:
    number, divisor = _widened(x), _widened(y)
    return _rounded(number / (_F(1) if number == _F(0) else divisor))


for _op, _each, _body in (
    (arithmetic.DIV_NO_NAN, _div_no_nan, arithmetic.div_no_nan),
    (arithmetic.XDIVY, _xdivy, arithmetic.quotient_or_zero),
):
    register_narrow(_op, _each, _body, DataType.DT_BFLOAT16, in_float=True)
