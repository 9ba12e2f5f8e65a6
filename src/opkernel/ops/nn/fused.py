"""_FusedConv2D and _FusedMatMul, which TensorFlow's graph optimiser puts into graphs.

What is fused, a bias or a batch normalisation and an activation, is done to each tile of the
product while it is in the cache.

Source: TensorFlow core/ops/nn_ops.cc, math_ops.cc, core/kernels/conv_ops_fused_impl.h,
matmul_op_fused.cc.
"""

from collections.abc import Callable, Sequence
from functools import partial

import numpy as np

from opkernel.errors import InvalidArgumentError, UnimplementedError
from opkernel.kernel import register_kernel
from opkernel.opdef import register_op
from opkernel.opdef.common_shapes import conv2d_shape_with_explicit_padding, matmul_shape
from opkernel.ops.kernel_types import FLOATS
from opkernel.ops.math.matmul import check_matrices
from opkernel.ops.nn.conv2d import conv2d_windows
from opkernel.ops.nn.convolution import convolution, convolve_images
from opkernel.ops.nn.geometry import check_rank, check_shape
from opkernel.ops.nn.windows import Array
from opkernel.types import DataType

__all__ = ["FUSED_CONV2D", "FUSED_MATMUL"]

_FUSION_ATTRS = [
    "fused_ops: list(string) = []",
    "epsilon: float = 0.0001",
    "leakyrelu_alpha: float = 0.2",
]

FUSED_CONV2D = register_op(
    "_FusedConv2D",
    inputs=["input: T", "filter: T", "args: TArgs", "host_args: num_host_args * float"],
    outputs=["output: T"],
    attrs=[
        "T: {half, float, double, int8, qint8}",
        "TArgs: list(type) >= 1",
        "num_args: int >= 0",
        "num_host_args: int >= 0 = 0",
        "strides: list(int)",
        "padding: {'SAME', 'VALID', 'EXPLICIT'}",
        "explicit_paddings: list(int) = []",
        "data_format: {'NHWC', 'NCHW', 'NCHW_VECT_C'} = 'NHWC'",
        "filter_format: {'HWIO', 'OIHW', 'OIHW_VECT_I'} = 'HWIO'",
        "dilations: list(int) = [1, 1, 1, 1]",
        "use_cudnn_on_gpu: bool = true",
        *_FUSION_ATTRS,
    ],
    shape_fn=conv2d_shape_with_explicit_padding,
    doc="Conv2D, and then the ops that `fused_ops` names, with `args` as their inputs.",
)
FUSED_MATMUL = register_op(
    "_FusedMatMul",
    inputs=["a: T", "b: T", "args: num_args * T"],
    outputs=["product: T"],
    attrs=[
        "transpose_a: bool = false",
        "transpose_b: bool = false",
        "T: {bfloat16, half, float}",
        "num_args: int >= 0",
        *_FUSION_ATTRS,
    ],
    shape_fn=matmul_shape,
    doc="MatMul, and then the ops that `fused_ops` names, with `args` as their inputs.",
)

Finish = Callable[[Array], object]
"""Changes an array `[..., channels]` in place."""


def _elu(x: Array, _: float) -> None:
    np.copyto(x, np.expm1(x), where=x < 0)


def _leaky_relu(x: Array, alpha: float) -> None:
    np.copyto(x, x * x.dtype.type(alpha), where=x < 0)


def _sigmoid(x: Array, _: float) -> None:
    np.divide(1, 1 + np.exp(-x), out=x)


_ACTIVATIONS: dict[str, Callable[[Array, float], object]] = {
    "Relu": lambda x, _: np.maximum(x, 0, out=x),
    "Relu6": lambda x, _: np.clip(x, 0, 6, out=x),
    "Elu": _elu,
    "LeakyRelu": _leaky_relu,
    "Tanh": lambda x, _: np.tanh(x, out=x),
    "Sigmoid": _sigmoid,
}
_AFTER_CONVOLUTIONS = ("Relu", "Relu6", "Elu", "LeakyRelu")


