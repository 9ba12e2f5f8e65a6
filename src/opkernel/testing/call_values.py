"""The values of a call: inputs in several forms, and how outputs of the same call differ."""

from typing import Any

import numpy as np

from opkernel.kernel.context.tensor_ref import TensorRef
from opkernel.testing.op_call import OpCall
from opkernel.testing.tolerance import Tolerance, difference

POISONS = 0xCB, 0x34
"""The bytes that memory is filled with for the first computation of a call, and for the second."""


def read_only(value: Any) -> Any:
    """A read-only copy."""
    array = np.array(value, copy=True)
    array.setflags(write=False)
    return array


def spread(value: Any) -> Any:
    """The same values with gaps between them; of rank 0, a NumPy scalar."""
    array = np.asarray(value)
    if array.ndim == 0 and not array.dtype.hasobject:
        return array[()]
    wide = np.empty([2 * size for size in array.shape], array.dtype)
    spread = wide[(slice(None, None, 2),) * array.ndim + (...,)]
    spread[...] = array
    spread.setflags(write=False)
    return spread


def tensor_of(value: Any) -> Any:
    """The tensor that an output is, or refers to."""
    return value.tensor if isinstance(value, TensorRef) else value


def is_opaque(value: Any) -> bool:
    """Whether a value holds elements that cannot be compared."""
    if isinstance(value, TensorRef):
        return True
    return value.dtype.hasobject and not all(isinstance(v, bytes) for v in value.ravel().tolist())


def first_unwritten(first: Any, second: Any) -> list[int] | None:
    """The first place where each of two outputs holds the one of `POISONS` of its computation."""
    if first.dtype.hasobject:
        return None
    bits = [
        np.ascontiguousarray(v).reshape(-1).view(np.uint8).reshape(np.size(v), -1)
        for v in (first, second)
    ]
    is_poison = [
        np.all(content == (poison & 1 if first.dtype == np.bool_ else poison), axis=-1)
        for content, poison in zip(bits, POISONS, strict=True)
    ]
    places = np.argwhere((is_poison[0] & is_poison[1]).reshape(np.shape(first)))
    return places[0].tolist() if len(places) else None


def difference_in(
    call: OpCall, actual: Any, expected: Any, tolerance: Tolerance | None
) -> str | None:
    """How results of the same call differ beyond rounding."""
    if actual is None or expected is None or is_opaque(actual):
        return None
    scale = max((_largest(value) for value in (*call.inputs, expected)), default=0.0)
    return difference(actual, expected, tolerance=tolerance, scale=scale)


def _largest(value: Any) -> float:
    """The largest finite absolute value of a tensor of floats; 0 for other tensors."""
    array = np.asarray(value)
    if not _is_rounded(array):
        return 0.0
    with np.errstate(invalid="ignore"):  # signalling NaN
        sizes = np.abs(array.astype(np.complex128 if array.dtype.kind == "c" else np.float64))
    return float(np.max(sizes, initial=0.0, where=np.isfinite(sizes)))


def _is_rounded(array: np.ndarray[Any, Any]) -> bool:
    return array.dtype.kind in "fcV" and not array.dtype.hasobject


def has_extremes(call: OpCall) -> bool:
    """Whether floats are so large or small that the order of operations decides the result."""
    return any(
        (dtype.is_floating or dtype.is_complex) and _is_extreme(value)
        for value, dtype in zip(call.inputs, call.input_types, strict=True)
    )


def _is_extreme(value: Any) -> bool:
    wide = np.abs(np.asarray(value).astype(np.complex128))
    known = wide[np.isfinite(wide) & (wide != 0)]
    return bool(known.size) and (known.max() > 1e4 or known.min() < 1e-4)
