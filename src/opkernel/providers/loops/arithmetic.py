"""Loops of Sign and of TruncateDiv; numbers below the normal format count as 0."""

from typing import Any

import numpy as np

from opkernel.ops.math import arithmetic
from opkernel.ops.math.elementwise import flush_subnormals, kernel_of_body
from opkernel.ops.math.float_functions import where
from opkernel.providers.loops import float_functions  # noqa: F401  (has loops choose between floats)
from opkernel.providers.loops.elementwise import register_elements
from opkernel.types import DataType

_F = np.float32
_ZERO = _F(0)
_TINY, _TINY_DOUBLE = np.finfo(np.float32).tiny, np.finfo(np.float64).tiny


def _sign(x: Any) -> Any:
    return where(x == x, _F(x >= _TINY) - _F(x <= -_TINY), x)


def _sign_of_double(x: Any) -> Any:
    sign = np.float64(x >= _TINY_DOUBLE) - np.float64(x <= -_TINY_DOUBLE)
    return sign if x == x else x


def _truncate_div(x: Any, y: Any) -> Any:
    number = x * _ZERO if abs(x) < _TINY else x
    divisor = y * _ZERO if abs(y) < _TINY else y
    return np.trunc(number / divisor)


def _sign_by_numpy(x: Any, *, xp: Any) -> Any:
    return xp.sign(flush_subnormals(x, xp))


for _op, _body, _each, _type in (
    (arithmetic.SIGN, _sign_by_numpy, _sign, DataType.DT_FLOAT),
    (arithmetic.SIGN, _sign_by_numpy, _sign_of_double, DataType.DT_DOUBLE),
    (arithmetic.TRUNCATE_DIV, arithmetic.truncate_div, _truncate_div, DataType.DT_FLOAT),
):
    register_elements(_op, _each, kernel_of_body(_body, _type, np), _type)
