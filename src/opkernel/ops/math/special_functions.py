"""Special functions, and gradients: of the error, gamma, zeta and Bessel families; integrals.

SciPy (the extra `scipy`) computes Bessel functions and integrals.

Source: TensorFlow core/ops/math_ops.cc, special_math_ops.cc, core/kernels/cwise_op_erf.cc and its siblings,
cwise_op_igamma.cc, cwise_op_bessel.cc, cwise_op_special_math.cc, betainc_op.cc, python/ops/math_grad.py.
"""

import math
from collections.abc import Callable
from functools import partial, reduce
from typing import Any

import numpy as np

import opkernel.gradients as g
from opkernel.kernel import KernelRegistry
from opkernel.libraries import library
from opkernel.opdef import InferenceContext, register_op
from opkernel.opdef.common_shapes import unchanged_shape
from opkernel.ops.input_checks import require_equal
from opkernel.ops.math.elementwise import (
    FLOATS_SPEC,
    Op,
    Types,
    binary_op,
    flush_subnormals,
    register_body,
    unary_op,
)
from opkernel.ops.math.error_functions import (
    erf_double,
    erf_float,
    erfc_double,
    erfc_float,
    ndtri,
)
from opkernel.ops.math.float_functions import (
    FUNCTIONS,
    by_blocks,
    float_types,
    register_float_function,
)
from opkernel.ops.math.gamma_functions import digamma, lgamma, polygamma, zeta
from opkernel.ops.math.incomplete_gamma import SUMS, Sums, Terms, igamma, igamma_grad_a, igammac
from opkernel.ops.registration import FLOATS, register_kernel
from opkernel.types import DataType, TensorShape

__all__ = ["check_betainc_shapes"]

_DOUBLE = (DataType.DT_DOUBLE,)
_WIDE = (DataType.DT_FLOAT, *_DOUBLE)
_UP_TO_FLOAT = (DataType.DT_BFLOAT16, DataType.DT_HALF, DataType.DT_FLOAT)
_ALL_BUT_BFLOAT16 = (DataType.DT_HALF, *_WIDE)
_TERMS = {DataType.DT_FLOAT: Terms(200, 1e-10), DataType.DT_DOUBLE: Terms(2000, 2.0**-52)}
"""After so many terms TensorFlow's kernels give up on incomplete functions."""

for _name, _doc in (
    ("Erf", "The error function of `x`."),
    ("Erfc", "`1 - erf(x)`, exact if that is near 0."),
    ("Erfinv", "The number whose error function is `x`."),
    ("Ndtri", "The quantile of the standard normal distribution for probability `x`."),
    ("Lgamma", "The logarithm of the absolute value of the gamma function of `x`."),
    ("Digamma", "The derivative of the logarithm of gamma at `x`."),
):
    unary_op(_name, FLOATS_SPEC, _doc)

register_body("Erf", erf_float, _UP_TO_FLOAT, in_float=True)
register_body("Erf", erf_double, _DOUBLE)
register_body("Erfc", erfc_float, _UP_TO_FLOAT, in_float=True)
register_body("Erfc", erfc_double, _DOUBLE)


def _register_in_double(
    op: Op, function: Callable[..., Any], types: Types, registry: KernelRegistry | None = None
) -> None:
    """Register a function of double tensors for all of `types`."""
    blockwise = by_blocks(function)

    def body(*inputs: Any, xp: Any) -> Any:
        wide = [flush_subnormals(tensor, xp).astype(np.float64) for tensor in inputs]
        if len({tensor.shape for tensor in inputs}) == 1:
            flat = blockwise(*[tensor.reshape(-1) for tensor in wide])
            return flat.astype(inputs[0].dtype).reshape(inputs[0].shape)
        return function(*wide).astype(inputs[0].dtype)

    register_body(op, body, types, registry=registry)


