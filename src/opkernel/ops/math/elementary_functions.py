"""Elementary functions: exponentials, logarithms, roots, powers, trigonometric and hyperbolic functions.

SigmoidGrad and its kin give gradients in terms of results: for `y = f(x)`, `dy * f'(x)` from `y`. Both
inputs must have the same number of elements; the result has the shape of the first. Where a power of `y`
could be infinite and `dy` is 0, the result is 0. Their own gradients are second derivatives: `b * f'(x)`
from `a`, the result of `f`, and `b`, the gradient that came in.

Source: TensorFlow core/ops/math_ops.cc, core/kernels/cwise_ops.h, cwise_op_exp.cc and its siblings,
cwise_op_sin.cc and its siblings, cwise_op_pow.cc, cwise_op_xlogy.cc, cwise_op_xlog1py.cc, cwise_ops_gradients.h,
cwise_ops_common.h (SimpleBinaryOp).
"""

from collections.abc import Callable
from typing import Any

import numpy as np

import opkernel.gradients as g
from opkernel.errors import InvalidArgumentError
from opkernel.opdef import register_op
from opkernel.opdef.common_shapes import unchanged_shape
from opkernel.ops.math.elementwise import (
    COMPLEX_SPEC,
    FLOATS_SPEC,
    Types,
    binary_op,
    choice,
    complex_from_parts,
    complex_quotient,
    counts_as_zero,
    flush_subnormals,
    kernel_of_body,
    register_body,
    register_flushed,
    register_ufunc,
    unary_op,
)
from opkernel.ops.math.float_functions import (
    FUNCTIONS,
    UFUNCS,
    by_blocks,
    float_types,
    register_float_function,
)
from opkernel.ops.registration import COMPLEX, FLOATS, SIGNED_INTEGERS, WIDE_FLOATS, register_kernel
from opkernel.types import DataType

_SPEC = f"{FLOATS_SPEC}, {COMPLEX_SPEC}"
_TYPES = (*FLOATS, *COMPLEX)

_FUNCTIONS = {
    "Exp": (np.exp, "`e ** x`.", "growing not_negative"),
    "Expm1": (None, "`e ** x - 1`, exact near 0.", ""),
    "Log": (None, "The natural logarithm of `x`.", ""),
    "Log1p": (None, "The natural logarithm of `1 + x`, exact near 0.", ""),
    "Sqrt": (np.sqrt, "The square root of `x`.", "keeps_not_negative"),
    "Rsqrt": (None, "`1 / sqrt(x)`.", ""),
    "Sigmoid": (None, "`1 / (1 + e ** -x)`.", "growing not_negative"),
    "Sin": (np.sin, "The sine of `x`, in radians.", ""),
    "Cos": (np.cos, "The cosine of `x`, in radians.", "even"),
    "Tan": (np.tan, "The tangent of `x`, in radians.", ""),
    "Asin": (None, "The angle in radians whose sine is `x`.", ""),
    "Acos": (None, "The angle in radians whose cosine is `x`.", ""),
    "Atan": (None, "The angle in radians whose tangent is `x`.", ""),
    "Sinh": (np.sinh, "The hyperbolic sine of `x`.", ""),
    "Cosh": (np.cosh, "The hyperbolic cosine of `x`.", "even"),
    "Tanh": (np.tanh, "The hyperbolic tangent of `x`.", "growing"),
    "Asinh": (np.arcsinh, "The number whose hyperbolic sine is `x`.", ""),
    "Acosh": (np.arccosh, "The number of 0 or more whose hyperbolic cosine is `x`.", ""),
    "Atanh": (None, "The number whose hyperbolic tangent is `x`.", ""),
}
"""The functions of one number: the ufunc that computes them if one does, what they give, their traits."""
for _name, (_ufunc, _doc, _traits) in _FUNCTIONS.items():
    unary_op(_name, _SPEC, _doc, traits=f"{_traits} function_gradient=yes")
    if _name in UFUNCS:
        _takes = FLOATS if _name == "Log1p" else _TYPES  # of complex numbers it takes several steps
        register_ufunc(
            _name, UFUNCS[_name], [one for one in _takes if one not in float_types(_name)]
        )
        register_float_function(_name, by_blocks(FUNCTIONS[_name]))
    elif _ufunc is not None:
        register_ufunc(_name, _ufunc, _TYPES)

