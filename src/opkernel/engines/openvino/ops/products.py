"""Products of matrices; and products with a bias or a normalisation, an added tensor and an activation, as our passes fuse them.

Fused products are taken apart again: OpenVINO fuses them in its own way.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from opkernel.engines.openvino.library import opset
from opkernel.engines.openvino.op_rule import openvino_op
from opkernel.engines.openvino.ops.convolutions_and_pools import convolved, depthwise
from opkernel.engines.openvino.ops.elementwise import ACTIVATIONS
from opkernel.engines.openvino.ops.reductions_and_normalisation import along_channels, normalised
from opkernel.engines.openvino.tensors import Shapes, as_output, channels_first, in_layout, shape_of
from opkernel.kernel import from_attrs
from opkernel.ops.nn.conv.kernels import conv2d_windows
from opkernel.ops.nn.fused_matmul import Fusion, conv2d_fusion, depthwise_fusion, matmul_fusion
from opkernel.ops.nn.windows import Windows


def product(a: Any, b: Any, transpose_a: bool, transpose_b: bool, shape: tuple[int, ...]) -> Any:
    """The product of matrices; zeros of this shape where there is nothing to add up."""
    if 0 in shape_of(a):
        return np.zeros(shape, np.float32)
    return opset().matmul(a, b, transpose_a, transpose_b)


@openvino_op("MatMul", takes_empty=True)
def matmul(a: Any, b: Any, *, transpose_a: bool, transpose_b: bool, output_shapes: Shapes) -> Any:
    return product(a, b, transpose_a, transpose_b, output_shapes[0])


@openvino_op("BatchMatMul", "BatchMatMulV2", "BatchMatMulV3", takes_empty=True)
def batch_matmul(x: Any, y: Any, *, adj_x: bool, adj_y: bool, output_shapes: Shapes) -> Any:
    return product(x, y, adj_x, adj_y, output_shapes[0])


@openvino_op("Einsum", takes_empty=True)
def einsum(inputs: list[Any], *, equation: str, output_shapes: Shapes) -> Any:
    if any(0 in shape_of(one) for one in inputs):
        return np.zeros(output_shapes[0], np.float32)
    nodes = [one.get_node() for one in inputs]
    return opset().einsum(nodes, equation)


def _finished(x: Any, fusion: Fusion, args: list[Any], axis: int) -> Any:
    """A product with what is fused with it; the channels are on an axis."""
    added = [args[-1]] if fusion.adds else []
    vectors = args[: len(args) - len(added)]
    if len(vectors) == 4:
        x = normalised(x, tuple(vectors), fusion.epsilon)
    else:
        x = opset().add(x, along_channels(vectors[0], len(shape_of(x)), axis)).output(0)
    for tensor in added:
        x = opset().add(x, tensor).output(0)
    return as_output(ACTIVATIONS[fusion.activation](x, fusion.alpha))


def _finished_images(x: Any, windows: Windows, fusion: Fusion, args: list[Any]) -> Any:
    """The same, for a convolution whose channels are first."""
    if fusion.adds:
        args = [*args[:-1], channels_first(args[-1], windows)]
    return in_layout(_finished(x, fusion, args, 1), windows)


@openvino_op("_FusedConv2D", constants=["host_args"], differs_for_non_finite=True)
@from_attrs(fusion=conv2d_fusion, windows=conv2d_windows)
def fused_conv2d(
    x: Any, filters: Any, args: list[Any], host_args: list[Any], *, fusion: Fusion, windows: Windows
) -> Any:
    return _finished_images(convolved(x, filters, windows), windows, fusion, args)


@openvino_op("_FusedDepthwiseConv2dNative", differs_for_non_finite=True)
@from_attrs(fusion=depthwise_fusion, windows=partial(conv2d_windows, explicit_paddings=()))
def fused_depthwise(
    x: Any, filters: Any, args: list[Any], *, fusion: Fusion, windows: Windows
) -> Any:
    return _finished_images(depthwise(x, filters, windows), windows, fusion, args)


@openvino_op("_FusedMatMul", takes_empty=True, differs_for_non_finite=True)
@from_attrs(fusion=matmul_fusion)
def fused_matmul(
    a: Any,
    b: Any,
    args: list[Any],
    *,
    transpose_a: bool,
    transpose_b: bool,
    fusion: Fusion,
    output_shapes: Shapes,
) -> Any:
    made = product(a, b, transpose_a, transpose_b, output_shapes[0])
    if isinstance(made, np.ndarray):  # nothing is added to the product of empty matrices
        return made
    return _finished(as_output(made), fusion, args, 1)
