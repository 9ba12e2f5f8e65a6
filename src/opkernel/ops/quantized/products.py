"""QuantizedMatMul and QuantizedConv2D: products of 8 bits, summed in 32.

Sums that overflow wrap around.

Source: TensorFlow core/ops/math_ops.cc, nn_ops.cc, core/kernels/quantized_matmul_op.cc,
quantized_conv_ops.cc.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np

from opkernel.errors import InvalidArgumentError
from opkernel.kernel import KernelContract, check_allocation
from opkernel.opdef import register_op
from opkernel.opdef.common_shapes import matmul_shape, quantized_conv2d_shape
from opkernel.opdef.common_shapes.quantized import shape_with_range
from opkernel.ops.math.matmul import check_matrices
from opkernel.ops.quantized.arithmetic import without_offset
from opkernel.ops.quantized.conversion import (
    Array,
    Range,
    range_of_product,
    scalar_range,
    unclamped_level_of,
)
from opkernel.ops.quantized.declarations import (
    QUANTIZED_ATTR,
    NoOutputs,
    declare_convolution,
    range_args,
)
from opkernel.ops.registration import register_kernel
from opkernel.types import DataType

_QUINT8, _QINT32 = DataType.DT_QUINT8, DataType.DT_QINT32

QUANTIZED_MATMUL = register_op(
    "QuantizedMatMul",
    inputs=["a: T1", "b: T2", *range_args("a", "b")],
    outputs=["out: Toutput", *range_args("out")],
    attrs=[
        f"T1: {QUANTIZED_ATTR}",
        f"T2: {QUANTIZED_ATTR}",
        f"Toutput: {QUANTIZED_ATTR} = DT_QINT32",
        "transpose_a: bool = false",
        "transpose_b: bool = false",
        f"Tactivation: {QUANTIZED_ATTR} = DT_QUINT8",
    ],
    shape_fn=partial(shape_with_range, plain=matmul_shape, scalars=(2, 3, 4, 5)),
    doc="The product of two matrices of integers, and the range that it stands in.",
)
QUANTIZED_CONV2D = declare_convolution(
    "QuantizedConv2D",
    quantized_conv2d_shape,
    "The convolution of images of integers with filters, and the range that it stands in.",
)


@register_kernel(
    QUANTIZED_MATMUL,
    device="CPU",
    types={"T1": (_QUINT8,), "T2": (_QUINT8,), "Toutput": (_QINT32,)},
)
def quantized_matmul(
    a: Any,
    b: Any,
    min_a: Any,
    max_a: Any,
    min_b: Any,
    max_b: Any,
    *,
    transpose_a: bool,
    transpose_b: bool,
) -> Any:
    a_range = scalar_range("min_a", min_a, "max_a", max_a)
    b_range = scalar_range("min_b", min_b, "max_b", max_b)
    a_range.check_width("a")
    b_range.check_width("b")
    check_matrices(a, b, transpose_a, transpose_b)
    a, b = a.T if transpose_a else a, b.T if transpose_b else b
    check_allocation((a.shape[0], b.shape[1]), _QINT32)
    with np.errstate(all="ignore"):
        product = without_offset(a, a_range) @ without_offset(b, b_range)
        limits = range_of_product(a_range, a.dtype, b_range, b.dtype)
    return product, limits.low, limits.high


def _check_conv_attrs(strides: Sequence[int], dilations: Sequence[int]) -> None:
    for name, values in (("strides", strides), ("dilations", dilations)):
        if len(values) != 4:
            raise InvalidArgumentError(
                f"Sliding window {name} field must specify 4 dimensions, got {list(values)}"
            )
    if strides[1] != strides[2]:
        raise InvalidArgumentError(
            "Current implementation only supports equal length strides in the row and column "
            f"dimensions, got {list(strides)}"
        )
    if strides[0] != 1 or strides[3] != 1:
        raise InvalidArgumentError(
            "Current implementation does not yet support strides in the batch and depth "
            f"dimensions, got {list(strides)}"
        )
    if strides[1] <= 0:
        raise InvalidArgumentError(f"Stride must be > 0, but got {strides[1]}")
    if any(dilation != 1 for dilation in dilations):
        raise InvalidArgumentError(
            f"Current implementation only supports dilations of 1, got {list(dilations)}"
        )


def _check_images(x: Array, filters: Array) -> None:
    for name, tensor in (("input", x), ("filter", filters)):
        if tensor.ndim != 4:
            raise InvalidArgumentError(f"{name} must be rank 4 but is rank {tensor.ndim}")
    if x.shape[3] != filters.shape[2]:
        raise InvalidArgumentError(
            f"input and filter must have the same depth: {x.shape[3]} vs {filters.shape[2]}"
        )


def _output_size(size: int, window: int, stride: int, padding: str) -> int:
    count = -(-size // stride) if padding == "SAME" else (size - window) // stride + 1
    if count <= 0:
        raise InvalidArgumentError(
            f"The output must not be empty, got images of size {size} for a filter of size {window}"
        )
    return count


def _first_place(size: int, window: int, stride: int, count: int) -> int:
    """Where the first window begins; where windows leave pixels over, these are on both sides."""
    over = (count - 1) * stride + window - size
    return -(over // 2) if over >= 0 else -over // 2


def _zero_in_border(given: Range, dtype: np.dtype[Any]) -> int:
    """What pixels beyond the border are, without offset; TensorFlow writes the offset in 8 bits there."""
    offset = int(np.asarray(unclamped_level_of(0.0, given, dtype)).astype(np.int32))
    return 0 if offset < 0 else offset % 256 - offset


def _padded(x: Array, starts: Sequence[int], ends: Sequence[int], value: int) -> Array:
    """The part of images from `starts` to `ends`, which may lie beyond the border."""
    before = [max(0, -start) for start in starts]
    after = [max(0, end - size) for end, size in zip(ends, x.shape[1:3], strict=True)]
    shape = [
        x.shape[0],
        *(end - start for start, end in zip(starts, ends, strict=True)),
        x.shape[3],
    ]
    check_allocation(shape, _QINT32)
    part = x[:, max(0, starts[0]) : max(0, ends[0]), max(0, starts[1]) : max(0, ends[1])]
    border = [(0, 0), *zip(before, after, strict=True), (0, 0)]
    return np.pad(part, border, constant_values=value)


def _convolution(x: Array, filters: Array, stride: int, padding: str, border: int) -> Array:
    windows = filters.shape[:2]
    counts = [
        _output_size(size, window, stride, padding)
        for size, window in zip(x.shape[1:3], windows, strict=True)
    ]
    shape = (x.shape[0], *counts, filters.shape[3])
    check_allocation(shape, _QINT32)
    if not all(shape):
        raise InvalidArgumentError(f"The output must not be empty, got shape {list(shape)}")
    starts = [
        _first_place(size, window, stride, count)
        for size, window, count in zip(x.shape[1:3], windows, counts, strict=True)
    ]
    ends = [
        start + (count - 1) * stride + window
        for start, count, window in zip(starts, counts, windows, strict=True)
    ]
    padded = _padded(x, starts, ends, border)
    sums = np.zeros(shape, np.int32)
    for row, column in np.ndindex(*windows):
        rows = slice(row, row + (counts[0] - 1) * stride + 1, stride)
        columns = slice(column, column + (counts[1] - 1) * stride + 1, stride)
        sums += padded[:, rows, columns] @ filters[row, column]
    return sums


@register_kernel(
    QUANTIZED_CONV2D,
    device="CPU",
    types={"Tinput": (_QUINT8,), "Tfilter": (_QUINT8,), "out_type": (_QINT32,)},
    factory=True,
)
def quantized_conv2d(
    *, strides: list[int], padding: str, dilations: list[int]
) -> Callable[[Any, Any, Any, Any, Any, Any], Any]:
    _check_conv_attrs(strides, dilations)

    def kernel(
        x: Any, filters: Any, min_input: Any, max_input: Any, min_filter: Any, max_filter: Any
    ) -> Any:
        _check_images(x, filters)
        x_range = scalar_range("min_input", min_input, "max_input", max_input)
        filter_range = scalar_range("min_filter", min_filter, "max_filter", max_filter)
        with np.errstate(all="ignore"):
            sums = _convolution(
                without_offset(x, x_range),
                without_offset(filters, filter_range),
                strides[1],
                padding,
                _zero_in_border(x_range, x.dtype),
            )
            limits = range_of_product(x_range, x.dtype, filter_range, filters.dtype)
        return sums, limits.low, limits.high

    return kernel


register_kernel(
    QUANTIZED_CONV2D,
    device="CPU",
    types={"Tinput": (_QUINT8,), "Tfilter": (DataType.DT_QINT8,), "out_type": (_QINT32,)},
    contract=KernelContract(),
)(NoOutputs)
