"""Gradients of activations.

Gradients of the ops that give gradients of activations: second derivatives.
"""

from typing import Any

import opkernel.gradients as g


@g.register_gradient("Relu")
def relu_gradient(op: g.Operation, grad: g.Tensor) -> g.Gradients:
    return g.nodes.ReluGrad(grad, op.outputs[0])


@g.register_gradient("Relu6")
def relu6_gradient(op: g.Operation, grad: g.Tensor) -> g.Gradients:
    return g.nodes.Relu6Grad(grad, op.outputs[0])


@g.register_gradient("LeakyRelu")
def leaky_relu_gradient(op: g.Operation, grad: g.Tensor) -> g.Gradients:
    return g.nodes.LeakyReluGrad(grad, op.inputs[0], **g.attrs_of(op, "alpha"))


@g.register_gradient("Elu")
def elu_gradient(op: g.Operation, grad: g.Tensor) -> g.Gradients:
    return g.nodes.EluGrad(grad, op.outputs[0])


@g.register_gradient("Selu")
def selu_gradient(op: g.Operation, grad: g.Tensor) -> g.Gradients:
    return g.nodes.SeluGrad(grad, op.outputs[0])


@g.register_gradient("Softplus")
def softplus_gradient(op: g.Operation, grad: g.Tensor) -> g.Gradients:
    return g.nodes.Mul(grad, g.nodes.Sigmoid(op.inputs[0]))


@g.register_gradient("Softsign")
def softsign_gradient(op: g.Operation, grad: g.Tensor) -> g.Gradients:
    return g.nodes.SoftsignGrad(grad, op.inputs[0])


@g.register_gradient("ReluGrad")
def relu_grad_gradient(op: g.Operation, grad: g.Tensor) -> g.Gradients:
    features = op.inputs[1]
    return g.nodes.ReluGrad(grad, features), g.zeros_like(features)


@g.register_gradient("Relu6Grad")
def relu6_grad_gradient(op: g.Operation, grad: g.Tensor) -> g.Gradients:
    features = op.inputs[1]
    return g.nodes.Relu6Grad(grad, features), g.zeros_like(features)


@g.register_gradient("LeakyReluGrad")
def leaky_relu_grad_gradient(op: g.Operation, grad: g.Tensor) -> g.Gradients:
    features = op.inputs[1]
    again = g.nodes.LeakyReluGrad(grad, features, **g.attrs_of(op, "alpha"))
    return again, g.zeros_like(features)


@g.register_gradient("EluGrad")
def elu_grad_gradient(op: g.Operation, grad: g.Tensor) -> g.Gradients:
    return g.nodes.EluGrad(grad, op.inputs[1]), _product_below_zero(op, grad)


@g.register_gradient("SeluGrad")
def selu_grad_gradient(op: g.Operation, grad: g.Tensor) -> g.Gradients:
    return g.nodes.SeluGrad(grad, op.inputs[1]), _product_below_zero(op, grad)


def _product_below_zero(op: g.Operation, grad: g.Tensor) -> Any:
    gradients, outputs = op.inputs
    product = g.nodes.Mul(grad, gradients)
    return g.nodes.Select(g.nodes.Less(outputs, 0), product, g.zeros_like(outputs))


@g.register_gradient("SoftplusGrad")
def softplus_grad_gradient(op: g.Operation, grad: g.Tensor) -> g.Gradients:
    gradients, x = op.inputs
    both = g.nodes.AddV2(g.nodes.AddV2(g.nodes.Exp(g.nodes.Neg(x)), 2), g.nodes.Exp(x))
    return g.nodes.SoftplusGrad(grad, x), g.nodes.RealDiv(g.nodes.Mul(grad, gradients), both)