def erfinv(x: Any, *, xp: Any) -> Any:
    """By the quantile, as TensorFlow: near 0 what `x + 1` rounds off is lost."""
    return ndtri((x + 1) / 2, xp=np) * np.sqrt(0.5)


register_body("Erfinv", erfinv, _DOUBLE)
_register_in_double("Ndtri", partial(ndtri, xp=np), _DOUBLE)
for _name in ("Erfinv", "Ndtri"):
    register_float_function(_name, by_blocks(FUNCTIONS[_name]))
_register_in_double("Digamma", digamma, _ALL_BUT_BFLOAT16)

for _name, _doc in (
    ("Polygamma(a: T, x: T)", "Derivative number `a` of digamma at `x`."),
    (
        "Zeta(x: T, q: T)",
        "The Hurwitz zeta function: the sum of `(q + n) ** -x` over all n from 0.",
    ),
):
    binary_op(_name, "float, double", _doc, traits="cost=series")

_register_in_double("Polygamma", polygamma, _WIDE)


def register_gamma_functions(
    lgamma: Callable[[Any], Any],
    zeta: Callable[[Any, Any], Any],
    registry: KernelRegistry | None = None,
) -> None:
    """Register the kernels of Lgamma and Zeta with functions of arrays of double."""
    _register_in_double("Lgamma", lgamma, _ALL_BUT_BFLOAT16, registry)
    _register_in_double("Zeta", zeta, _WIDE, registry)


register_gamma_functions(lgamma, zeta)

for _name, _spec, _doc in (
    ("Igamma", FLOATS_SPEC, "The lower regularised incomplete gamma function."),
    (
        "Igammac",
        FLOATS_SPEC,
        "The upper regularised incomplete gamma function, 1 less the lower one.",
    ),
    ("IgammaGradA", "float, double", "The derivative of Igamma by `a`."),
):
    binary_op(f"{_name}(a: T, x: T)", _spec, _doc, traits="cost=series")


def register_incomplete_gamma(sums: Sums, registry: KernelRegistry | None = None) -> None:
    """Register the kernels of Igamma, Igammac and IgammaGradA with functions that sum their series."""
    functions = {"Igamma": igamma, "Igammac": igammac, "IgammaGradA": igamma_grad_a}
    for name, function in functions.items():
        for dtype, terms in _TERMS.items():
            incomplete = partial(function, sums=sums, terms=terms)
            _register_in_double(name, incomplete, (dtype,), registry)


register_incomplete_gamma(SUMS)


_BESSEL = {
    "BesselI0": ("i0", "The modified Bessel function of the first kind of order 0."),
    "BesselI0e": ("i0e", "BesselI0 times `exp(-abs(x))`."),
    "BesselI1": ("i1", "The modified Bessel function of the first kind of order 1."),
    "BesselI1e": ("i1e", "BesselI1 times `exp(-abs(x))`."),
    "BesselJ0": ("j0", "The Bessel function of the first kind of order 0."),
    "BesselJ1": ("j1", "The Bessel function of the first kind of order 1."),
    "BesselK0": ("k0", "The modified Bessel function of the second kind of order 0."),
    "BesselK0e": ("k0e", "BesselK0 times `exp(x)`."),
    "BesselK1": ("k1", "The modified Bessel function of the second kind of order 1."),
    "BesselK1e": ("k1e", "BesselK1 times `exp(x)`."),
    "BesselY0": ("y0", "The Bessel function of the second kind of order 0."),
    "BesselY1": ("y1", "The Bessel function of the second kind of order 1."),
}
_INTEGRALS = {
    "Dawsn": ("dawsn", "Dawson's integral: of `exp(t ** 2)` from 0 to x, times `exp(-x ** 2)`."),
    "Expint": ("expi", "The exponential integral: of `exp(t) / t` from minus infinity to x."),
    "FresnelCos": ("fresnel", "Fresnel's integral: of `cos(pi t ** 2 / 2)` from 0 to x."),
    "FresnelSin": ("fresnel", "Fresnel's integral: of `sin(pi t ** 2 / 2)` from 0 to x."),
    "Spence": ("spence", "Spence's integral: of `log(t) / (1 - t)` from 1 to x."),
}
_PART = {"FresnelSin": 0, "FresnelCos": 1}
"""Which result of SciPy's function is that of the op."""
_BELOW_ZERO = {
    **dict.fromkeys(("BesselK0", "BesselK0e", "BesselK1", "BesselK1e"), np.inf),
    **dict.fromkeys(("BesselY0", "BesselY1"), -np.inf),
    "Expint": np.nan,
}
"""What TensorFlow's functions give for negative numbers, where SciPy's say something else."""