POW = binary_op(
    "Pow",
    f"bfloat16, float, half, double, int8, int16, int32, int64, {COMPLEX_SPEC}",
    "`x ** y`; integers to a negative power are an error.",
    can_fail=True,
    traits="function_gradient=yes",
)
for _name, _doc in (
    ("Xlogy", "`x * log(y)`; 0 where `x` is 0."),
    ("Xlog1py", "`x * log1p(y)`; 0 where `x` is 0."),
):
    _spec = f"half, bfloat16, float, double, {COMPLEX_SPEC}"
    binary_op(_name, _spec, _doc, traits="function_gradient=yes")
ATAN2 = binary_op(
    "Atan2(y: T, x: T)",
    FLOATS_SPEC,
    "The angle of the point (x, y) in radians, between -pi and pi.",
)


register_flushed(ATAN2, np.arctan2, (DataType.DT_DOUBLE,))
register_float_function(ATAN2.name, by_blocks(FUNCTIONS[ATAN2.name]))
register_ufunc("Log", np.log, COMPLEX)
register_flushed("Log", np.log, FLOATS)
register_ufunc(POW, np.power, SIGNED_INTEGERS)  # of integers it refuses negative powers


def complex_log1p(x: Any, *, xp: Any) -> Any:
    """`log(1 + x)` with the rounding of `1 + x` taken out again."""
    shifted = complex_from_parts(1 + x.real, x.imag, xp)
    logarithm = xp.log(shifted)
    exact = x * complex_quotient(logarithm, shifted - 1, xp=xp)
    return xp.where((shifted == 1) | (shifted == logarithm), x, exact)


def rsqrt(x: Any, *, xp: Any) -> Any:
    return 1 / xp.sqrt(flush_subnormals(x, xp))


def complex_rsqrt(x: Any, *, xp: Any) -> Any:
    return xp.where(xp.isinf(x), xp.zeros_like(x), 1 / xp.sqrt(x))


def sigmoid(x: Any, *, xp: Any) -> Any:
    if x.dtype.itemsize == 2:
        power = xp.exp(x)
        return xp.where(xp.isinf(power), x.dtype.type(1), power / (power + 1))
    power = xp.exp(-x)
    power += 1
    return 1 / power


_SMALL = 1 << 10


@register_kernel("Sigmoid", types={"T": _TYPES}, kind="elementwise", factory=True)
def sigmoid_kernel(*, T: DataType, xp: Any) -> Callable[[Any], Any]:
    """Small arrays of floats, which recurrent cells have, are computed in place."""
    general = kernel_of_body(sigmoid, T, xp)
    if xp is not np or T not in WIDE_FLOATS:
        return general
    one = np.ones((), T.numpy_dtype)  # Python's number would take as long as the addition

    def in_place(x: Any) -> Any:
        if x.size > _SMALL or not x.ndim:
            return general(x)
        power = np.negative(x)
        np.exp(power, power)
        np.add(power, one, power)
        return np.divide(one, power, power)

    return in_place


def power(x: Any, y: Any, *, xp: Any) -> Any:
    """`x ** y`; the cube, which the tanh form of gelu takes, as the product that it is.

    The power of a negative base is some 60 times slower.
    """
    x, y = flush_subnormals(x, xp), flush_subnormals(y, xp)
    if xp is np and y.ndim == 0 and y == 3:
        return x * x * x
    if xp is np and y.ndim == 0 and y == 0.5:  # NumPy takes the root, which differs at -inf and -0
        return np.where(x == -np.inf, -x, np.sqrt(x)) + x.dtype.type(0)
    return xp.power(x, y)


def complex_pow(x: Any, y: Any, *, xp: Any) -> Any:
    power = xp.exp(y * xp.log(x))
    return xp.where((x == 0) & (y.real > 0), xp.zeros_like(power), power)


def xlogy(x: Any, y: Any, *, xp: Any) -> Any:
    if y.dtype.kind == "c":
        return xp.where(x == 0, x, x * xp.log(y))
    return xp.where(counts_as_zero(x, xp), x, x * xp.log(flush_subnormals(y, xp)))


def xlog1py(x: Any, y: Any, *, xp: Any) -> Any:
    return xp.where(counts_as_zero(x, xp), x, x * xp.log1p(flush_subnormals(y, xp)))


def complex_xlog1py(x: Any, y: Any, *, xp: Any) -> Any:
    return xp.where(x == 0, xp.zeros_like(y), x * complex_log1p(y, xp=xp))


