"""StringToNumber: numbers from text.

Source: TensorFlow core/ops/parsing_ops.cc, core/kernels/string_to_number_op.cc, tsl/platform/numbers.cc.
"""

import re
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np

from opkernel.device.work_clock import in_time
from opkernel.errors import InvalidArgumentError
from opkernel.opdef import register_op
from opkernel.opdef.common_shapes import unchanged_shape
from opkernel.ops.registration import register_kernel
from opkernel.types import DataType

__all__ = ["numbers"]

STRING_TO_NUMBER = register_op(
    "StringToNumber",
    inputs=["string_tensor: string"],
    outputs=["output: out_type"],
    attrs=["out_type: {float, double, int32, int64, uint32, uint64} = DT_FLOAT"],
    shape_fn=unchanged_shape,
    doc="The number that each string says, with blanks around.",
)

_TYPES = (
    *(DataType.DT_FLOAT, DataType.DT_DOUBLE, DataType.DT_INT32, DataType.DT_INT64),
    *(DataType.DT_UINT32, DataType.DT_UINT64),
)
_NAN = re.compile(rb"\s*[+-]?nan(?:\([A-Za-z0-9_]*\))?\s*", re.IGNORECASE)
_HEX = re.compile(
    rb"\s*[+-]?0x(?:[0-9a-f]+\.?[0-9a-f]*|\.[0-9a-f]+)(?:p[+-]?[0-9]+)?\s*", re.IGNORECASE
)


@register_kernel(STRING_TO_NUMBER, types={"out_type": _TYPES})
def string_to_number(string_tensor: Any, *, out_type: DataType) -> Any:
    texts = string_tensor.reshape(-1).tolist()
    try:
        found = numbers(texts, out_type)
    except ValueError as error:
        raise InvalidArgumentError(
            f"StringToNumberOp could not correctly convert string: {error}"
        ) from None
    return found.reshape(string_tensor.shape)


def numbers(texts: list[bytes], dtype: DataType) -> Any:
    """The numbers that texts say, as a vector.

    Raises:
        ValueError: a text says none that the type holds; the error's text is that.
    """
    read = _float_of if dtype.is_floating else _integer_reader(dtype)
    plain: Callable[[bytes], Any] = float if dtype.is_floating else int
    try:
        # Python's numbers may have underscores, where TensorFlow's have none.
        values = None if b"_" in b"".join(texts) else [*map(plain, in_time(texts))]
    except ValueError:
        values = None
    if values is None:
        values = [read(text) for text in in_time(texts)]
    if dtype is DataType.DT_FLOAT:
        return _rounded_once(texts, np.array(values, np.float64))
    try:
        found = np.array(values, dtype.numpy_dtype)
    except OverflowError:
        found = np.array([read(text) for text in texts], dtype.numpy_dtype)
    if dtype.is_unsigned and b"-" in b"".join(texts):
        raise ValueError(next(_shown(text) for text in texts if b"-" in text))
    return found


def _shown(text: bytes) -> str:
    return text.decode(errors="backslashreplace")


def _float_of(text: bytes) -> float:
    try:
        if b"_" not in text:
            return float(text)
    except ValueError:
        pass
    if _NAN.fullmatch(text):
        return float("nan")
    if _HEX.fullmatch(text):
        try:
            return float.fromhex(text.decode())
        except OverflowError:
            return float("-inf" if b"-" in text.partition(b"0")[0] else "inf")
    raise ValueError(_shown(text))


def _integer_reader(dtype: DataType) -> Callable[[bytes], int]:
    limits = np.iinfo(dtype.numpy_dtype)

    def read(text: bytes) -> int:
        try:
            value = None if b"_" in text else int(text)
        except ValueError:
            value = None
        if value is None or not limits.min <= value <= limits.max:
            raise ValueError(_shown(text))
        return value

    return read


def _rounded_once(texts: list[bytes], values: Any) -> Any:
    """The nearest floats to the texts: a double half way between two floats does not tell which."""
    with np.errstate(over="ignore", invalid="ignore"):
        rounded = values.astype(np.float32)
        toward = np.where(rounded > values, -np.inf, np.inf).astype(np.float32)
        other = np.nextafter(rounded, toward)
        distance = values - rounded.astype(np.float64)
        is_tie = (distance != 0) & (distance == other.astype(np.float64) - values)
    for i in np.flatnonzero(is_tie & np.isfinite(values)):
        exact = _exact(texts[i])
        pair = sorted((rounded[i], other[i]))
        if exact != Fraction(values[i]):
            rounded[i] = pair[exact > Fraction(values[i])]
    return rounded


def _exact(text: bytes) -> Fraction:
    if _HEX.fullmatch(text):
        return Fraction(float.fromhex(text.decode()))
    return Fraction(text.strip().decode())
