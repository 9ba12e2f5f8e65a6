"""Gradients of activations.

Gradients of the ops that give gradients of activations: second derivatives.
"""

import opkernel.gradients as g


@g.register_gradient("Relu", "Relu6", "Elu", "Selu")
def activation_gradient(op: g.Operation, grad: g.Tensor) -> g.Gradients:
    """By the op that takes the result of the activation."""
    return getattr(g.nodes, f"{op.type}Grad")(grad, op.outputs[0])


@g.register_gradient("LeakyRelu")
def leaky_relu_gradient(op: g.Operation, grad: g.Tensor) -> g.Gradients:
    return g.nodes.LeakyReluGrad(grad, op.inputs[0], **g.attrs_of(op, "alpha"))


@g.register_gradient("Softplus")
def softplus_gradient(op: g.Operation, grad: g.Tensor) -> g.Gradients:
    return g.nodes.Mul(grad, g.nodes.Sigmoid(op.inputs[0]))


@g.register_gradient("Softsign")
def softsign_gradient(op: g.Operation, grad: g.Tensor) -> g.Gradients:
    return g.nodes.SoftsignGrad(grad, op.inputs[0])


@g.register_gradient("ReluGrad", "Relu6Grad", "LeakyReluGrad")
def relu_grad_gradient(op: g.Operation, grad: g.Tensor) -> g.Gradients:
    features = op.inputs[1]
    attrs = g.attrs_of(op, "alpha") if op.type == "LeakyReluGrad" else {}
    return getattr(g.nodes, op.type)(grad, features, **attrs), g.zeros_like(features)


@g.register_gradient("EluGrad", "SeluGrad")
def elu_grad_gradient(op: g.Operation, grad: g.Tensor) -> g.Gradients:
    gradients, outputs = op.inputs
    product = g.nodes.Mul(grad, gradients)
    below_zero = g.nodes.Select(g.nodes.Less(outputs, 0), product, g.zeros_like(outputs))
    return getattr(g.nodes, op.type)(grad, outputs), below_zero


@g.register_gradient("SoftplusGrad")
def softplus_grad_gradient(op: g.Operation, grad: g.Tensor) -> g.Gradients:
    gradients, x = op.inputs
    both = g.nodes.AddV2(g.nodes.AddV2(g.nodes.Exp(g.nodes.Neg(x)), 2), g.nodes.Exp(x))
    return g.nodes.SoftplusGrad(grad, x), g.nodes.RealDiv(g.nodes.Mul(grad, gradients), both)