def _activation(
    op: str, fused_ops: Sequence[str], first: Sequence[str], activations: Sequence[str]
) -> Callable[[Array, float], object] | None:
    """The activation at the end of `fused_ops`, or None; refuses what is not fused on the CPU."""
    if not fused_ops:
        raise InvalidArgumentError(f"{op} must have at least one fused op.")
    head, *tail = fused_ops
    if head not in first or len(tail) > 1 or not set(tail) <= set(activations):
        raise UnimplementedError(f"Fusion is not implemented: [{','.join(fused_ops)}]")
    return _ACTIVATIONS[tail[0]] if tail else None


def _affine(args: Sequence[Array], epsilon: float, depth: int) -> Finish:
    """Adds a bias, or normalises with scale, offset, mean and variance."""
    if len(args) not in (1, 4):
        raise InvalidArgumentError(
            f"BiasAdd must have one extra argument and FusedBatchNorm four, got {len(args)}"
        )
    for arg in args:
        check_rank("bias or statistics", arg, 1)
        check_shape("bias or statistics", arg.shape, (depth,))
    if len(args) == 1:
        return lambda x: np.add(x, args[0], out=x)
    scale, offset, mean, variance = args
    factor = scale / np.sqrt(variance + variance.dtype.type(epsilon))
    shift = offset - mean * factor

    def normalise(x: Array) -> None:
        np.multiply(x, factor, out=x)
        np.add(x, shift, out=x)

    return normalise


@register_kernel(
    FUSED_CONV2D,
    device="CPU",
    types={"T": (*FLOATS, DataType.DT_INT8, DataType.DT_QINT8)},
    factory=True,
)
def fused_conv2d(
    *,
    T: DataType,
    strides: list[int],
    padding: str,
    explicit_paddings: list[int],
    data_format: str,
    filter_format: str,
    dilations: list[int],
    fused_ops: list[str],
    epsilon: float,
    leakyrelu_alpha: float,
) -> Callable[[Array, Array, list[Array], list[Array]], Array]:
    """Float and double in layout NHWC without groups, as in TensorFlow."""
    first = ("BiasAdd", "FusedBatchNorm")
    activation = _activation("Fused Conv2D", fused_ops, first, _AFTER_CONVOLUTIONS)
    if T not in (DataType.DT_FLOAT, DataType.DT_DOUBLE):
        raise InvalidArgumentError(f"_FusedConv2D does not support {T.string} inputs on the CPU")
    if data_format != "NHWC" or filter_format != "HWIO":
        raise UnimplementedError(
            "Fused conv implementation only supports NHWC tensor format for now, got "
            f"{data_format} and {filter_format}"
        )
    windows = conv2d_windows(strides, dilations, padding, explicit_paddings, data_format)

    def fused(x: Array, filters: Array, args: list[Array], host_args: list[Array]) -> Array:
        check_rank("input", x, 4)
        check_rank("filter", filters, 4)
        if x.shape[3] != filters.shape[2]:
            raise UnimplementedError(
                "Fused conv implementation does not support grouped convolutions for now."
            )
        affine = _affine(args, epsilon, filters.shape[3])

        def finish(tile: Array) -> None:
            affine(tile)
            if activation is not None:
                activation(tile, leakyrelu_alpha)

        return convolution(x, filters, windows, partial(convolve_images, finish=finish))

    return fused


@register_kernel(
    FUSED_MATMUL,
    device="CPU",
    types={"T": (DataType.DT_BFLOAT16, DataType.DT_HALF, DataType.DT_FLOAT)},
    factory=True,
)
def fused_matmul(
    *,
    transpose_a: bool,
    transpose_b: bool,
    fused_ops: list[str],
    leakyrelu_alpha: float,
) -> Callable[[Array, Array, list[Array]], Array]:
    """Half and bfloat16 are computed in float."""
    activation = _activation("Fused MatMul", fused_ops, ("BiasAdd",), tuple(_ACTIVATIONS))

    def fused(a: Array, b: Array, args: list[Array]) -> Array:
        check_matrices(a, b, transpose_a, transpose_b)
        wide = [array.astype(np.float32, copy=False) for array in (a, b, *args)]
        left = wide[0].T if transpose_a else wide[0]
        right = wide[1].T if transpose_b else wide[1]
        result: Array = np.matmul(left, right)
        add_bias = _affine(wide[2:], 0, result.shape[1])
        if left.shape[1]:  # nothing is added to the product of empty matrices
            add_bias(result)
            if activation is not None:
                activation(result, leakyrelu_alpha)
        return result.astype(a.dtype, copy=False)

    return fused
