"""Quantised ops that TensorFlow computes by oneDNN alone: convolutions and products with what follows them.

TensorFlow's own CPU kernels of these ops set no output. With oneDNN a pass puts other ops in their place;
without it, which is the reference here, a graph fails with INTERNAL, and a call gives tensors of shape [0].

Source: TensorFlow core/ops/nn_ops.cc, math_ops.cc, array_ops.cc, core/kernels/mkl/mkl_quantized_conv_ops.h,
mkl_conv_ops.cc, mkl_qmatmul_op.cc, mkl_quantized_concat_op.cc.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from opkernel.kernel import register_kernel
from opkernel.opdef import InferenceContext, OpShapeInferenceFn, register_op
from opkernel.opdef.common_shapes import (
    conv2d_shape,
    depthwise_conv2d_native_shape,
    quantized_concat_v2_shape,
)
from opkernel.opdef.common_shapes.quantized import set_scalar_range, shape_with_range
from opkernel.opdef.common_shapes.rules import check_scalars
from opkernel.ops.declared.quantized import (
    QUANTIZED_CONVOLUTIONS,
    QUANTIZED_MATMULS,
    quantized_convolution_shape,
    quantized_matmul_shape,
)
from opkernel.ops.quantized.declarations import (
    QUANTIZED_ATTR,
    NoOutputs,
    declare_convolution,
    range_args,
)
from opkernel.types import DataType

_QUINT8, _QINT8, _QINT32 = DataType.DT_QUINT8, DataType.DT_QINT8, DataType.DT_QINT32
_BIAS_TYPES = (DataType.DT_FLOAT, _QINT32)
_DOC = "{}; no output is set, as TensorFlow computes it by oneDNN alone."


def _convolution_shape_fn(name: str) -> OpShapeInferenceFn:
    if name.startswith("QuantizedDepthwise"):
        return depthwise_conv2d_native_shape
    if name == "QuantizedConv2DAndRequantize":
        return partial(shape_with_range, plain=conv2d_shape, scalars=(2, 3, 4, 5, 6, 7))
    return partial(quantized_convolution_shape, name=name)


def _add_convolution(name: str) -> None:
    requantizes, has_sum = name.endswith("Requantize"), "Sum" in name
    output = _QINT32
    if requantizes:
        output = _QUINT8 if "Relu" in name else _QINT8
    takes_signed = name.startswith("QuantizedConv2DWithBias") and not has_sum
    types: dict[str, Sequence[DataType]] = {
        "Tinput": (_QUINT8, _QINT8) if takes_signed else (_QUINT8,),
        "Tfilter": (_QINT8,),
        "out_type": (output,),
    }
    if requantizes and "WithBias" in name:
        types["Tbias"] = _BIAS_TYPES
    if requantizes and has_sum:
        types["Tsummand"] = (_QINT8,) if "Signed" in name else (_QUINT8,)
    doc = _DOC.format("A convolution of integers, with what its name adds")
    op = declare_convolution(name, _convolution_shape_fn(name), doc, output)
    register_kernel(op, device="CPU", types=types)(NoOutputs)


def _add_matmul(name: str) -> None:
    dequantizes, requantizes = name.endswith("Dequantize"), name.endswith("Requantize")
    has_typed_bias = not name.endswith("AndRelu")
    output = DataType.DT_FLOAT if dequantizes else _QUINT8 if requantizes else _QINT32
    out_attr = "{float}" if dequantizes else f"{QUANTIZED_ATTR} = {output.name}"
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
            f"T1: {QUANTIZED_ATTR}",
            f"T2: {QUANTIZED_ATTR}",
            *(["Tbias: {float, qint32}"] if has_typed_bias else []),
            f"Toutput: {out_attr}",
            "transpose_a: bool = false",
            "transpose_b: bool = false",
            "input_quant_mode: {'MIN_FIRST', 'SCALED'} = 'MIN_FIRST'",
        ],
        shape_fn=partial(quantized_matmul_shape, name=name),
        doc=_DOC.format("A product of matrices of integers and a bias, with what its name adds"),
    )
    types: dict[str, Sequence[DataType]]
    types = {"T1": (_QUINT8,), "T2": (_QINT8,), "Toutput": (output,)}
    if has_typed_bias:
        types["Tbias"] = _BIAS_TYPES
    register_kernel(op, device="CPU", types=types)(NoOutputs)


def _concat_v2_shape(c: InferenceContext) -> None:
    """Values, an axis, and as many minima and maxima as values."""
    count = len(c.input("values"))
    quantized_concat_v2_shape(c, count)
    check_scalars(c, *range(count + 1, 3 * count + 1))
    set_scalar_range(c)


QUANTIZED_CONCAT_V2 = register_op(
    "QuantizedConcatV2",
    inputs=["values: N * T", "axis: Tidx", "input_mins: N * float", "input_maxes: N * float"],
    outputs=["output: T", "output_min: float", "output_max: float"],
    attrs=["N: int >= 2", "T: type", "Tidx: {int32, int64} = DT_INT32"],
    shape_fn=_concat_v2_shape,
    doc=_DOC.format("QuantizedConcat with the axis behind"),
)
register_kernel(
    QUANTIZED_CONCAT_V2,
    device="CPU",
    types={"T": (_QUINT8, _QINT8)},
    host_memory=["axis"],
)(NoOutputs)
for _name in QUANTIZED_CONVOLUTIONS:
    _add_convolution(_name)
for _name in QUANTIZED_MATMULS:
    _add_matmul(_name)