_POLE_AT_ZERO = {name for name in _BESSEL if name[6] in "KY"}
_FLUSHED = {*_POLE_AT_ZERO, "Expint", "Spence"}
"""Functions whose value at 0 differs from that of a number that is too small for the normal format."""
_SCALED = {"BesselI0", "BesselI1"}
"""Functions that TensorFlow computes from their scaled form, which rounds large values otherwise."""


def _computed(x: Any, *, name: str, function: str) -> Any:
    special = library("scipy.special", name)
    wide = x.astype(np.promote_types(x.dtype, np.float32))
    if name in _FLUSHED:
        wide = flush_subnormals(wide, np)
    if name in _SCALED:
        result = np.exp(np.abs(wide)) * getattr(special, f"{function}e")(wide)
    else:
        result = getattr(special, function)(wide)
    if name in _PART:
        result = result[_PART[name]]
    if name in _BELOW_ZERO:
        result = np.where(wide < 0, _BELOW_ZERO[name], result)
    if name == "Expint":
        result = np.where(wide == np.inf, np.nan, result)
    if name == "BesselY1" and wide.dtype == np.float32:
        result = np.where(wide == 0, np.nan, result)
    return np.asarray(result).astype(x.dtype)


def _register(name: str, function: str, doc: str, types: tuple[DataType, ...]) -> None:
    op = register_op(
        f"{name}(x: T) -> y: T",
        attrs=[f"T: {{{FLOATS_SPEC}}}"],
        shape_fn=unchanged_shape,
        traits="pointwise extra=scipy",
        doc=doc,
    )
    kernel: Callable[..., Any] = partial(_computed, name=name, function=function)
    if name in FUNCTIONS:
        register_float_function(name, by_blocks(FUNCTIONS[name]))
        types = tuple(one for one in types if one not in float_types(name))
    register_kernel(op, types={"T": types}, kind="elementwise")(lambda x: kernel(x))


for _name, (_in_scipy, _doc) in _BESSEL.items():
    _register(_name, _in_scipy, _doc, FLOATS[1:])
for _name, (_in_scipy, _doc) in _INTEGRALS.items():
    _register(_name, _in_scipy, _doc, _WIDE)


def _betainc_shape(c: InferenceContext) -> None:
    """Three inputs of the same shape, of which some may be scalars."""
    inputs = [c.input(i) for i in range(3)]
    others = [shape for shape in inputs if shape.dims != ()]
    if len(others) < 2:
        c.set_output(0, others[0] if others else inputs[0])
        return
    c.set_output(0, reduce(c.merge, others, c.unknown_shape()))


BETAINC = register_op(
    "Betainc(a: T, b: T, x: T) -> z: T",
    attrs=["T: {float, double}"],
    shape_fn=_betainc_shape,
    doc="The regularised incomplete beta function; scalars stand for tensors of the shape of the others.",
    traits="cost=series extra=scipy",
)


def check_betainc_shapes(a: Any, b: Any, x: Any) -> None:
    """Refuse tensors of different shapes, of which scalars have any."""
    shapes = [TensorShape(one.shape) for one in (a, b, x) if one.ndim]
    for shape in shapes[1:]:
        require_equal(
            shapes[0], shape, "Shapes of a, b, and x must all be equal or scalars; got {} and {}"
        )