register_body("Log1p", complex_log1p, COMPLEX)
register_body("Rsqrt", rsqrt, FLOATS, in_float=True)
register_body("Rsqrt", complex_rsqrt, COMPLEX)
register_body(POW, power, FLOATS)
register_body(POW, complex_pow, COMPLEX)
register_body("Xlogy", xlogy, _TYPES)
register_body("Xlog1py", xlog1py, FLOATS)
register_body("Xlog1py", complex_xlog1py, COMPLEX)


_PACKET = 8  # elements of half and bfloat16, in TensorFlow's builds for CPUs

Gradient = Callable[[Any, Any, Any], Any]
"""A function of `y`, `dy` and `xp`."""


def gradient_body(gradient: Gradient, one_by_one: Gradient | None = None) -> Callable[..., Any]:
    """The body of a kernel; `one_by_one` is what Eigen does to elements that fill no packet.

    It multiplies in another order, which half and bfloat16 show.
    """

    def body(y: Any, dy: Any, *, xp: Any) -> Any:
        if y.size != dy.size:
            raise InvalidArgumentError(
                f"The two arguments to a cwise op must have same number of elements, got {y.size} and {dy.size}"
            )
        dy = dy.reshape(y.shape)
        result = gradient(y, dy, xp)
        rest = y.size % _PACKET
        if one_by_one is None or not rest or y.dtype.itemsize > 2 or xp is not np:
            return result
        flat = np.array(result).reshape(-1)
        flat[-rest:] = one_by_one(y.reshape(-1)[-rest:], dy.reshape(-1)[-rest:], xp)
        return flat.reshape(y.shape)[()]

    return body


def _register(
    op: str,
    gradient: Gradient,
    types: Types = (*FLOATS, *COMPLEX),
    *,
    one_by_one: Gradient | None = None,
) -> None:
    body = gradient_body(gradient, one_by_one)
    register_body(op, body, types, kind="same_shapes")  # others keep the first one's shape


def _or_zero(dy: Any, value: Any, xp: Any) -> Any:
    """The value; 0 where `dy` is 0."""
    is_zero = dy == 0
    if xp is np and not is_zero.any():
        return value
    return choice(is_zero, xp.zeros_like(value), value, xp)


def _conjugate(y: Any, xp: Any) -> Any:
    """NumPy's function copies real numbers."""
    return xp.conj(y) if y.dtype.kind == "c" else y


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
    y = _conjugate(y, xp)
    product = dy * y
    result = product * (y.dtype.type(-0.5) * (y * y))
    if y.dtype.itemsize == 2:  # a result rounded to 0 has no sign
        result = _or_zero(product, result, xp)
    return _or_zero(dy, result, xp)


def rsqrt_grad_one_by_one(y: Any, dy: Any, xp: Any) -> Any:
    return _or_zero(dy, y.dtype.type(-0.5) * (dy * y) * (y * y), xp)


def reciprocal_grad(y: Any, dy: Any, xp: Any) -> Any:
    y = _conjugate(y, xp)
    result = y * y
    result *= -dy
    return _or_zero(dy, result, xp)


for _name, _doc in (
    ("SigmoidGrad", "`dy * y * (1 - y)`, for `y = sigmoid(x)`."),
    ("TanhGrad", "`dy * (1 - y * y)`, for `y = tanh(x)`."),
    ("SqrtGrad", "`dy * 0.5 / y`, for `y = sqrt(x)`."),
    ("RsqrtGrad", "`dy * -0.5 * y ** 3`, for `y = rsqrt(x)`."),
    ("ReciprocalGrad", "`-dy * y * y`, for `y = 1 / x`."),
    ("InvGrad", "`-dy * y * y`; an older name of ReciprocalGrad."),
):
    register_op(
        f"{_name}(y: T, dy: T) -> z: T",
        attrs=[f"T: {{{_SPEC}}}"],
        shape_fn=unchanged_shape,
        doc=_doc,
    )
_register("SigmoidGrad", sigmoid_grad, one_by_one=sigmoid_grad_one_by_one)
_register("TanhGrad", tanh_grad)
_register("SqrtGrad", sqrt_grad, FLOATS, one_by_one=sqrt_grad_one_by_one)
_register("SqrtGrad", complex_sqrt_grad, COMPLEX)
_register("RsqrtGrad", rsqrt_grad, one_by_one=rsqrt_grad_one_by_one)
_register("ReciprocalGrad", reciprocal_grad)
_register("InvGrad", reciprocal_grad)


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
