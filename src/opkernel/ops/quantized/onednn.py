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
from opkernel.opdef import InferenceContext, OpHandle, OpShapeInferenceFn, register_op
from opkernel.opdef.common_shapes import (
    conv2d_shape,
    depthwise_conv2d_native_shape,
    quantized_concat_v2_shape,
)
from opkernel.opdef.common_shapes.rules import check_scalars
from opkernel.ops.declared.quantized import quantized_convolution_shape, quantized_matmul_shape
from opkernel.ops.quantized.conversion import QUANTIZED_ATTR
from opkernel.ops.quantized.shapes import NoOutputs, set_scalar_range, shape_with_range
from opkernel.types import DataType

_QUINT8, _QINT8, _QINT32 = DataType.DT_QUINT8, DataType.DT_QINT8, DataType.DT_QINT32
_BIAS_TYPES = (DataType.DT_FLOAT, _QINT32)
_DOC = "{}; no output is set, as TensorFlow computes it by oneDNN alone."
_DEPTHWISE = "QuantizedDepthwiseConv2D"
_CONVOLUTIONS = (
    *(
        f"QuantizedConv2D{rest}"
        for rest in (
            "AndRelu",
            "AndReluAndRequantize",
            "AndRequantize",
            "PerChannel",
            "WithBias",
            "WithBiasAndRelu",
            "WithBiasAndReluAndRequantize",
            "WithBiasAndRequantize",
            "WithBiasSignedSumAndReluAndRequantize",
            "WithBiasSumAndRelu",
            "WithBiasSumAndReluAndRequantize",
        )
    ),
    *(
        f"{_DEPTHWISE}{rest}"
        for rest in ("", "WithBias", "WithBiasAndRelu", "WithBiasAndReluAndRequantize")
    ),
)
_MATMULS = tuple(
    f"QuantizedMatMulWithBias{rest}"
    for rest in ("", "AndDequantize", "AndRelu", "AndReluAndRequantize", "AndRequantize")
)


def _register(op: OpHandle, types: dict[str, Sequence[DataType]]) -> None:
    register_kernel(op, device="CPU", types=types)(NoOutputs)


def _ends(*names: str) -> list[str]:
    return [f"{end}_{name}: float" for name in names for end in ("min", "max")]


def _convolution_shape_fn(name: str) -> OpShapeInferenceFn:
    if name.startswith(_DEPTHWISE):
        return depthwise_conv2d_native_shape
    if name == "QuantizedConv2DAndRequantize":
        return partial(shape_with_range, plain=conv2d_shape, scalars=(2, 3, 4, 5, 6, 7))
    return partial(
        quantized_convolution_shape,
        convolution=conv2d_shape,
        has_bias="WithBias" in name,
        requantizes=name.endswith("Requantize"),
    )


def _declare_convolution(name: str, output: DataType) -> OpHandle:
    requantizes, has_sum = name.endswith("Requantize"), "Sum" in name
    bias = "Tbias" if requantizes else "float"
    summand = ["summand: Tsummand", *_ends("summand")] if requantizes else ["summand: float"]
    has_padding_list = not name.endswith(("PerChannel", _DEPTHWISE, f"{_DEPTHWISE}WithBias"))
    return register_op(
        name,
        inputs=[
            "input: Tinput",
            "filter: Tfilter",
            *([f"bias: {bias}"] if "WithBias" in name else []),
            *_ends("input", "filter", *(["freezed_output"] if requantizes else [])),
            *(summand if has_sum else []),
        ],
        outputs=["output: out_type", *_ends("output")],
        attrs=[
            f"Tinput: {QUANTIZED_ATTR}",
            f"Tfilter: {QUANTIZED_ATTR}",
            *(["Tbias: {float, qint32}"] if requantizes and "WithBias" in name else []),
            *([f"Tsummand: {QUANTIZED_ATTR}"] if requantizes and has_sum else []),
            f"out_type: {QUANTIZED_ATTR} = {output.name}",
            "strides: list(int)",
            "padding: {'SAME', 'VALID'}",
            "dilations: list(int) = [1, 1, 1, 1]",
            *(["padding_list: list(int) = []"] if has_padding_list else []),
        ],
        shape_fn=_convolution_shape_fn(name),
        doc=_DOC.format("A convolution of integers, with what its name adds"),
    )


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
    _register(_declare_convolution(name, output), types)


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
            *_ends("a", "b", *(["freezed_output"] if dequantizes or requantizes else [])),
        ],
        outputs=["out: Toutput", *([] if dequantizes else _ends("out"))],
        attrs=[
            f"T1: {QUANTIZED_ATTR}",
            f"T2: {QUANTIZED_ATTR}",
            *(["Tbias: {float, qint32}"] if has_typed_bias else []),
            f"Toutput: {out_attr}",
            "transpose_a: bool = false",
            "transpose_b: bool = false",
            "input_quant_mode: {'MIN_FIRST', 'SCALED'} = 'MIN_FIRST'",
        ],
        shape_fn=partial(quantized_matmul_shape, requantizes=dequantizes or requantizes),
        doc=_DOC.format("A product of matrices of integers and a bias, with what its name adds"),
    )
    types = {"T1": (_QUINT8,), "T2": (_QINT8,), "Toutput": (output,)}
    _register(op, types | ({"Tbias": _BIAS_TYPES} if has_typed_bias else {}))


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
for _name in _CONVOLUTIONS:
    _add_convolution(_name)
for _name in _MATMULS:
    _add_matmul(_name)
