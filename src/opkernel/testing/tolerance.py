"""When two tensors count as equal: the tolerance of each type, and assertions that use it."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from opkernel.testing.op_runs import OpResult
from opkernel.types import Array, DataType, as_dtype


class Tolerance(NamedTuple):
    """How far a value may be from the one that is expected: `atol + rtol * abs(expected)`."""

    rtol: float = 0.0
    atol: float = 0.0


TOLERANCES = {
    DataType.DT_HALF: Tolerance(5e-3, 1e-3),
    DataType.DT_BFLOAT16: Tolerance(4e-2, 1e-2),
    DataType.DT_FLOAT: Tolerance(1e-5, 1e-6),
    DataType.DT_DOUBLE: Tolerance(1e-10, 1e-12),
    DataType.DT_COMPLEX64: Tolerance(1e-5, 1e-6),
    DataType.DT_COMPLEX128: Tolerance(1e-10, 1e-12),
    DataType.DT_FLOAT8_E5M2: Tolerance(0.5, 0.1),
    DataType.DT_FLOAT8_E5M2FNUZ: Tolerance(0.5, 0.1),
    DataType.DT_FLOAT8_E4M3FN: Tolerance(0.25, 0.05),
    DataType.DT_FLOAT8_E4M3FNUZ: Tolerance(0.25, 0.05),
    DataType.DT_FLOAT8_E4M3B11FNUZ: Tolerance(0.25, 0.05),
    DataType.DT_FLOAT4_E2M1FN: Tolerance(0.5, 0.5),
}
"""For each type that is rounded; tensors of other types are to be the same."""

_EXACT = Tolerance()


def assert_close(actual: Any, expected: Any, *, tolerance: Tolerance | None = None) -> None:
    """Assert that a tensor has the type, the shape and, within a tolerance, the values expected.

    Args:
        actual: The tensor.
        expected: An array, whose type counts, or numbers or strings, which take the type of `actual`.
        tolerance: How much values may differ; as `TOLERANCES` says for the type if None.
    """
    what = difference(actual, expected, tolerance=tolerance)
    if what is not None:
        raise AssertionError(what)


def assert_outputs(
    result: OpResult | Sequence[Any], *expected: Any, tolerance: Tolerance | None = None
) -> None:
    """Assert that a computation gave the outputs expected, flat, each as `assert_close` says."""
    outputs = result.outputs if isinstance(result, OpResult) else result
    if len(outputs) != len(expected):
        raise AssertionError(f"{len(outputs)} outputs, where {len(expected)} are expected")
    for index, (actual, wanted) in enumerate(zip(outputs, expected, strict=True)):
        what = difference(actual, wanted, tolerance=tolerance)
        if what is not None:
            raise AssertionError(f"output {index}: {what}")


def difference(
    actual: Any, expected: Any, *, tolerance: Tolerance | None = None, scale: float = 0.0
) -> str | None:
    """How a tensor differs from the expected one; None where it does not.

    Args:
        actual: The tensor.
        expected: As in `assert_close`.
        tolerance: As in `assert_close`.
        scale: The size of the values that the expected ones were computed from: differences of a
            relative tolerance of it count as rounding.
    """
    have = np.asarray(actual)
    want = _expected(expected, have.dtype)
    if have.dtype != want.dtype:
        return f"its type is {have.dtype}, where {want.dtype} is expected"
    if have.shape != want.shape:
        return f"its shape is {list(have.shape)}, where {list(want.shape)} is expected"
    equal = _equal(have, want, tolerance, scale)
    if np.all(equal):
        return None
    wrong = np.argwhere(~equal)
    place = tuple(wrong[0].tolist())
    return (
        f"{len(wrong)} of {have.size} elements differ, the first at {list(place)}: "
        f"{have[place]!s} where {want[place]!s} is expected"
    )


def _expected(expected: Any, kind: np.dtype[Any]) -> Array:
    if isinstance(expected, np.ndarray | np.generic):
        return np.asarray(expected)
    if kind.hasobject:
        source = np.asarray(expected, object)
        encoded = [v.encode() if isinstance(v, str) else v for v in source.reshape(-1).tolist()]
        array = np.empty(len(encoded), object)
        array[:] = encoded
        return array.reshape(source.shape)
    return np.asarray(expected, kind)


def _equal(
    have: Array,
    want: Array,
    tolerance: Tolerance | None,
    scale: float,
) -> Array:
    """Where elements are equal, NaN and NaN among them."""
    if have.dtype == object:
        pairs = zip(have.reshape(-1).tolist(), want.reshape(-1).tolist(), strict=True)
        return np.array([a == b for a, b in pairs], bool).reshape(have.shape)
    dtype = as_dtype(have.dtype)
    if not (dtype.is_floating or dtype.is_complex):
        return np.asarray(have == want)
    wide = np.complex128 if dtype.is_complex else np.float64
    rtol, atol = TOLERANCES.get(dtype, _EXACT) if tolerance is None else tolerance
    with np.errstate(all="ignore"):
        a, b = have.astype(wide), want.astype(wide)
        if dtype.is_complex:
            size = max(scale, largest_finite(b))
            near = [_close(part(a), part(b), rtol, atol, size) for part in (np.real, np.imag)]
            return np.asarray(near[0] & near[1])
        return _close(a, b, rtol, atol, scale)


def _close(a: Any, b: Any, rtol: float, atol: float, scale: float) -> Array:
    is_near = np.abs(a - b) <= atol + rtol * np.maximum(np.abs(b), scale)
    is_same = (a == b) | (np.isnan(a) & np.isnan(b))
    return np.asarray(is_same | (is_near & np.isfinite(b)))


def largest_finite(values: Any) -> float:
    """The largest finite absolute value."""
    sizes = np.abs(values)
    return float(np.max(sizes, initial=0.0, where=np.isfinite(sizes)))