@register_kernel(BETAINC, types={"T": _WIDE}, kind="same_shapes")
def betainc(a: Any, b: Any, x: Any) -> Any:
    """Computed in double: SciPy's function of floats loses what TensorFlow's keeps."""
    check_betainc_shapes(a, b, x)
    special = library("scipy.special", "Betainc")
    wide = [one.astype(np.float64) for one in (a, b, x)]
    has_value = np.all([(one > 0) & np.isfinite(one) for one in np.broadcast_arrays(*wide[:2])], 0)
    return np.where(has_value, special.betainc(*wide), np.nan).astype(a.dtype)


Derivative = Callable[[g.Tensor, g.Tensor], Any]


def _of_both(derivative: Derivative) -> g.GradientFunction:
    """The gradient of `y = f(x)` from `(x, y) -> f'(x)`."""
    return lambda op, grad: g.nodes.Mul(grad, derivative(op.inputs[0], op.outputs[0]))


def _at(point: float, value: float, derivative: Derivative) -> Derivative:
    """A derivative whose formula has no value at a point."""

    def whole(x: g.Tensor, y: g.Tensor) -> Any:
        there = g.nodes.Fill(g.shape_of(x), g.nodes.Cast(value, DstT=x.dtype))
        return g.nodes.SelectV2(g.nodes.Equal(x, point), there, derivative(x, y))

    return whole


def _i1e(x: g.Tensor, y: g.Tensor) -> Any:
    slope = g.nodes.AddV2(g.nodes.Sign(x), g.nodes.Reciprocal(x))
    return g.nodes.Sub(g.nodes.BesselI0e(x), g.nodes.Mul(y, slope))


def _k1e(x: g.Tensor, y: g.Tensor) -> Any:
    scaled = g.nodes.Mul(y, g.nodes.Sub(1, g.nodes.Reciprocal(x)))
    return g.nodes.Sub(scaled, g.nodes.BesselK0e(x))


def _angle(x: g.Tensor) -> Any:
    return g.nodes.Mul(math.pi / 2, g.nodes.Square(x))


_DERIVATIVES: dict[str, Derivative] = {
    "BesselI0": lambda x, y: g.nodes.BesselI1(x),
    "BesselI0e": lambda x, y: g.nodes.Sub(g.nodes.BesselI1e(x), g.nodes.Mul(g.nodes.Sign(x), y)),
    "BesselI1": _at(0, 1, lambda x, y: g.nodes.Sub(g.nodes.BesselI0(x), g.nodes.RealDiv(y, x))),
    "BesselI1e": _at(0, 0.5, _i1e),
    "BesselJ0": lambda x, y: g.nodes.Neg(g.nodes.BesselJ1(x)),
    "BesselJ1": _at(0, 0.5, lambda x, y: g.nodes.Sub(g.nodes.BesselJ0(x), g.nodes.RealDiv(y, x))),
    "BesselK0": lambda x, y: g.nodes.Neg(g.nodes.BesselK1(x)),
    "BesselK0e": lambda x, y: g.nodes.Sub(y, g.nodes.BesselK1e(x)),
    "BesselK1": lambda x, y: g.nodes.Neg(g.nodes.AddV2(g.nodes.BesselK0(x), g.nodes.RealDiv(y, x))),
    "BesselK1e": _k1e,
    "BesselY0": lambda x, y: g.nodes.Neg(g.nodes.BesselY1(x)),
    "BesselY1": lambda x, y: g.nodes.Sub(g.nodes.BesselY0(x), g.nodes.RealDiv(y, x)),
    "Dawsn": lambda x, y: g.nodes.Sub(1, g.nodes.Mul(2, g.nodes.Mul(x, y))),
    "Expint": lambda x, y: g.nodes.RealDiv(g.nodes.Exp(x), x),
    "FresnelCos": lambda x, y: g.nodes.Cos(_angle(x)),
    "FresnelSin": lambda x, y: g.nodes.Sin(_angle(x)),
    "Spence": _at(1, -1, lambda x, y: g.nodes.RealDiv(g.nodes.Log(x), g.nodes.Sub(1, x))),
}

