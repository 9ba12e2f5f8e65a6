"""The gamma function's logarithm and its derivatives, the incomplete gamma functions, the Hurwitz zeta function.

All of double tensors. Arguments are shifted upwards until asymptotic series hold, and reflected
where they are negative.

Series and continued fractions of incomplete functions are summed for all elements at once. Each element stops where it
has converged, or at the number of terms at which TensorFlow's kernels stop, so that it depends on no other element.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np

from opkernel.device.work_clock import SLOW, in_time
from opkernel.ops.math.error_functions import polynomial

_SHIFT = 8
_LGAMMA_SERIES = (1 / 12, -1 / 360, 1 / 1260, -1 / 1680, 1 / 1188, -691 / 360360, 1 / 156)
"""Stirling's series: B(2k) / (2k (2k - 1)), by powers of 1 / x**2."""
_DIGAMMA_SERIES = (1 / 12, -1 / 120, 1 / 252, -1 / 240, 1 / 132, -691 / 32760, 1 / 12)
"""B(2k) / 2k."""
_HALF_LOG_2_PI = 0.5 * np.log(2 * np.pi)

_ZETA_TERMS = 10
_BERNOULLI: Sequence[float] = (
    1 / 6, -1 / 30, 1 / 42, -1 / 30, 5 / 66, -691 / 2730, 7 / 6, -3617 / 510, 43867 / 798,
    -174611 / 330, 854513 / 138, -236364091 / 2730,
)  # fmt: skip


def lgamma(x: Any) -> Any:
    """The logarithm of the absolute value of the gamma function; infinite at its poles."""
    reflected = x < 0.5
    result = _lgamma_of_positive(np.where(reflected, 1 - x, x))
    sine = np.abs(np.sin(np.pi * (x - np.rint(x))))
    result = np.where(reflected, np.log(np.pi / sine) - result, result)
    result = np.where((x == 1) | (x == 2), 0.0, result)
    return np.where(np.isinf(x), np.inf, result)


def _lgamma_of_positive(x: Any) -> Any:
    low = x < _SHIFT
    product = x
    for i in range(1, _SHIFT):
        product = product * (x + i)
    x = np.where(low, x + _SHIFT, x)
    series = polynomial(1 / (x * x), _LGAMMA_SERIES) / x
    stirling = (x - 0.5) * np.log(x) - x + _HALF_LOG_2_PI + series
    return stirling - np.log(np.where(low, product, 1.0))


def digamma(x: Any) -> Any:
    """The derivative of `lgamma`; NaN at its poles."""
    reflected = x < 0.5
    result = _digamma_of_positive(np.where(reflected, 1 - x, x))
    distance = x - np.rint(x)
    result = np.where(reflected, result - np.pi / np.tan(np.pi * distance), result)
    return np.where((x <= 0) & (distance == 0), np.nan, result)


def _digamma_of_positive(x: Any) -> Any:
    low = x < _SHIFT
    total = sum(1 / (x + i) for i in range(_SHIFT))
    x = np.where(low, x + _SHIFT, x)
    inverse = 1 / (x * x)
    asymptotic = np.log(x) - 0.5 / x - inverse * polynomial(inverse, _DIGAMMA_SERIES)
    return asymptotic - np.where(low, total, 0.0)


def zeta(x: Any, q: Any) -> Any:
    """The sum of `(q + n) ** -x` over n = 0, 1, ...; infinite at poles, NaN where not defined."""
    whole_x, whole_q = x == np.floor(x), q == np.floor(q)
    even_x = (x % 2 == 0) | np.isinf(x)
    below = np.where(q < 0, -np.floor(q), 0.0)
    first = q + below  # what q is after as many terms
    result = _zeta_of_positive(x, first)
    last = np.ceil(q) - q  # the size of the negative number nearest to 0
    mirrored = _zeta_of_positive(x, last) - _zeta_of_positive(x, last + below)
    result = np.where(below > 0, result + np.where(even_x, mirrored, -mirrored), result)
    limit = np.where(q > 1, 0.0, np.where(q == 1, 1.0, np.inf))
    result = np.where(np.isinf(x) | np.isinf(q), limit, result)
    result = np.where((q <= 0) & ~whole_q & ~whole_x, np.nan, result)
    result = np.where((q <= 0) & whole_q, np.where(even_x, np.inf, np.nan), result)
    result = np.where((x < 1) | np.isnan(x) | np.isnan(q), np.nan, result)
    return np.where(x == 1, np.inf, result)


