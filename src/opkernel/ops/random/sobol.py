"""SobolSample: points that fill a cube evenly.

The direction numbers of Joe and Kuo come with SciPy; those of a few coordinates are here.

Source: TensorFlow core/ops/math_ops.cc, core/kernels/sobol_op.cc; Joe and Kuo, Notes on generating Sobol
sequences (2008).
"""

import functools
import os
from typing import Any

import numpy as np

from opkernel.errors import InvalidArgumentError
from opkernel.kernel import allocate, shard
from opkernel.libraries import library
from opkernel.opdef import InferenceContext, register_op
from opkernel.opdef.common_shapes.rules import check_scalars
from opkernel.ops.input_checks import require, require_scalar
from opkernel.ops.registration import WIDE_FLOATS, register_kernel
from opkernel.types import Array, DataType

_DIGITS = 31
_MOST_COORDINATES = 21200
_INT32_MAX = 2**31 - 1
_FIRST = [
    (1, [1]), (3, [1]), (7, [1, 3]), (11, [1, 3, 1]), (13, [1, 1, 1]), (19, [1, 1, 3, 3]),
    (25, [1, 3, 5, 13]), (37, [1, 1, 5, 5, 17]),
]  # fmt: skip
"""The primitive polynomials of the first coordinates, as bits, and the numbers that they continue."""

_TILE = 1 << 15
"""Numbers."""


def sobol_sample_shape(c: InferenceContext) -> None:
    """As many points as input 1 holds, of as many coordinates as input 0 holds."""
    check_scalars(c, 0, 1, 2)
    coordinates, points = (
        None if tensor is None else c.get_scalar_from_tensor(tensor)
        for tensor in (c.input_tensor(0), c.input_tensor(1))
    )
    c.set_output(0, c.matrix(points, coordinates))


register_op(
    "SobolSample(dim: int32, num_results: int32, skip: int32) -> samples: dtype",
    attrs=["dtype: {float, double} = DT_FLOAT"],
    shape_fn=sobol_sample_shape,
    traits="extra=scipy extra_when=inputs",
    doc="Points of the Sobol sequence of `dim` coordinates, `skip` of them left out first.",
)


@register_kernel("SobolSample", types={"dtype": WIDE_FLOATS})
def sobol_sample(dim: Any, num_results: Any, skip: Any, *, dtype: DataType) -> Any:
    coordinates, count, skipped = _checked(dim, num_results, skip)
    output = allocate((count, coordinates), dtype)
    directions = _directions(coordinates)
    digits = min(count, max(_TILE // coordinates, 1)).bit_length() - 1
    first, last = skipped + 1, skipped + count
    low = _first_points(digits, directions)

    def fill(block: int) -> None:
        start = block << digits
        begin, end = max(start, first), min(start + len(low), last + 1)
        part = output[begin - first : end - first]
        part[...] = low[begin - start : end - start] ^ _point(start, directions)
        part *= dtype.numpy_dtype.type(2.0**-_DIGITS)

    shard(fill, range(first >> digits, (last >> digits) + 1))
    return output


def _checked(dim: Any, num_results: Any, skip: Any) -> tuple[int, int, int]:
    """The three numbers.

    Raises:
        InvalidArgumentError: one is no scalar, or out of range.
    """
    for name, one in (("dim", dim), ("num_results", num_results), ("skip", skip)):
        require_scalar(one, f"{name} must be a scalar")
    coordinates, count, skipped = int(dim), int(num_results), int(skip)
    require(coordinates >= 1, "dim must be at least one")
    if coordinates > _MOST_COORDINATES:
        raise InvalidArgumentError(f"dim must be at most {_MOST_COORDINATES}")
    require(count >= 1, "num_results must be at least one")
    require(skipped >= 0, "skip must be non-negative")
    if count >= _INT32_MAX - skipped:
        raise InvalidArgumentError(f"num_results+skip must be less than {_INT32_MAX}")
    return coordinates, count, skipped


def _point(number: int, directions: Array) -> Array:
    """The point of a number, as integers: those of the bits of its Gray code together."""
    gray = number ^ number >> 1
    chosen = [digit for digit in range(gray.bit_length()) if gray >> digit & 1]
    point: Array = np.bitwise_xor.reduce(directions[chosen], axis=0)
    return point


def _first_points(digits: int, directions: Array) -> Array:
    """The points of the numbers of so many binary digits; those of others differ from them by one point."""
    points = np.zeros((1 << digits, directions.shape[1]), directions.dtype)
    for digit in range(digits):
        size = 1 << digit
        points[size : 2 * size] = points[:size] ^ _point(size, directions)
    return points


@functools.cache
def _directions(coordinates: int) -> Array:
    """For each binary digit of a number where it moves each coordinate: uint32 [digits, coordinates]."""
    known = _FIRST if coordinates <= len(_FIRST) else _of_scipy()
    columns = [_column(*one) for one in known[:coordinates]]
    shifts = np.arange(_DIGITS - 1, -1, -1)[:, None]
    return (np.array(columns, np.int64).T << shifts).astype(np.uint32)


def _of_scipy() -> list[tuple[int, list[int]]]:
    """As `_FIRST`, of all coordinates."""
    scipy = library("scipy", f"SobolSample of more than {len(_FIRST)} coordinates")
    path = os.path.join(scipy.__path__[0], "stats", "_sobol_direction_numbers.npz")
    with np.load(path) as file:
        return [*zip(file["poly"].tolist(), file["vinit"].tolist(), strict=True)]


def _column(polynomial: int, start: list[int]) -> list[int]:
    """The odd numbers of one coordinate, which its primitive polynomial continues."""
    degree = polynomial.bit_length() - 1
    numbers = start[:degree] or [1] * _DIGITS
    for k in range(len(numbers), _DIGITS):
        number = numbers[k - degree]
        for i in range(1, degree + 1):
            if polynomial >> degree - i & 1:
                number ^= numbers[k - i] << i
        numbers.append(number)
    return numbers[:_DIGITS]
