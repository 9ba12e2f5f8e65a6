"""Element-wise kernels: casts, sums, quotients, complex numbers, special functions.

XLA's casts of floating-point numbers to integers make what does not fit the nearest integer, and NaN 0. Processors make it
the lowest integer of the width that they convert to, and keep the bits that the type has. That is what TensorFlow's
kernels give, but for types that its vectors convert in another way than its single numbers.

Compiled code cannot refuse a zero among the divisors: as in XLA, a quotient of integers by zero has all bits set, and a
remainder by zero is the dividend.

Special functions are those of XLA; where JAX follows SciPy at the borders, they have TensorFlow's values there.

Source: TensorFlow compiler/tf2xla/kernels/binary_ops.cc, unary_ops.cc, special_math_ops.cc, random_ops.cc.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from opkernel.ops.math.arithmetic import add_n
from opkernel.ops.math.special_functions import check_betainc_shapes
from opkernel.ops.registration import COMPLEX, FLOAT8, FLOATS, INDEX, INTEGERS, NUMBERS
from opkernel.types import DataType
from opkernel.xla.jax_numpy import jax, jnp, lax
from opkernel.xla.register_kernel import register_xla_kernel

_FROM_32_BITS = frozenset(
    {
        *(DataType.DT_INT8, DataType.DT_INT16, DataType.DT_INT32),
        *(DataType.DT_UINT8, DataType.DT_UINT16),
    }
)


@register_xla_kernel(
    "Cast", types={"SrcT": [*FLOATS, *FLOAT8, *COMPLEX], "DstT": INTEGERS}, factory=True
)
def cast_to_integers(*, SrcT: DataType, DstT: DataType) -> Callable[[Any], Any]:
    target = DstT.numpy_dtype

    def cast(x: Any) -> Any:
        numbers = x.real if SrcT in COMPLEX else x
        if numbers.dtype.itemsize < 4:
            numbers = numbers.astype("float32")
        if DstT in _FROM_32_BITS:
            return _converted(numbers, 32).astype(target)
        if DstT is not DataType.DT_UINT64:
            return _converted(numbers, 64).astype(target)
        half = 2.0**63
        is_large = numbers >= half
        low = _converted(jnp().where(is_large, numbers - half, numbers), 64).astype(target)
        return jnp().where(is_large, low ^ target.type(1 << 63), low)

    return cast


def _converted(x: Any, bits: int) -> Any:
    """Numbers as integers of so many bits: the lowest one where they do not fit, and for NaN."""
    lowest = -(2.0 ** (bits - 1))
    fits = (x > lowest - 1) & (x < -lowest)
    return lax().convert_element_type(jnp().where(fits, x, lowest), f"int{bits}")


register_xla_kernel("AddN", types={"T": NUMBERS}, variants=True)(add_n)


@register_xla_kernel(["Div", "TruncateDiv"], types={"T": INTEGERS})
def truncate_div(x: Any, y: Any) -> Any:
    """The quotient, rounded towards 0."""
    return lax().div(*jnp().broadcast_arrays(x, y))


@register_xla_kernel(["Mod", "TruncateMod"], types={"T": INDEX})
def truncate_mod(x: Any, y: Any) -> Any:
    """The remainder, which has the sign of `x`."""
    return lax().rem(*jnp().broadcast_arrays(x, y))


@register_xla_kernel("FloorDiv", types={"T": INTEGERS})
def floor_div(x: Any, y: Any) -> Any:
    """The quotient, rounded down."""
    quotient = truncate_div(x, y)
    return jnp().where(_is_beyond(truncate_mod(x, y), y), quotient - 1, quotient)


@register_xla_kernel("FloorMod", types={"T": INTEGERS})
def floor_mod(x: Any, y: Any) -> Any:
    """The remainder, which has the sign of `y`."""
    remainder = truncate_mod(x, y)
    return jnp().where(_is_beyond(remainder, y), remainder + y, remainder)


def _is_beyond(remainder: Any, divisor: Any) -> Any:
    """Whether a quotient rounded towards 0 is not that rounded down."""
    return (remainder != 0) & ((remainder < 0) != (divisor < 0))


@register_xla_kernel("PopulationCount", types={"T": INTEGERS})
def population_count(x: Any) -> Any:
    """The number of bits set."""
    return lax().population_count(x)


@register_xla_kernel("Complex")
def make_complex(real: Any, imag: Any) -> Any:
    """As `real + 1j * imag`, which would make NaN of infinities."""
    return lax().complex(*jnp().broadcast_arrays(real, imag))


def _igamma(a: Any, x: Any) -> Any:
    xp = jnp()
    return xp.where(x == 0, 0, xp.where(a <= 0, xp.nan, lax().igamma(a, x)))


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
    "BesselI0": lambda x: jnp().exp(jnp().abs(x)) * lax().bessel_i0e(x),
    "BesselI0e": _function_of_lax("bessel_i0e"),
    "BesselI1": lambda x: jnp().exp(jnp().abs(x)) * lax().bessel_i1e(x),
    "BesselI1e": _function_of_lax("bessel_i1e"),
    "Digamma": _function_of_lax("digamma"),
    "Erfinv": _function_of_lax("erf_inv"),
    "Igamma": _igamma,
    "IgammaGradA": lambda a, x: _zero_at_borders(lax().igamma_grad_a(a, x), a, x),
    "Igammac": lambda a, x: jnp().where(a <= 0, jnp().nan, lax().igammac(a, x)),
    "Lgamma": _function_of_lax("lgamma"),
    "Ndtri": lambda x: jax("jax.scipy.special").ndtri(x),
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