def _zeta_of_positive(x: Any, q: Any) -> Any:
    """The first terms, and Euler and Maclaurin's sum for the rest."""
    total = sum((q + n) ** -x for n in range(_ZETA_TERMS))
    w = q + _ZETA_TERMS
    power = w**-x
    total = total + power * w / (x - 1) + 0.5 * power
    factor = x * power / w / 2
    for j, bernoulli in enumerate(_BERNOULLI, 1):
        total = total + bernoulli * factor
        k = 2 * j
        factor = factor * (x + k - 1) * (x + k) / ((k + 1) * (k + 2)) / (w * w)
    return total


def polygamma(n: Any, x: Any) -> Any:
    """Derivative number `n` of `digamma`; NaN unless `n` is a natural number."""
    order = n + 1
    sign = np.where(order % 2 == 1, -1.0, 1.0)
    result = sign * np.exp(lgamma(order)) * zeta(order, x)
    result = np.where(n == 0, digamma(x), result)
    return np.where((n < 0) | (n != np.floor(n)), np.nan, result)


_EPSILON = float(np.finfo(np.float64).eps)
_TINY = 1e-300
_SAMPLE_TERMS = 2000


def igamma(a: Any, x: Any, max_terms: int) -> Any:
    """The lower incomplete gamma function, P(a, x)."""
    a, x = np.broadcast_arrays(a, x)
    by_series = (x <= 1) | (x <= a)
    series = _gamma_series(np.where(by_series, a, 1.0), np.where(by_series, x, 0.5), max_terms)
    fraction = _gamma_fraction(np.where(by_series, 1.0, a), np.where(by_series, 2.0, x), max_terms)
    result = np.where(by_series, series, 1 - fraction)
    result = np.where(np.isinf(x), 1.0, result)
    result = np.where(np.isinf(a), 0.0, result)
    undefined = (a <= 0) | (x < 0) | np.isnan(a) | np.isnan(x)
    return np.where(x == 0, 0.0, np.where(undefined, np.nan, result))


def igammac(a: Any, x: Any, max_terms: int) -> Any:
    """The upper incomplete gamma function, Q(a, x) = 1 - P(a, x)."""
    a, x = np.broadcast_arrays(a, x)
    by_series = (x < 1) | (x < a)
    series = _gamma_series(np.where(by_series, a, 1.0), np.where(by_series, x, 0.5), max_terms)
    fraction = _gamma_fraction(np.where(by_series, 1.0, a), np.where(by_series, 2.0, x), max_terms)
    result = np.where(by_series, 1 - series, fraction)
    result = np.where(np.isinf(a), 1.0, result)
    result = np.where(np.isinf(x), 0.0, result)
    return np.where((a <= 0) | (x < 0) | np.isnan(a) | np.isnan(x), np.nan, result)


def _gamma_weight(a: Any, x: Any) -> Any:
    """x**a * exp(-x) / gamma(a)."""
    logarithm = lgamma(a)
    return np.where(np.isinf(logarithm), 0.0, np.exp(a * np.log(x) - x - logarithm))


def _gamma_series(a: Any, x: Any, max_terms: int) -> Any:
    """P(a, x) by its power series."""
    term = np.ones_like(x)
    total = np.ones_like(x)
    goes_on = np.ones(x.shape, bool)
    for n in in_time(range(1, max_terms), SLOW):
        term = term * x / (a + n)
        total = np.where(goes_on, total + term, total)
        goes_on &= ~(term <= _EPSILON * total)
        if not goes_on.any():
            break
    return total * _gamma_weight(a, x) / a


def _gamma_fraction(a: Any, x: Any, max_terms: int) -> Any:
    """Q(a, x) by Legendre's continued fraction, evaluated as Lentz does."""
    b = x + 1 - a
    c = np.full_like(x, 1 / _TINY)
    d = 1 / b
    result = d
    goes_on = np.ones(x.shape, bool)
    for n in in_time(range(1, max_terms), SLOW):
        factor = n * (a - n)
        b = b + 2
        d = 1 / _not_zero(b + factor * d)
        c = _not_zero(b + factor / c)
        change = c * d
        result = np.where(goes_on, result * change, result)
        goes_on &= ~(np.abs(change - 1) <= _EPSILON)
        if not goes_on.any():
            break
    return result * _gamma_weight(a, x)


