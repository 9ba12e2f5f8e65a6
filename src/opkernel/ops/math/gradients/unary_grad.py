"""Gradients of the ops that give gradients of unary ops: second derivatives.

Each op computes `b * f'(x)` from `a`, the result of `f`, and `b`, the gradient that came in.
"""

import opkernel.gradients as g


@g.register_gradient("TanhGrad")
def tanh_grad_gradient(op: g.Operation, grad: g.Tensor) -> g.Gradients:
    a, b = (g.conj(tensor) for tensor in op.inputs)
    for_a = g.nodes.Mul(g.nodes.Mul(g.nodes.Mul(grad, -2), b), a)
    return for_a, g.nodes.TanhGrad(a, grad)


@g.register_gradient("SigmoidGrad")
def sigmoid_grad_gradient(op: g.Operation, grad: g.Tensor) -> g.Gradients:
    a, b = (g.conj(tensor) for tensor in op.inputs)
    part = g.nodes.Mul(grad, b)
    for_a = g.nodes.Sub(part, g.nodes.Mul(g.nodes.Mul(2, part), a))
    return for_a, g.nodes.SigmoidGrad(a, grad)


@g.register_gradient("SqrtGrad")
def sqrt_grad_gradient(op: g.Operation, grad: g.Tensor) -> g.Gradients:
    part = g.nodes.RealDiv(grad, op.inputs[0])
    return g.nodes.Mul(g.nodes.Neg(g.conj(part)), op.outputs[0]), g.nodes.Mul(0.5, part)


@g.register_gradient("RsqrtGrad")
def rsqrt_grad_gradient(op: g.Operation, grad: g.Tensor) -> g.Gradients:
    a, b = op.inputs
    root = g.conj(a)
    part = g.nodes.Mul(g.nodes.Mul(-1.5, g.conj(grad)), b)
    return g.nodes.Mul(part, g.nodes.Square(root)), g.nodes.RsqrtGrad(root, grad)


@g.register_gradient("InvGrad", "ReciprocalGrad")
def reciprocal_grad_gradient(op: g.Operation, grad: g.Tensor) -> g.Gradients:
    a, b = op.inputs
    inverse = g.conj(a)
    for_a = g.nodes.Mul(g.nodes.Mul(g.nodes.Mul(g.conj(grad), -2), b), inverse)
    return for_a, g.nodes.ReciprocalGrad(inverse, grad)
