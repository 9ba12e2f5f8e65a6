"""Numbers from text: StringToNumber; text from numbers, as C's printf makes it: AsString; from tensors: StringFormat.

Source: TensorFlow core/ops/parsing_ops.cc, core/kernels/string_to_number_op.cc, tsl/platform/numbers.cc,
core/ops/string_ops.cc, core/kernels/as_string_op.cc, string_format_op.cc, core/framework/tensor.cc.
"""

import math
import re
from collections.abc import Callable, Iterable, Iterator
from fractions import Fraction
from itertools import islice
from typing import Any

import numpy as np

from opkernel.device.string_tensors import gather_bytes, map_strings, string_tensor
from opkernel.device.work_clock import in_time
from opkernel.errors import InvalidArgumentError
from opkernel.kernel import check_allocation
from opkernel.opdef import InferenceContext, register_op
from opkernel.opdef.common_shapes import unchanged_shape
from opkernel.opdef.text.escaping import utf8_safe_c_escape
from opkernel.opdef.text.summary import element_text, summarize_values
from opkernel.ops.input_checks import int32_attr, require
from opkernel.ops.registration import COMPLEX, INDEX, WIDE_FLOATS, register_kernel
from opkernel.types import DataType

__all__ = ["numbers"]


STRING_TO_NUMBER = register_op(
    "StringToNumber(string_tensor: string) -> output: out_type",
    attrs=["out_type: {float, double, int32, int64, uint32, uint64} = DT_FLOAT"],
    shape_fn=unchanged_shape,
    doc="The number that each string says, with blanks around.",
)

_TYPES = (*WIDE_FLOATS, *INDEX, DataType.DT_UINT32, DataType.DT_UINT64)
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


_TEXT_TYPES = "realnumbertype, complex64, complex128, bool, variant, string"