def igamma_grad_a(a: Any, x: Any, max_terms: int) -> Any:
    """The derivative of P(a, x) by `a`: of the series, or of the fraction, term by term."""
    a, x = np.broadcast_arrays(a, x)
    by_series = (x <= 1) | (x <= a)
    slope = _slope_by_weight(a, x, by_series, max_terms)
    result = np.where(np.isinf(x) | np.isinf(a), 0.0, slope * _gamma_weight(a, x))
    undefined = (a <= 0) | (x < 0) | np.isnan(a) | np.isnan(x)
    return np.where(x == 0, 0.0, np.where(undefined, np.nan, result))


def gamma_sample_slope(a: Any, x: Any) -> Any:
    """How a number `x` of the gamma distribution of `a` grows with `a`, while P(a, x) stays."""
    a, x = np.broadcast_arrays(a, x)
    slope = -x * _slope_by_weight(a, x, (x <= 1) | (x <= a), _SAMPLE_TERMS)
    result = np.where(np.isinf(x) | np.isinf(a) | (_gamma_weight(a, x) == 0), 0.0, slope)
    undefined = (a <= 0) | (x < 0) | np.isnan(a) | np.isnan(x)
    return np.where(x == 0, 0.0, np.where(undefined, np.nan, result))


def _slope_by_weight(a: Any, x: Any, by_series: Any, max_terms: int) -> Any:
    """The derivative of P(a, x) by `a`, divided by `_gamma_weight`."""
    series = _series_slope(np.where(by_series, a, 1.0), np.where(by_series, x, 0.5), max_terms)
    fraction = _fraction_slope(np.where(by_series, 1.0, a), np.where(by_series, 2.0, x), max_terms)
    return np.where(by_series, series, -fraction)


def _series_slope(a: Any, x: Any, max_terms: int) -> Any:
    """The derivative of `_gamma_series` by `a`, divided by `_gamma_weight`."""
    term, total = np.ones_like(x), np.ones_like(x)
    logarithmic, slope = np.zeros_like(x), np.zeros_like(x)  # that of the term's logarithm
    goes_on = np.ones(x.shape, bool)
    for n in in_time(range(1, max_terms), SLOW):
        term = term * x / (a + n)
        logarithmic = logarithmic - 1 / (a + n)
        share = term * logarithmic
        total = np.where(goes_on, total + term, total)
        slope = np.where(goes_on, slope + share, slope)
        goes_on &= ~(np.abs(share) <= _EPSILON * np.abs(slope))
        if not goes_on.any():
            break
    of_weight = np.log(x) - digamma(a + 1)
    return (slope + total * of_weight) / a


def _fraction_slope(a: Any, x: Any, max_terms: int) -> Any:
    """The derivative of `_gamma_fraction` by `a`, divided by `_gamma_weight`.

    Names with `_a` are derivatives.
    """
    b = x + 1 - a
    c, c_a = np.full_like(x, 1 / _TINY), np.zeros_like(x)
    d = 1 / b
    d_a = d * d
    result, result_a = d, d_a
    goes_on = np.ones(x.shape, bool)
    for n in in_time(range(1, max_terms), SLOW):
        factor = n * (a - n)
        b = b + 2
        below = _not_zero(b + factor * d)
        d, d_a = 1 / below, (1 - n * d - factor * d_a) / (below * below)
        c, c_a = _not_zero(b + factor / c), (n - factor * c_a / c) / c - 1
        change, change_a = c * d, c_a * d + c * d_a
        slope = result_a * change + result * change_a
        result, result_a = (
            np.where(goes_on, result * change, result),
            np.where(goes_on, slope, result_a),
        )
        goes_on &= ~(np.abs(change - 1) + np.abs(change_a) <= _EPSILON)
        if not goes_on.any():
            break
    of_weight = np.log(x) - digamma(a)
    return result_a + result * of_weight


def _not_zero(value: Any) -> Any:
    return np.where(np.abs(value) < _TINY, _TINY, value)