for _name, _derivative in _DERIVATIVES.items():
    g.register_gradient(_name)(_of_both(_derivative))


@g.register_gradient("Betainc", not_derivative="a and b count as constants")
def betainc_gradient(op: g.Operation, grad: g.Tensor) -> g.Gradients:
    """The parameters count as constants."""
    a, b, x = op.inputs
    log_beta = g.nodes.Sub(
        g.nodes.AddV2(g.nodes.Lgamma(a), g.nodes.Lgamma(b)), g.nodes.Lgamma(g.nodes.AddV2(a, b))
    )
    power = g.nodes.AddV2(
        g.nodes.Xlog1py(g.nodes.Sub(b, 1), g.nodes.Neg(x)), g.nodes.Xlogy(g.nodes.Sub(a, 1), x)
    )
    density = g.nodes.Exp(g.nodes.Sub(power, log_beta))
    _, for_x = g.sum_to_operands(a, x, None, g.nodes.Mul(density, grad))
    return None, None, for_x


g.register_gradient("Polygamma", not_derivative="a counts as constant")(
    g.of_operands(
        lambda a, x, grad: (None, g.nodes.Mul(g.nodes.Polygamma(g.nodes.AddV2(a, 1), x), grad))
    )
)


@g.register_gradient("Zeta", not_derivative="x counts as constant")
@g.of_operands
def zeta_gradient(x: g.Tensor, q: g.Tensor, grad: g.Tensor) -> tuple[Any, Any]:
    """The exponent counts as constant."""
    by_q = g.nodes.Mul(g.nodes.Neg(x), g.nodes.Zeta(g.nodes.AddV2(x, 1), q))
    return None, g.nodes.Mul(by_q, grad)


@g.register_gradient("Igamma")
def igamma_gradient(op: g.Operation, grad: g.Tensor) -> g.Gradients:
    a, x = op.inputs
    log_power = g.nodes.Mul(g.nodes.Sub(a, 1), g.nodes.Log(x))
    by_x = g.nodes.Exp(g.nodes.Sub(g.nodes.Sub(log_power, x), g.nodes.Lgamma(a)))
    by_a = g.nodes.IgammaGradA(a, x)
    return g.sum_to_operands(a, x, g.nodes.Mul(by_a, grad), g.nodes.Mul(by_x, grad))


@g.register_gradient("Igammac")
def igammac_gradient(op: g.Operation, grad: g.Tensor) -> g.Gradients:
    for_a, for_x = igamma_gradient(op, grad)
    return g.nodes.Neg(for_a), g.nodes.Neg(for_x)


def _of_bell(factor: float) -> Callable[[g.Tensor], Any]:
    return lambda x: g.nodes.Mul(factor, g.nodes.Exp(g.nodes.Neg(g.nodes.Square(x))))


g.register_gradient("Erf")(g.of_argument(_of_bell(2 / math.sqrt(math.pi))))
g.register_gradient("Erfc")(g.of_argument(_of_bell(-2 / math.sqrt(math.pi))))
g.register_gradient("Lgamma")(g.of_argument(lambda x: g.nodes.Digamma(x)))
g.register_gradient("Digamma")(g.of_argument(lambda x: g.nodes.Polygamma(1, x)))
g.register_gradient("Erfinv")(
    g.of_result(lambda y: g.nodes.Mul(math.sqrt(math.pi) / 2, g.nodes.Exp(g.nodes.Square(y))))
)
g.register_gradient("Ndtri")(
    g.of_result(
        lambda y: g.nodes.Mul(
            math.sqrt(2 * math.pi), g.nodes.Exp(g.nodes.Mul(g.nodes.Square(y), 0.5))
        )
    )
)
