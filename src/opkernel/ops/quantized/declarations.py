"""What declarations of quantised ops share, and the kernel of ops that TensorFlow computes by oneDNN alone.

Source: TensorFlow core/kernels/no_op.h.
"""

from opkernel.kernel import OpKernel, OpKernelContext
from opkernel.opdef import OpHandle, OpShapeInferenceFn, register_op
from opkernel.types import DataType

QUANTIZED_ATTR = "{qint8, quint8, qint32, qint16, quint16}"
"""The types that attrs of quantised ops allow."""


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
