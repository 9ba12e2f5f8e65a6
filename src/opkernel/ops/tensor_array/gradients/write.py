"""Gradients of writes: reads of gradients."""

import opkernel.gradients as g
from opkernel.ops.tensor_array.gradients.gradient_array import (
    GradientArray,
    after_forward,
    gradient_of,
)


@gradient_of("Write")
def write_gradient(op: g.Operation, grad: g.Tensor) -> g.Gradients:
    _, index, value, _ = op.inputs
    flow = after_forward(op, grad)
    of_value = GradientArray.of(op, flow).apply("Read", index, dtype=value.dtype)
    return None, None, of_value, flow


@gradient_of("Scatter")
def scatter_gradient(op: g.Operation, grad: g.Tensor) -> g.Gradients:
    _, indices, value, _ = op.inputs
    flow = after_forward(op, grad)
    of_value = GradientArray.of(op, flow).apply("Gather", indices, dtype=value.dtype)
    return None, None, of_value, flow


@gradient_of("Split")
def split_gradient(op: g.Operation, grad: g.Tensor) -> g.Gradients:
    _, value, _, _ = op.inputs
    flow = after_forward(op, grad)
    of_value = GradientArray.of(op, flow).apply("Concat", dtype=value.dtype).value
    return None, of_value, None, flow
