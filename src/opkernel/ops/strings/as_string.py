"""AsString: numbers as text, in the formats of C's printf.

Source: TensorFlow core/ops/string_ops.cc, core/kernels/as_string_op.cc.
"""

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from opkernel.device.string_tensors import map_strings
from opkernel.errors import InvalidArgumentError
from opkernel.kernel import check_allocation
from opkernel.opdef import register_op
from opkernel.opdef.common_shapes import unchanged_shape
from opkernel.ops.int32_attr import int32_attr
from opkernel.ops.registration import register_kernel
from opkernel.types import DataType

_TYPES = "realnumbertype, complex64, complex128, bool, variant, string"

AS_STRING = register_op(
    "AsString",
    inputs=["input: T"],
    outputs=["output: string"],
    attrs=[
        f"T: {{{_TYPES}}}",
        "precision: int = -1",
        "scientific: bool = false",
        "shortest: bool = false",
        "width: int = -1",
        "fill: string = ''",
    ],
    shape_fn=unchanged_shape,
    doc="Each element as text, with `precision` digits, filled up to `width` characters.",
)

_OF_NUMBER = 1 << 12
"""The work of making text of a number."""

_Format = Callable[[Any], bytes]
_FILLS = ("", " ", "+", "-", "0", "#")


@register_kernel(AS_STRING, factory=True)
def as_string(
    *, T: DataType, precision: int, scientific: bool, shortest: bool, width: int, fill: str
) -> Callable[[Any], Any]:
    int32_attr("precision", precision)
    int32_attr("width", width)
    _check_attrs(T, precision, scientific, shortest, fill)
    conversion = "e" if scientific else "g" if shortest else "f"
    text = _format(T, fill, width, precision, conversion)
    size = max(width, precision, 1)
    work = _OF_NUMBER + 8 * size

    def convert(tensor: Any) -> Any:
        check_allocation((size,), DataType.DT_UINT8)
        return map_strings(text, np.asarray(tensor), work)

    return convert


def _check_attrs(
    dtype: DataType, precision: int, scientific: bool, shortest: bool, fill: str
) -> None:
    """Raise InvalidArgumentError for attrs that do not fit the type or one another."""
    if dtype.is_floating or dtype.is_complex:
        if scientific and shortest:
            raise InvalidArgumentError("Cannot select both scientific and shortest notation")
    elif dtype is not DataType.DT_STRING:
        if scientific or shortest:
            raise InvalidArgumentError(
                f"scientific and shortest format not supported for datatype {dtype.string}"
            )
        if precision >= 0:
            raise InvalidArgumentError(f"precision not supported for datatype {dtype.string}")
    if len(fill) > 1:
        raise InvalidArgumentError("Fill string must be one or fewer characters")
    if fill not in _FILLS:
        raise InvalidArgumentError(f'Fill argument not supported: "{fill}"')


def _format(dtype: DataType, fill: str, width: int, precision: int, conversion: str) -> _Format:
    """The function that makes text of an element."""
    size = f"{width}" if width > 0 else ""
    digits = f".{precision}" if precision >= 0 else ""
    if dtype is DataType.DT_BOOL:
        return lambda value: b"true" if value else b"false"
    if dtype is DataType.DT_VARIANT:
        return lambda value: _variant_text(value).encode("utf-8", "surrogateescape")
    if dtype is DataType.DT_STRING:
        side = "-" if fill == "-" else ""
        form = f"%{side}{size}{digits}s".encode()
        return (lambda value: form % value) if size else bytes
    if dtype.is_integer:
        flag = "" if dtype.is_unsigned and fill in (" ", "+") else fill
        form = f"%{flag}{size}d".encode()
        return lambda value: form % int(value)
    part = _float_format(dtype, f"%{fill}{size}{digits}{conversion}", fill, max(width, 0))
    if dtype.is_complex:
        return lambda value: b"(%b,%b)" % (part(value.real), part(value.imag))
    return part


def _float_format(dtype: DataType, form: str, fill: str, width: int) -> _Format:
    """As C's printf, which Python differs from only for infinities and NaNs."""
    is_wide = dtype in (DataType.DT_DOUBLE, DataType.DT_COMPLEX128)
    least = float(np.finfo(np.float64 if is_wide else np.float32).tiny)
    plus = fill if fill in (" ", "+") else ""
    pad = bytes.ljust if fill == "-" else bytes.rjust

    def text(value: Any) -> bytes:
        number = float(value)
        if abs(number) < least:  # TensorFlow's threads take subnormal numbers for zeros
            number = math.copysign(0.0, number)
        if math.isfinite(number):
            return (form % number).encode()
        sign = "-" if math.copysign(1.0, number) < 0 else plus
        return pad(f"{sign}{abs(number)}".encode(), width)

    return text


def _variant_text(value: Any) -> str:
    name = getattr(value, "type_name", type(value).__name__)
    return f"Variant<type: {name} value: {value}>"
