"""QuantizedMatMul and QuantizedConv2D, sums in 32 bits; and ops that TensorFlow computes with oneDNN only.

Sums that overflow wrap around. TensorFlow's own CPU kernels of the ops of oneDNN set no output. With oneDNN a pass puts
other ops in their place; without it, which is the reference here, a graph fails with INTERNAL, and a call gives tensors
of shape [0].

Source: TensorFlow core/ops/math_ops.cc, nn_ops.cc, core/kernels/quantized_matmul_op.cc, quantized_conv_ops.cc,
core/kernels/no_op.h, core/ops/nn_ops.cc, math_ops.cc, array_ops.cc, core/kernels/mkl/mkl_quantized_conv_ops.h,
mkl_conv_ops.cc, mkl_qmatmul_op.cc, mkl_quantized_concat_op.cc.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np

from opkernel.device.work_clock import SLOW, in_time
from opkernel.errors import InvalidArgumentError
from opkernel.kernel import KernelContract, OpKernel, OpKernelContext, check_allocation
from opkernel.opdef import (
    InferenceContext,
    OpHandle,
    OpShapeInferenceFn,
    common_shapes,
    register_op,
)
from opkernel.opdef.common_shapes.quantized import set_scalar_range, shape_with_range
from opkernel.opdef.common_shapes.rules import check_scalars
from opkernel.ops.declared.nn import (
    QUANTIZED_CONVOLUTIONS,
    QUANTIZED_MATMULS,
    quantized_convolution_shape,
    quantized_matmul_shape,
)
from opkernel.ops.input_checks import require, require_equal, require_rank
from opkernel.ops.math.matmul import check_matrices
from opkernel.ops.quantized.arithmetic import without_offset
from opkernel.ops.quantized.quantize import (
    Range,
    range_of_product,
    scalar_range,
    unclamped_level_of,
)
from opkernel.ops.quantized.uniform_sums import wrapped_sums
from opkernel.ops.registration import register_kernel
from opkernel.types import Array, DataType

_QUINT8, _QINT8, _QINT32 = DataType.DT_QUINT8, DataType.DT_QINT8, DataType.DT_QINT32


def range_args(*names: str) -> list[str]:
    """The ends of the range of each tensor, as arguments."""
    return [f"{end}_{name}: float" for name in names for end in ("min", "max")]


def declare_convolution(
    name: str, shape_fn: OpShapeInferenceFn, doc: str, output: DataType = DataType.DT_QINT32
) -> OpHandle:
    """Declare a convolution of integers, with what its name adds."""
    requantizes, has_sum = name.endswith("Requantize"), "Sum" in name
    bias = "Tbias" if requantizes else "float"
    summand = ["summand: Tsummand", *range_args("summand")] if requantizes else ["summand: float"]
    has_padding_list = not name.endswith(("PerChannel", "Conv2D", "DepthwiseConv2DWithBias"))
    return register_op(
        name,
        inputs=[
            "input: Tinput",
            "filter: Tfilter",
            *([f"bias: {bias}"] if "WithBias" in name else []),
            *range_args("input", "filter", *(["freezed_output"] if requantizes else [])),
            *(summand if has_sum else []),
        ],
        outputs=["output: out_type", *range_args("output")],
        attrs=[
            "Tinput: quantizedtype",
            "Tfilter: quantizedtype",
            *(["Tbias: {float, qint32}"] if requantizes and "WithBias" in name else []),
            *(["Tsummand: quantizedtype"] if requantizes and has_sum else []),
            f"out_type: quantizedtype = {output.name}",
            "strides: list(int)",
            "padding: {'SAME', 'VALID'}",
            "dilations: list(int) = [1, 1, 1, 1]",
            *(["padding_list: list(int) = []"] if has_padding_list else []),
        ],
        shape_fn=shape_fn,
        doc=doc,
    )


class NoOutputs(OpKernel):
    """Sets none of its outputs, as TensorFlow's kernel with oneDNN off.

    A graph that needs one of them fails with INTERNAL; an eager call gives empty tensors.
    """

    leaves_outputs = True

    def compute(self, ctx: OpKernelContext) -> None:
        """Nothing."""


QUANTIZED_MATMUL = register_op(
    "QuantizedMatMul(a: T1, b: T2, min_a: float, max_a: float, min_b: float, max_b: float) "
    "-> out: Toutput, min_out: float, max_out: float",
    attrs=[
        "T1: quantizedtype",
        "T2: quantizedtype",
        "Toutput: quantizedtype = DT_QINT32",
        "transpose_a: bool = false",
        "transpose_b: bool = false",
        "Tactivation: quantizedtype = DT_QUINT8",
    ],
    shape_fn=partial(shape_with_range, plain=common_shapes.matmul_shape, scalars=(2, 3, 4, 5)),
    doc="The product of two matrices of integers, and the range that it stands in.",
)
QUANTIZED_CONV2D = declare_convolution(
    "QuantizedConv2D",
    common_shapes.quantized_conv2d_shape,
    "The convolution of images of integers with filters, and the range that it stands in.",
)


@register_kernel(QUANTIZED_MATMUL, types={"T1": _QUINT8, "T2": _QUINT8, "Toutput": _QINT32})
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
    a_range = scalar_range("{}_a", min_a, max_a)
    b_range = scalar_range("{}_b", min_b, max_b)
    a_range.check_width("a")
    b_range.check_width("b")
    check_matrices(a, b, transpose_a, transpose_b)
    a, b = a.T if transpose_a else a, b.T if transpose_b else b
    check_allocation((a.shape[0], b.shape[1]), _QINT32)
    with np.errstate(all="ignore"):
        numbers = without_offset(a, a_range), without_offset(b, b_range)
        product = wrapped_sums(np.matmul, *numbers, a.shape[1])
        limits = range_of_product(a_range, a.dtype, b_range, b.dtype)
    return product, limits.low, limits.high


def _check_conv_attrs(strides: Sequence[int], dilations: Sequence[int]) -> None:
    for name, values in (("strides", strides), ("dilations", dilations)):
        message = f"Sliding window {name} field must specify 4 dimensions, got {list(values)}"
        require(len(values) == 4, message)
    batch, rows, columns, depth = strides
    of_strides = f"dimensions, got {list(strides)}"
    message = "Current implementation only supports equal length strides in the row and column"
    require(rows == columns, f"{message} {of_strides}")
    message = "Current implementation does not yet support strides in the batch and depth"
    require(batch == depth == 1, f"{message} {of_strides}")
    require(rows > 0, f"Stride must be > 0, but got {rows}")
    message = f"Current implementation only supports dilations of 1, got {list(dilations)}"
    require(set(dilations) == {1}, message)


def _check_images(x: Array, filters: Array) -> None:
    for name, tensor in (("input", x), ("filter", filters)):
        require_rank(tensor, 4, f"{name} must be rank 4 but is rank {tensor.ndim}")
    require_equal(
        x.shape[3], filters.shape[2], "input and filter must have the same depth: {} vs {}"
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
    check_allocation((math.prod(shape[:3]), windows[1] * x.shape[3]), DataType.DT_DOUBLE)

    def sums(padded: Array, filters: Array) -> Array:
        """A row of the windows after the other, each as a product of matrices."""
        lines = np.lib.stride_tricks.sliding_window_view(padded, windows[1], 2).swapaxes(3, 4)
        matrices = filters.reshape(windows[0], -1, filters.shape[3])
        total = np.zeros((math.prod(shape[:3]), shape[3]), padded.dtype)
        for row in in_time(range(windows[0]), SLOW):
            rows = slice(row, row + (counts[0] - 1) * stride + 1, stride)
            total += lines[:, rows, ::stride].reshape(len(total), -1) @ matrices[row]
        return total

    return wrapped_sums(sums, padded, filters, math.prod(filters.shape[:3])).reshape(shape)


@register_kernel(
    QUANTIZED_CONV2D,
    types={"Tinput": _QUINT8, "Tfilter": _QUINT8, "out_type": _QINT32},
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
        x_range = scalar_range("{}_input", min_input, max_input)
        filter_range = scalar_range("{}_filter", min_filter, max_filter)
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
    types={"Tinput": _QUINT8, "Tfilter": DataType.DT_QINT8, "out_type": _QINT32},
    contract=KernelContract(),
)(NoOutputs)


_BIAS_TYPES = (DataType.DT_FLOAT, _QINT32)
_DOC = "{}; no output is set, as TensorFlow computes it by oneDNN alone."


def _convolution_shape_fn(name: str) -> OpShapeInferenceFn:
    if name.startswith("QuantizedDepthwise"):
        return common_shapes.depthwise_conv2d_native_shape
    if name == "QuantizedConv2DAndRequantize":
        return partial(
            shape_with_range, plain=common_shapes.conv2d_shape, scalars=(2, 3, 4, 5, 6, 7)
        )
    return partial(quantized_convolution_shape, name=name)


def _add_convolution(name: str) -> None:
    requantizes, has_sum = name.endswith("Requantize"), "Sum" in name
    output = _QINT32
    if requantizes:
        output = _QUINT8 if "Relu" in name else _QINT8
    takes_signed = name.startswith("QuantizedConv2DWithBias") and not has_sum
    types: dict[str, DataType | Sequence[DataType]] = {
        "Tinput": (_QUINT8, _QINT8) if takes_signed else _QUINT8,
        "Tfilter": _QINT8,
        "out_type": (output,),
    }
    if requantizes and "WithBias" in name:
        types["Tbias"] = _BIAS_TYPES
    if requantizes and has_sum:
        types["Tsummand"] = _QINT8 if "Signed" in name else _QUINT8
    doc = _DOC.format("A convolution of integers, with what its name adds")
    op = declare_convolution(name, _convolution_shape_fn(name), doc, output)
    register_kernel(op, contract=KernelContract(), types=types)(NoOutputs)


def _add_matmul(name: str) -> None:
    dequantizes, requantizes = name.endswith("Dequantize"), name.endswith("Requantize")
    has_typed_bias = not name.endswith("AndRelu")
    output = DataType.DT_FLOAT if dequantizes else _QUINT8 if requantizes else _QINT32
    out_attr = "{float}" if dequantizes else f"quantizedtype = {output.name}"
    op = register_op(
        name,
        inputs=[
            "a: T1",
            "b: T2",
            "bias: Tbias" if has_typed_bias else "bias: float",
            *range_args("a", "b", *(["freezed_output"] if dequantizes or requantizes else [])),
        ],
        outputs=["out: Toutput", *([] if dequantizes else range_args("out"))],
        attrs=[
            "T1: quantizedtype",
            "T2: quantizedtype",
            *(["Tbias: {float, qint32}"] if has_typed_bias else []),
            f"Toutput: {out_attr}",
            "transpose_a: bool = false",
            "transpose_b: bool = false",
            "input_quant_mode: {'MIN_FIRST', 'SCALED'} = 'MIN_FIRST'",
        ],
        shape_fn=partial(quantized_matmul_shape, name=name),
        doc=_DOC.format("A product of matrices of integers and a bias, with what its name adds"),
    )
    types: dict[str, DataType | Sequence[DataType]]
    types = {"T1": _QUINT8, "T2": _QINT8, "Toutput": (output,)}
    if has_typed_bias:
        types["Tbias"] = _BIAS_TYPES
    register_kernel(op, contract=KernelContract(), types=types)(NoOutputs)


def _concat_v2_shape(c: InferenceContext) -> None:
    """Values, an axis, and as many minima and maxima as values."""
    count = len(c.input("values"))
    common_shapes.quantized_concat_v2_shape(c, count)
    check_scalars(c, *range(count + 1, 3 * count + 1))
    set_scalar_range(c)


QUANTIZED_CONCAT_V2 = register_op(
    "QuantizedConcatV2(values: N * T, axis: Tidx, input_mins: N * float, input_maxes: N * float) "
    "-> output: T, output_min: float, output_max: float",
    attrs=["N: int >= 2", "T: type", "Tidx: {int32, int64} = DT_INT32"],
    shape_fn=_concat_v2_shape,
    doc=_DOC.format("QuantizedConcat with the axis behind"),
)
register_kernel(
    QUANTIZED_CONCAT_V2,
    contract=KernelContract(),
    types={"T": (_QUINT8, _QINT8)},
    host_memory=["axis"],
)(NoOutputs)
for _name in QUANTIZED_CONVOLUTIONS:
    _add_convolution(_name)
for _name in QUANTIZED_MATMULS:
    _add_matmul(_name)