AS_STRING = register_op(
    "AsString(input: T) -> output: string",
    attrs=[
        f"T: {{{_TEXT_TYPES}}}",
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

_SHORT, _LINES = 1 << 6, 1 << 10
"""Up to so many characters, texts of so many numbers are made together."""

_TINY = float(np.finfo(np.float32).tiny)
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

    form = _form(T, fill, width, precision, conversion)

    def convert(tensor: Any) -> Any:
        check_allocation((size,), DataType.DT_UINT8)
        values = np.asarray(tensor)
        if size > _SHORT or not (T.is_floating or T.is_integer):
            return map_strings(text, values, work)
        return string_tensor(values.shape, _by_lines(values.reshape(-1), form, text, work))

    return convert


def _by_lines(numbers: Any, form: str, text: _Format, work: int) -> Iterator[bytes]:
    """The texts of numbers, many of which one format makes; `text` makes those that Python prints otherwise than C."""
    for start in in_time(range(0, len(numbers), _LINES), _LINES * work):
        some = numbers[start : start + _LINES]
        if some.dtype.kind not in "iu":
            some = some.astype(np.float64)
        is_odd = ~np.isfinite(some) | (np.abs(some) < _TINY)
        texts = (f"{form}\n" * len(some) % tuple(some.tolist())).encode().splitlines()
        for i in np.flatnonzero(is_odd & (some != 0)):
            texts[i] = text(numbers[start + i])
        yield from texts


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
        require(precision < 0, f"precision not supported for datatype {dtype.string}")
    require(len(fill) <= 1, "Fill string must be one or fewer characters")
    require(fill in _FILLS, f'Fill argument not supported: "{fill}"')


def _format(dtype: DataType, fill: str, width: int, precision: int, conversion: str) -> _Format:
    """The function that makes text of an element."""
    if dtype is DataType.DT_BOOL:
        return lambda value: b"true" if value else b"false"
    if dtype is DataType.DT_VARIANT:
        return lambda value: _variant_text(value).encode("utf-8", "surrogateescape")
    form = _form(dtype, fill, width, precision, conversion)
    if dtype is DataType.DT_STRING:
        encoded = form.encode()
        return (lambda value: encoded % value) if width > 0 else bytes
    if dtype.is_integer:
        return lambda value: (form % int(value)).encode()
    part = _float_format(dtype, form, fill, max(width, 0))
    if dtype.is_complex:
        return lambda value: b"(%b,%b)" % (part(value.real), part(value.imag))
    return part


def _form(dtype: DataType, fill: str, width: int, precision: int, conversion: str) -> str:
    """The format of an element, or of each part of a complex one."""
    size = f"{width}" if width > 0 else ""
    digits = f".{precision}" if precision >= 0 else ""
    if dtype is DataType.DT_STRING:
        return f"%{'-' if fill == '-' else ''}{size}{digits}s"
    if dtype.is_integer:
        flag = "" if dtype.is_unsigned and fill in (" ", "+") else fill
        return f"%{flag}{size}d"
    return f"%{fill}{size}{digits}{conversion}"


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


def _pieces(template: str, placeholder: str, inputs: int) -> list[str]:
    """The template, split where the inputs go.

    Raises:
        InvalidArgumentError: it has another number of places.
    """
    pieces = template.split(placeholder) if placeholder else list(template) or [""]
    if len(pieces) != inputs + 1:
        raise InvalidArgumentError(
            "num placeholders in template and num inputs must match: "
            f"{len(pieces) - 1} vs. {inputs}"
        )
    return pieces


def string_format_shape(c: InferenceContext) -> None:
    """A scalar."""
    _pieces(c.get_attr("template"), c.get_attr("placeholder"), c.num_inputs())
    c.set_output(0, c.scalar())


STRING_FORMAT = register_op(
    "StringFormat(inputs: T) -> output: string",
    attrs=[
        "T: list(type) >= 0",
        "template: string = '%s'",
        "placeholder: string = '%s'",
        "summarize: int = 3",
    ],
    shape_fn=string_format_shape,
    doc="`template` with the inputs for its placeholders, `summarize` values at each end of a row.",
)


@register_kernel(STRING_FORMAT, factory=True)
def string_format(
    *, T: list[DataType], template: str, placeholder: str, summarize: int
) -> Callable[[list[Any]], Any]:
    int32_attr("summarize", summarize)
    first, *rest = _pieces(template, placeholder, len(T))

    def fill_in(inputs: list[Any]) -> Any:
        def pieces() -> Iterator[str]:
            yield first
            for tensor, dtype, piece in zip(inputs, T, rest, strict=True):
                yield from _text_pieces(np.asarray(tensor), dtype, summarize)
                yield piece

        encoded = (piece.encode("utf-8", "surrogateescape") for piece in in_time(pieces()))
        return string_tensor((), [gather_bytes(encoded, "a formatted string")])

    return fill_in


_WITHOUT_ROWS = (*COMPLEX, DataType.DT_QINT32, DataType.DT_RESOURCE, DataType.DT_VARIANT)


_AT_ONCE = 1 << 10
"""So many entries are made text at once."""
_BYTES_AT_ONCE = 1 << 16
"""So many bytes of a string are."""


def _text_pieces(values: Any, dtype: DataType, ends: int) -> Iterator[str]:
    """The text of a tensor, piece by piece; rows in brackets on lines of their own (SummarizeValue, print_v2).

    Args:
        values: The tensor.
        dtype: Its type.
        ends: How many entries of a dimension to print at each end of it; all if negative.
    """
    limit = values.size if ends < 0 else min(ends, values.size)
    if dtype in _WITHOUT_ROWS:
        opening, closing = "[]" if values.ndim else ("", "")
        yield opening
        yield from _spaced((element_text(values.flat[i], dtype) for i in range(limit)), " ")
        yield ("..." if values.size > limit else "") + closing
    elif values.ndim == 0 or (dtype is DataType.DT_BOOL and limit == 0):
        one = _entry(values[()], dtype)
        yield from one if limit else (summarize_values(values, dtype, 0),)
    else:
        yield from _row_pieces(values, dtype, limit, 0)


def _spaced(texts: Iterable[str], spacing: str) -> Iterator[str]:
    """Texts with spacing between them, many at a time."""
    rest, begin = iter(in_time(texts)), ""
    while some := [*islice(rest, _AT_ONCE)]:
        yield begin + spacing.join(some)
        begin = spacing


def _entry(value: Any, dtype: DataType) -> Iterator[str]:
    if dtype is not DataType.DT_STRING:
        yield element_text(value, dtype)
        return
    yield '"'
    for at in range(0, len(value), _BYTES_AT_ONCE):
        yield utf8_safe_c_escape(value[at : at + _BYTES_AT_ONCE])
    yield '"'


def _row_pieces(values: Any, dtype: DataType, ends: int, depth: int) -> Iterator[str]:
    inner, count = values.ndim - 1, len(values)
    spacing = "\n" * inner + " " * (depth + 1) if inner else " "
    yield "["
    for number, part in enumerate(_ends_of(count, ends)):
        yield spacing if number else ""
        if part is None:
            yield "..."
        elif inner or dtype is DataType.DT_STRING:
            for place in part:
                yield spacing if place > part.start else ""
                row = values[place]
                yield from _row_pieces(row, dtype, ends, depth + 1) if inner else _entry(row, dtype)
        else:
            yield from _spaced((element_text(values[i], dtype) for i in part), spacing)
    yield "]"


def _ends_of(count: int, ends: int) -> Iterator[range | None]:
    """The places that are printed, with None for those left out between them."""
    if count <= 2 * ends:
        yield range(count)
    elif ends:
        yield from (range(ends), None, range(count - ends, count))
    else:
        yield from (range(0), None)
