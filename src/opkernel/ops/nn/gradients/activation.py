"""Gradients of activations."""

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
