"""The error function, its complement and their inverses.

Coefficients were fitted with 50 digits at Chebyshev nodes. The relative errors named below are errors of
the results, in the arithmetic that computes them.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np

# erf(x) = tanh(x * p(x**2)); the last coefficient being positive, tanh saturates by itself.
ERF_FLOAT = (
    1.1283792742452188,
    0.1027690563049238,
    -0.00019183188136037352,
    -0.0006197837913866563,
    8.763702200835846e-05,
    -5.668428735984554e-06,
    1.4184969139574566e-07,
)

# erf(x) = x * p(x**2) for |x| < 1.
_ERF_DOUBLE = (
    1.1283791670955126,
    -0.37612638903183543,
    0.11283791670945006,
    -0.02686617064323777,
    0.0052239776071164225,
    -0.0008548325975389692,
    0.00012055294904839707,
    -1.492473690741966e-05,
    1.6447424703317362e-06,
    -1.6208483801871705e-07,
    1.3720064546777686e-08,
    -7.795898827002142e-10,
)

# erfc(x) = exp(-x**2) * p((x - m) / (x + m)) / (x + m) for x >= 0.
ERFC_MIDDLE = 2.5
ERFC_FLOAT = (
    1.054031820305718,
    -0.8046529266994805,
    0.4539168939974472,
    -0.17123645255015782,
    0.028324049163106733,
    0.008336820378755454,
    -0.00467913853061409,
    -0.00035274287573896254,
    0.0005014305188258932,
)
_ERFC_DOUBLE = (
    1.054031820305718,
    -0.8046518494391478,
    0.4539141166480906,
    -0.17125114524614235,
    0.028361550132517403,
    0.008393044305179788,
    -0.004818785537150639,
    -0.00043920830323222775,
    0.0007026938926102571,
    5.83080689218572e-05,
    -0.00011260595962390346,
    -1.9533342675993888e-05,
    1.8248947018607358e-05,
    6.75730698232791e-06,
    -2.3441492401194723e-06,
    -1.9678841942096177e-06,
    1.4114590674799396e-08,
    4.5385476076692694e-07,
    1.158815795885775e-07,
    -7.383452674868011e-08,
    -3.731215331353413e-08,
    6.287952804052444e-09,
    4.8099213547024485e-09,
)


def polynomial(x: Any, coefficients: Sequence[float]) -> Any:
    """The polynomial with these coefficients, that of the constant term first."""
    result = x * coefficients[-1]
    for coefficient in coefficients[-2:0:-1]:
        result += coefficient
        result *= x
    result += coefficients[0]
    return result


def erf_float(x: Any, *, xp: Any) -> Any:
    """The error function of a float tensor, to 3e-7."""
    argument = polynomial(x * x, ERF_FLOAT)
    argument *= x
    return xp.tanh(argument)


def erfc_float(x: Any, *, xp: Any) -> Any:
    """The complementary error function of a float tensor, to 7e-7; to 4e-6 where below 1e-8."""
    result = _erfc_of_positive(xp.abs(x), ERFC_FLOAT, xp)
    negative = (x < 0).astype(x.dtype)  # arithmetic on it is faster than a choice by it
    negative *= 2
    result += negative * (1 - result)
    return result


def erf_double(x: Any, *, xp: Any) -> Any:
    """The error function of a double tensor, to 1e-15. NaN where the square of `x` overflows, as TensorFlow's."""
    square = x * x
    small = polynomial(square, _ERF_DOUBLE) * x
    large = xp.copysign(1 - _erfc_of_positive(xp.abs(x), _ERFC_DOUBLE, xp), x)
    return xp.where(xp.isinf(square), np.nan, xp.where(square < 1, small, large))


def erfc_double(x: Any, *, xp: Any) -> Any:
    """The complementary error function of a double tensor, to 6e-14."""
    complement = _erfc_of_positive(xp.abs(x), _ERFC_DOUBLE, xp)
    return xp.where(x < 0, 2 - complement, complement)


def _erfc_of_positive(x: Any, coefficients: Sequence[float], xp: Any) -> Any:
    inverse = 1 / (x + ERFC_MIDDLE)
    result = polynomial(1 - 2 * ERFC_MIDDLE * inverse, coefficients)
    result *= inverse
    result *= xp.exp(-x * x)
    return result


def ndtri(p: Any, *, xp: Any) -> Any:
    """The quantile of the standard normal distribution, of a double tensor of probabilities."""
    tail = 2 * xp.minimum(p, 1 - p)
    return xp.copysign(np.sqrt(2.0) * _inverse_erf(1 - tail, tail, xp), p - 0.5)


def _inverse_erf(size: Any, complement: Any, xp: Any) -> Any:
    """The number y >= 0 with erf(y) = size = 1 - complement.

    Starts from Hastings' approximation of normal quantiles, which is right to 5e-4, or near 0 from
    the slope there; each of Halley's steps triples the digits.
    """
    t = xp.sqrt(-2 * xp.log(complement / 2))
    numerator = polynomial(t, (2.515517, 0.802853, 0.010328))
    tail = (t - numerator / polynomial(t, (1.0, 1.432788, 0.189269, 0.001308))) / np.sqrt(2.0)
    y = xp.where(size < 0.2, size * (np.sqrt(np.pi) / 2), tail)
    for _ in range(2):
        excess = xp.where(
            size < 0.5, erf_double(y, xp=xp) - size, complement - erfc_double(y, xp=xp)
        )
        step = excess * (np.sqrt(np.pi) / 2) * xp.exp(y * y)
        y = y - step / (1 + y * step)
    return xp.where(complement == 0, np.inf, y)


def rounded_exp(x: Any) -> Any:
    """exp(x), of float and half rounded once, as the C library does; NumPy's of float is off by up to 2 units."""
    if x.dtype == np.float64:
        return np.exp(x)
    return np.exp(x, dtype=np.float64).astype(np.float32).astype(x.dtype, copy=False)
