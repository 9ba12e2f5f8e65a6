"""StringFormat: tensors as text in a template.

Source: TensorFlow core/ops/string_ops.cc, core/kernels/string_format_op.cc, core/framework/tensor.cc.
"""

from collections.abc import Callable
from typing import Any

import numpy as np

from opkernel.errors import InvalidArgumentError
from opkernel.opdef import InferenceContext, register_op
from opkernel.opdef.text.tensor_summary import element_text, summarize_values
from opkernel.ops.int32_attr import int32_attr
from opkernel.ops.registration import register_kernel
from opkernel.ops.strings.elements import strings_like
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


@register_kernel(STRING_FORMAT, device="CPU", factory=True)
def string_format(
    *, T: list[DataType], template: str, placeholder: str, summarize: int
) -> Callable[[list[Any]], Any]:
    int32_attr("summarize", summarize)
    first, *rest = _pieces(template, placeholder, len(T))

    def fill_in(inputs: list[Any]) -> Any:
        parts = [first]
        for tensor, dtype, piece in zip(inputs, T, rest, strict=True):
            parts += tensor_text(np.asarray(tensor), dtype, summarize), piece
        return strings_like((), ["".join(parts).encode("utf-8", "surrogateescape")])

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


def tensor_text(values: Any, dtype: DataType, ends: int) -> str:
    """A tensor as text, rows in brackets on lines of their own (SummarizeValue, print_v2).

    Args:
        values: The tensor.
        dtype: Its type.
        ends: How many entries of a dimension to print at each end of it; all if negative.
    """
    limit = values.size if ends < 0 else min(ends, values.size)
    if dtype in _WITHOUT_ROWS:
        text = summarize_values(values, dtype, limit)
        return f"[{text}]" if values.ndim else text
    if values.ndim == 0 or (dtype is DataType.DT_BOOL and limit == 0):
        return _entry_text(values[()], dtype) if limit else summarize_values(values, dtype, 0)
    return _rows_text(values, dtype, limit, 0)


def _entry_text(value: Any, dtype: DataType) -> str:
    text = element_text(value, dtype)
    return f'"{text}"' if dtype is DataType.DT_STRING else text


def _rows_text(values: Any, dtype: DataType, ends: int, depth: int) -> str:
    inner = values.ndim - 1
    spacing = "\n" * inner + " " * (depth + 1) if inner else " "
    count = len(values)
    places = [*range(min(ends, count)), *range(max(ends, count - ends), count)]
    texts = [
        _rows_text(values[i], dtype, ends, depth + 1) if inner else _entry_text(values[i], dtype)
        for i in places
    ]
    if count > 2 * ends:
        texts.insert(ends, "...")
        if not ends:
            texts.insert(0, "")
    return f"[{spacing.join(texts)}]"
