"""Gradients of unary ops in terms of their results: for `y = f(x)`, `dy * f'(x)` from `y`.

Both inputs must have the same number of elements; the result has the shape of the first. Where a
power of `y` could be infinite and `dy` is 0, the result is 0.

Gradients of the ops that give gradients of unary ops: second derivatives.

Each op computes `b * f'(x)` from `a`, the result of `f`, and `b`, the gradient that came in.

Source: TensorFlow core/ops/math_ops.cc, core/kernels/cwise_ops_gradients.h, cwise_ops_common.h
(SimpleBinaryOp).
"""

from collections.abc import Callable
from typing import Any

import numpy as np

import opkernel.gradients as g
from opkernel.errors import InvalidArgumentError
from opkernel.opdef import OpHandle, register_op
from opkernel.opdef.common_shapes import unchanged_shape
from opkernel.ops.kernel_types import COMPLEX, FLOATS
from opkernel.ops.math.complex_numbers import complex_quotient
from opkernel.ops.math.elementwise import COMPLEX_SPEC, FLOATS_SPEC, Types, register_body

_PACKET = 8  # elements of half and bfloat16, in TensorFlow's builds for CPUs

Gradient = Callable[[Any, Any, Any], Any]
"""A function of `y`, `dy` and `xp`."""


def _gradient_op(name: str, doc: str) -> OpHandle:
    return register_op(
        name,
        inputs=["y: T", "dy: T"],
        outputs=["z: T"],
        attrs=[f"T: {{{FLOATS_SPEC}, {COMPLEX_SPEC}}}"],
        shape_fn=unchanged_shape,
        doc=doc,
    )


def _register(
    op: OpHandle,
    gradient: Gradient,
    types: Types = (*FLOATS, *COMPLEX),
    *,
    one_by_one: Gradient | None = None,
) -> None:
    """Register the kernel; `one_by_one` is what Eigen does to elements that fill no packet.

    It multiplies in another order, which half and bfloat16 show.
    """

    def body(y: Any, dy: Any, *, xp: Any) -> Any:
        if y.size != dy.size:
            raise InvalidArgumentError(
                "The two arguments to a cwise op must have same number of elements, "
                f"got {y.size} and {dy.size}"
            )
        dy = dy.reshape(y.shape)
        result = gradient(y, dy, xp)
        rest = y.size % _PACKET
        if one_by_one is None or not rest or y.dtype.itemsize > 2 or xp is not np:
            return result
        flat = np.array(result).reshape(-1)
        flat[-rest:] = one_by_one(y.reshape(-1)[-rest:], dy.reshape(-1)[-rest:], xp)
        return flat.reshape(y.shape)[()]

    register_body(op, body, types, kind="same_shapes")  # others keep the first one's shape


def _or_zero(dy: Any, value: Any, xp: Any) -> Any:
    """The value; 0 where `dy` is 0."""
    return xp.where(dy == 0, xp.zeros_like(value), value)


def sigmoid_grad(y: Any, dy: Any, xp: Any) -> Any:
    return dy * (y * (1 - y))


def sigmoid_grad_one_by_one(y: Any, dy: Any, xp: Any) -> Any:
    return dy * y * (1 - y)


def tanh_grad(y: Any, dy: Any, xp: Any) -> Any:
    return dy * (1 - y * y)


def sqrt_grad(y: Any, dy: Any, xp: Any) -> Any:
    return _or_zero(dy, dy * (y.dtype.type(0.5) / y), xp)


def sqrt_grad_one_by_one(y: Any, dy: Any, xp: Any) -> Any:
    return _or_zero(dy, y.dtype.type(0.5) * dy / y, xp)


def complex_sqrt_grad(y: Any, dy: Any, xp: Any) -> Any:
    return _or_zero(dy, complex_quotient(dy, xp.conj(y) * 2, xp=xp), xp)


def rsqrt_grad(y: Any, dy: Any, xp: Any) -> Any:
    y = xp.conj(y)
    product = dy * y
    result = product * (y.dtype.type(-0.5) * (y * y))
    if y.dtype.itemsize == 2:  # a result rounded to 0 has no sign
        result = _or_zero(product, result, xp)
    return _or_zero(dy, result, xp)


def rsqrt_grad_one_by_one(y: Any, dy: Any, xp: Any) -> Any:
    return _or_zero(dy, y.dtype.type(-0.5) * (dy * y) * (y * y), xp)


def reciprocal_grad(y: Any, dy: Any, xp: Any) -> Any:
    y = xp.conj(y)
    return _or_zero(dy, -dy * (y * y), xp)


SIGMOID_GRAD = _gradient_op("SigmoidGrad", "`dy * y * (1 - y)`, for `y = sigmoid(x)`.")
TANH_GRAD = _gradient_op("TanhGrad", "`dy * (1 - y * y)`, for `y = tanh(x)`.")
SQRT_GRAD = _gradient_op("SqrtGrad", "`dy * 0.5 / y`, for `y = sqrt(x)`.")
RSQRT_GRAD = _gradient_op("RsqrtGrad", "`dy * -0.5 * y ** 3`, for `y = rsqrt(x)`.")
RECIPROCAL_GRAD = _gradient_op("ReciprocalGrad", "`-dy * y * y`, for `y = 1 / x`.")
INV_GRAD = _gradient_op("InvGrad", "`-dy * y * y`; an older name of ReciprocalGrad.")

_register(SIGMOID_GRAD, sigmoid_grad, one_by_one=sigmoid_grad_one_by_one)
_register(TANH_GRAD, tanh_grad)
_register(SQRT_GRAD, sqrt_grad, FLOATS, one_by_one=sqrt_grad_one_by_one)
_register(SQRT_GRAD, complex_sqrt_grad, COMPLEX)
_register(RSQRT_GRAD, rsqrt_grad, one_by_one=rsqrt_grad_one_by_one)
_register(RECIPROCAL_GRAD, reciprocal_grad)
_register(INV_GRAD, reciprocal_grad)


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
