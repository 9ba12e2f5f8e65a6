"""Operations on the bits of integers.

Source: TensorFlow core/ops/bitwise_ops.cc, core/kernels/cwise_op_bitwise_and.cc and its siblings,
population_count_op.cc.
"""

from typing import Any

import numpy as np

from opkernel.ops.kernel_types import INTEGERS
from opkernel.ops.math.elementwise import (
    binary_op,
    register_body,
    register_ufunc,
    unary_op,
)
from opkernel.ops.registration import register_kernel

_SPEC = "int8, int16, int32, int64, uint8, uint16, uint32, uint64"

BITWISE_AND = binary_op("BitwiseAnd", _SPEC, "The bits set in `x` and in `y`.", is_commutative=True)
BITWISE_OR = binary_op("BitwiseOr", _SPEC, "The bits set in `x` or in `y`.", is_commutative=True)
BITWISE_XOR = binary_op(
    "BitwiseXor", _SPEC, "The bits set in just one of `x` and `y`.", is_commutative=True
)
LEFT_SHIFT = binary_op(
    "LeftShift",
    _SPEC,
    "The bits of `x` moved up by `y`, which is taken for 0 if negative and for the highest bit's "
    "place if beyond.",
)
RIGHT_SHIFT = binary_op(
    "RightShift",
    _SPEC,
    "The bits of `x` moved down by `y`, keeping the sign; `y` is bounded as for LeftShift.",
)
INVERT = unary_op("Invert", _SPEC, "The bits that are not set in `x`.", traits="cheap involution")
POPULATION_COUNT = unary_op(
    "PopulationCount", _SPEC, "The number of bits set in `x`.", output="y: uint8"
)

register_ufunc(BITWISE_AND, np.bitwise_and, INTEGERS)
register_ufunc(BITWISE_OR, np.bitwise_or, INTEGERS)
register_ufunc(BITWISE_XOR, np.bitwise_xor, INTEGERS)
register_ufunc(INVERT, np.invert, INTEGERS)


def _bounded(places: Any, xp: Any) -> Any:
    return xp.clip(places, 0, places.dtype.itemsize * 8 - 1)


def left_shift(x: Any, y: Any, *, xp: Any) -> Any:
    return x << _bounded(y, xp)


def right_shift(x: Any, y: Any, *, xp: Any) -> Any:
    return x >> _bounded(y, xp)


register_body(LEFT_SHIFT, left_shift, INTEGERS)
register_body(RIGHT_SHIFT, right_shift, INTEGERS)

_BITS_OF_BYTE = np.array([byte.bit_count() for byte in range(256)], np.uint8)


@register_kernel(POPULATION_COUNT, types={"T": INTEGERS}, kind="elementwise")
def population_count(x: Any) -> Any:
    octets = np.ascontiguousarray(np.asarray(x)[..., np.newaxis]).view(np.uint8)
    return _BITS_OF_BYTE[octets].sum(axis=-1, dtype=np.uint8)
