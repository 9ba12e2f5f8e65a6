"""Gradients of reads: writes of gradients, which add up."""

from typing import Any

import opkernel.gradients as g
from opkernel.ops.tensor_array.gradients.gradient_array import GradientArray, gradient_of


@gradient_of("Read")
def read_gradient(op: g.Operation, grad: g.Tensor) -> g.Gradients:
    _, index, flow = op.inputs
    return None, None, GradientArray.of(op, flow).apply("Write", index, grad)


@gradient_of("Gather")
def gather_gradient(op: g.Operation, grad: g.Tensor) -> g.Gradients:
    _, indices, flow = op.inputs
    return None, None, GradientArray.of(op, flow).apply("Scatter", indices, grad)


@gradient_of("Concat")
def concat_gradient(op: g.Operation, grad: g.Tensor, _: Any) -> g.Gradients:
    _, flow = op.inputs
    return None, GradientArray.of(op, flow).apply("Split", grad, op.outputs[1])
