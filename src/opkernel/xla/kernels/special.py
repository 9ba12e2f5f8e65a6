"""Special functions, by those of XLA; where JAX follows SciPy at the borders, by TensorFlow's values there.

Source: TensorFlow compiler/tf2xla/kernels/unary_ops.cc, binary_ops.cc, special_math_ops.cc, random_ops.cc.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from opkernel.ops.math.bessel import check_betainc_shapes
from opkernel.xla.jax_numpy import jax, jnp, lax
from opkernel.xla.register_kernel import register_xla_kernel


def _bessel_i0(x: Any) -> Any:
    return jnp().exp(jnp().abs(x)) * lax().bessel_i0e(x)


def _bessel_i1(x: Any) -> Any:
    return jnp().exp(jnp().abs(x)) * lax().bessel_i1e(x)


def _ndtri(x: Any) -> Any:
    return jax("jax.scipy.special").ndtri(x)


def _igamma(a: Any, x: Any) -> Any:
    xp = jnp()
    return xp.where(x == 0, 0, xp.where(a <= 0, xp.nan, lax().igamma(a, x)))


def _igammac(a: Any, x: Any) -> Any:
    return jnp().where(a <= 0, jnp().nan, lax().igammac(a, x))


def _igamma_grad_a(a: Any, x: Any) -> Any:
    return _zero_at_borders(lax().igamma_grad_a(a, x), a, x)


def _random_gamma_grad(a: Any, x: Any) -> Any:
    """In double: large differences of float lose the fifth digit."""
    wide = (one.astype(jnp().float64) for one in (a, x))
    return _zero_at_borders(lax().random_gamma_grad(*wide), a, x).astype(a.dtype)


def _zero_at_borders(slope: Any, a: Any, x: Any) -> Any:
    """A slope by `a`, which is 0 where `x` is 0 or, both being allowed, one is infinite."""
    xp = jnp()
    is_endless = (a > 0) & (x > 0) & (xp.isinf(a) | xp.isinf(x))
    return xp.where((x == 0) | is_endless, 0, slope)


def _zeta(x: Any, q: Any) -> Any:
    xp = jnp()
    found = xp.where((x == xp.inf) & (q < 1), xp.inf, lax().zeta(x, q))
    return xp.where(x < 1, xp.nan, found)


def _polygamma(n: Any, x: Any) -> Any:
    xp = jnp()
    return xp.where((n == xp.inf) & (x <= 1), xp.inf, lax().polygamma(n, x))


def _function_of_lax(name: str) -> Callable[..., Any]:
    return lambda *inputs: getattr(lax(), name)(*inputs)


_FUNCTIONS: dict[str, Callable[..., Any]] = {
    "BesselI0": _bessel_i0,
    "BesselI0e": _function_of_lax("bessel_i0e"),
    "BesselI1": _bessel_i1,
    "BesselI1e": _function_of_lax("bessel_i1e"),
    "Digamma": _function_of_lax("digamma"),
    "Erfinv": _function_of_lax("erf_inv"),
    "Igamma": _igamma,
    "IgammaGradA": _igamma_grad_a,
    "Igammac": _igammac,
    "Lgamma": _function_of_lax("lgamma"),
    "Ndtri": _ndtri,
    "Polygamma": _polygamma,
    "RandomGammaGrad": _random_gamma_grad,
    "Zeta": _zeta,
}


def _register(op: str, function: Callable[..., Any]) -> None:
    """Register a function of tensors of one shape; of narrow types, it is computed in float."""

    @register_xla_kernel(op, factory=True)
    def make() -> Callable[..., Any]:
        def computed(*inputs: Any) -> Any:
            dtype = jnp().promote_types(inputs[0].dtype, jnp().float32)
            tensors = [tensor.astype(dtype) for tensor in inputs]
            return function(*jnp().broadcast_arrays(*tensors))

        return computed


for _op, _function in _FUNCTIONS.items():
    _register(_op, _function)


@register_xla_kernel("Betainc")
def betainc(a: Any, b: Any, x: Any) -> Any:
    """The regularised incomplete beta function; NaN unless `a` and `b` are positive and finite."""
    check_betainc_shapes(a, b, x)
    xp = jnp()
    has_value = (a > 0) & (b > 0) & xp.isfinite(a) & xp.isfinite(b)
    return xp.where(has_value, jax("jax.scipy.special").betainc(a, b, x), xp.nan)
