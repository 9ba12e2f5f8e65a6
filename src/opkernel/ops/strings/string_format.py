"""StringFormat: tensors as text in a template.

Source: TensorFlow core/ops/string_ops.cc, core/kernels/string_format_op.cc, core/framework/tensor.cc.
"""

from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from typing import Any

import numpy as np

from opkernel.device.string_tensors import gather_bytes, string_tensor
from opkernel.device.work_clock import in_time
from opkernel.errors import InvalidArgumentError
from opkernel.opdef import InferenceContext, register_op
from opkernel.opdef.text.escaping import utf8_safe_c_escape
from opkernel.opdef.text.tensor_summary import element_text, summarize_values
from opkernel.ops.int32_attr import int32_attr
from opkernel.ops.registration import register_kernel
from opkernel.types import DataType


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
    "StringFormat",
    inputs=["inputs: T"],
    outputs=["output: string"],
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


_WITHOUT_ROWS = frozenset(
    {
        DataType.DT_COMPLEX64,
        DataType.DT_COMPLEX128,
        DataType.DT_QINT32,
        DataType.DT_RESOURCE,
        DataType.DT_VARIANT,
    }
)


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
        yield from _joined((element_text(values.flat[i], dtype) for i in range(limit)), " ")
        yield ("..." if values.size > limit else "") + closing
    elif values.ndim == 0 or (dtype is DataType.DT_BOOL and limit == 0):
        one = _entry(values[()], dtype)
        yield from one if limit else (summarize_values(values, dtype, 0),)
    else:
        yield from _row_pieces(values, dtype, limit, 0)


def _joined(texts: Iterable[str], spacing: str) -> Iterator[str]:
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
            yield from _joined((element_text(values[i], dtype) for i in part), spacing)
    yield "]"


def _ends_of(count: int, ends: int) -> Iterator[range | None]:
    """The places that are printed, with None for those left out between them."""
    if count <= 2 * ends:
        yield range(count)
    elif ends:
        yield from (range(ends), None, range(count - ends, count))
    else:
        yield from (range(0), None)
