"""The gamma function's logarithm and its derivatives, the Hurwitz zeta function.

All of double tensors. Arguments are shifted upwards until asymptotic series hold, and reflected
where they are negative.
"""

from typing import Any

import numpy as np

from opkernel.ops.math.error_functions import polynomial

SHIFT = 8
LGAMMA_SERIES = (1 / 12, -1 / 360, 1 / 1260, -1 / 1680, 1 / 1188, -691 / 360360, 1 / 156)
"""Stirling's series: B(2k) / (2k (2k - 1)), by powers of 1 / x**2."""
_DIGAMMA_SERIES = (1 / 12, -1 / 120, 1 / 252, -1 / 240, 1 / 132, -691 / 32760, 1 / 12)
"""B(2k) / 2k."""
HALF_LOG_2_PI = 0.5 * np.log(2 * np.pi)

ZETA_TERMS = 10
BERNOULLI = (
    1 / 6, -1 / 30, 1 / 42, -1 / 30, 5 / 66, -691 / 2730, 7 / 6, -3617 / 510, 43867 / 798,
    -174611 / 330, 854513 / 138, -236364091 / 2730,
)  # fmt: skip


def lgamma(x: Any) -> Any:
    """The logarithm of the absolute value of the gamma function; infinite at its poles."""
    reflected = x < 0.5
    result = lgamma_of_positive(np.where(reflected, 1 - x, x))
    sine = np.abs(np.sin(np.pi * (x - np.rint(x))))
    result = np.where(reflected, np.log(np.pi / sine) - result, result)
    result = np.where((x == 1) | (x == 2), 0.0, result)
    return np.where(np.isinf(x), np.inf, result)


def lgamma_of_positive(x: Any) -> Any:
    """As `lgamma`, of finite numbers above 0."""
    low = x < SHIFT
    product = x
    for i in range(1, SHIFT):
        product = product * (x + i)
    x = np.where(low, x + SHIFT, x)
    series = polynomial(1 / (x * x), LGAMMA_SERIES) / x
    stirling = (x - 0.5) * np.log(x) - x + HALF_LOG_2_PI + series
    return stirling - np.log(np.where(low, product, 1.0))


def digamma(x: Any) -> Any:
    """The derivative of `lgamma`; NaN at its poles."""
    reflected = x < 0.5
    result = digamma_of_positive(np.where(reflected, 1 - x, x))
    distance = x - np.rint(x)
    result = np.where(reflected, result - np.pi / np.tan(np.pi * distance), result)
    return np.where((x <= 0) & (distance == 0), np.nan, result)


def digamma_of_positive(x: Any) -> Any:
    """As `digamma`, of finite numbers above 0."""
    low = x < SHIFT
    total = sum(1 / (x + i) for i in range(SHIFT))
    x = np.where(low, x + SHIFT, x)
    inverse = 1 / (x * x)
    asymptotic = np.log(x) - 0.5 / x - inverse * polynomial(inverse, _DIGAMMA_SERIES)
    return asymptotic - np.where(low, total, 0.0)


def zeta(x: Any, q: Any) -> Any:
    """The sum of `(q + n) ** -x` over n = 0, 1, ...; infinite at poles, NaN where not defined."""
    x, q = np.broadcast_arrays(x, q)
    result = np.full(x.shape, np.nan)
    result[x == 1] = np.inf
    whole_q, even_x = q == np.floor(q), (x % 2 == 0) | np.isinf(x)
    inside = (x > 1) & ~np.isnan(q)
    result[inside & (q <= 0) & whole_q & even_x] = np.inf
    inside &= (q > 0) | ~whole_q & (x == np.floor(x))
    ends = inside & (np.isinf(x) | np.isinf(q))
    limit = np.where(q > 1, 0.0, np.where(q == 1, 1.0, np.inf))
    result[ends] = limit[ends]
    inside &= ~ends
    result[inside] = _finite_zeta(x[inside], q[inside], even_x[inside])
    return result


def _finite_zeta(x: Any, q: Any, even_x: Any) -> Any:
    below = np.where(q < 0, -np.floor(q), 0.0)
    result = zeta_of_positive(x, q + below)
    is_low = below > 0
    if is_low.any():
        x, q, below = x[is_low], q[is_low], below[is_low]
        last = np.ceil(q) - q  # the size of the negative number nearest to 0
        mirrored = zeta_of_positive(x, last) - zeta_of_positive(x, last + below)
        result[is_low] += np.where(even_x[is_low], mirrored, -mirrored)
    return result


def zeta_of_positive(x: Any, q: Any) -> Any:
    """The first terms, and Euler and Maclaurin's sum for the rest."""
    total = sum((q + n) ** -x for n in range(ZETA_TERMS))
    w = q + ZETA_TERMS
    power = w**-x
    total = total + power * w / (x - 1) + 0.5 * power
    factor = x * power / w / 2
    for j, bernoulli in enumerate(BERNOULLI, 1):
        total = total + bernoulli * factor
        k = 2 * j
        factor = factor * (x + k - 1) * (x + k) / ((k + 1) * (k + 2)) / (w * w)
    return total


def polygamma(n: Any, x: Any) -> Any:
    """Derivative number `n` of `digamma`; NaN unless `n` is a natural number."""
    n, x = np.broadcast_arrays(n, x)
    result = np.full(n.shape, np.nan)
    is_first, is_later = n == 0, (n > 0) & (n == np.floor(n))
    if is_first.any():
        result[is_first] = digamma(x[is_first])
    if not is_later.any():
        return result
    order = n[is_later] + 1
    sign = np.where(order % 2 == 1, -1.0, 1.0)
    result[is_later] = sign * np.exp(lgamma(order)) * zeta(order, x[is_later])
    return result
