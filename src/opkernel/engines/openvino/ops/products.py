"""Products of matrices."""

from __future__ import annotations

from typing import Any

import numpy as np

from opkernel.engines.openvino.library import opset
from opkernel.engines.openvino.op_rule import openvino_op
from opkernel.engines.openvino.tensors import shape_of

Shapes = list[tuple[int, ...]]


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
