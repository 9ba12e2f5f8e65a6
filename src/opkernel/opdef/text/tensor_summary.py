"""A tensor's one-line text in summaries: `Tensor<type: float shape: [2,2] values: [1 2][3...]>`.

Source: TensorFlow core/framework/tensor.cc (DebugString, SummarizeValue with three values).
"""

from collections.abc import Iterator
from typing import Any

import numpy as np

from opkernel.errors import OpError
from opkernel.opdef.text.debug_string import short_debug_string
from opkernel.opdef.text.escaping import utf8_safe_c_escape
from opkernel.opdef.text.number_text import double_text, float_text
from opkernel.proto import TensorProto
from opkernel.types import (
    DataType,
    OpaqueVariant,
    PartialTensorShape,
    TensorShape,
    tensor_from_proto,
)

MAX_DECODED_BYTES = 32 * 1024 * 1024
"""Protos of tensors larger than this are decoded neither to print nor to compare them."""

_MAX_VALUES = 3
_UNPRINTED = frozenset({DataType.DT_COMPLEX64, DataType.DT_COMPLEX128, DataType.DT_QINT32})
_WITHOUT_ROWS = _UNPRINTED | {DataType.DT_RESOURCE, DataType.DT_VARIANT}


def tensor_byte_size(proto: TensorProto) -> int:
    """The bytes of the decoded tensor; -1 where its shape is unknown, invalid or too large."""
    try:
        count = PartialTensorShape.from_proto(proto.tensor_shape).num_elements()
    except OpError:
        return -1
    size = -1 if count is None else count * _element_size(proto.dtype)
    return size if size < 2**63 else -1


def _element_size(number: int) -> int:
    """The bytes of an element (DataTypeSize); 0 for a number that is no type."""
    try:
        return DataType(number).size
    except OpError:
        return 0


def summarize_tensor(proto: TensorProto) -> str:
    """The summary of the tensor; of the proto itself if that is huge, partial or invalid."""
    if not 0 <= tensor_byte_size(proto) <= MAX_DECODED_BYTES:
        return f"<TensorProto: {short_debug_string(proto)}>"
    try:
        dtype = DataType(proto.dtype)
        shape = TensorShape.from_proto(proto.tensor_shape)
        values = np.asarray(tensor_from_proto(proto))
    except OpError:
        return f"<Invalid TensorProto: {short_debug_string(proto)}>"
    return f"Tensor<type: {dtype.string} shape: {shape} values: {summarize_values(values, dtype)}>"


def summarize_values(
    values: "np.ndarray[Any, Any]", dtype: DataType, max_values: int = _MAX_VALUES
) -> str:
    """The first values (all of them if `max_values` is negative): `1 2 3`, `[1 2][3...`."""
    limit = values.size if max_values < 0 else min(max_values, values.size)
    if dtype is DataType.DT_BOOL and limit == 0:
        return ""  # not even dots
    printed = [element_text(values.flat[i], dtype) for i in range(limit)]
    has_rows = values.ndim > 0 and dtype not in _WITHOUT_ROWS
    text = _Rows(iter(printed), limit).text(values.shape) if has_rows else " ".join(printed)
    return text + "..." if values.size > limit else text


class _Rows:
    """Prints nested rows until the values run out; a row that is cut short ends in dots."""

    def __init__(self, printed: Iterator[str], limit: int) -> None:
        self._printed = printed
        self._left = limit

    def text(self, shape: tuple[int, ...], *, is_outermost: bool = True) -> str:
        if len(shape) > 1:
            return "".join(self._inner_rows(shape))
        count = min(self._left, shape[0])
        self._left -= count
        row = " ".join([next(self._printed) for _ in range(count)])
        return row if is_outermost or count == shape[0] else row + "..."

    def _inner_rows(self, shape: tuple[int, ...]) -> Iterator[str]:
        for _ in range(shape[0]):
            if self._left == 0:
                return
            yield "[" + self.text(shape[1:], is_outermost=False) + "]"


def element_text(value: Any, dtype: DataType) -> str:
    """The text of one value in a summary."""
    if dtype in _UNPRINTED:
        return "?"
    if dtype is DataType.DT_STRING:
        return utf8_safe_c_escape(value)
    if dtype is DataType.DT_RESOURCE:
        return f"<{value.summarize_value()}>"
    if dtype is DataType.DT_VARIANT:
        return "<[empty]>" if value == OpaqueVariant() else f"<{value}>"
    if dtype is DataType.DT_DOUBLE:
        return double_text(float(value))
    return float_text(float(value)) if dtype.is_floating else str(int(value))
