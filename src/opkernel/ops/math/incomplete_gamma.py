"""The incomplete gamma functions, and their derivatives.

All of double tensors. P(a, x) is a power series where x is small beside a, else 1 less Legendre's continued fraction.
The sums run for all elements at once, and elements leave where they have converged, or at the number of terms at which
TensorFlow's kernels stop. So an element depends on no other.

Source: TensorFlow core/kernels/cwise_op_igamma.cc; Eigen unsupported/Eigen/src/SpecialFunctions.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from opkernel.device.budget import check_time
from opkernel.ops.math.gamma_functions import digamma_of_positive, lgamma_of_positive
from opkernel.types import Array

TERMS_AT_ONCE = 4
"""After so many terms elements are looked at that have converged."""

_ELEMENTS_AT_ONCE = 1 << 12
"""Their sums are in the processor's cache."""


class Terms(NamedTuple):
    """When sums end.

    Attributes:
        most: The most terms, with the first, which is 1.
        epsilon: How small a term is beside the sum when it has converged.
    """

    most: int
    epsilon: float


class Sums(NamedTuple):
    """Functions of `a`, `x`, the number of terms and the epsilon; arrays are [n].

    Attributes:
        series: P(a, x) of its power series, times `a` by the weight.
        fraction: Q(a, x) of its continued fraction by the weight.
        series_slope: `series`, and its derivative by `a`.
        fraction_slope: `fraction`, and its derivative by `a`.
    """

    series: Callable[[Array, Array, int, float], Any]
    fraction: Callable[[Array, Array, int, float], Any]
    series_slope: Callable[[Array, Array, int, float], Any]
    fraction_slope: Callable[[Array, Array, int, float], Any]


def igamma(a: Array, x: Array, sums: Sums, terms: Terms) -> Array:
    """The lower incomplete gamma function, P(a, x)."""

    def compute(a: Array, x: Array) -> Array:
        weight, lower = _weight(a, x), (x <= 1) | (x <= a)
        series, fraction = _parts(a, x, lower, (sums.series, sums.fraction), terms)
        return _merged(lower, series * weight[lower] / a[lower], 1 - fraction * weight[~lower])

    return _zero_at_zero(x, _of_regular(a, x, compute, infinite_x=1.0, infinite_a=0.0))


def igammac(a: Array, x: Array, sums: Sums, terms: Terms) -> Array:
    """The upper incomplete gamma function, Q(a, x) = 1 - P(a, x)."""

    def compute(a: Array, x: Array) -> Array:
        weight, lower = _weight(a, x), (x < 1) | (x < a)
        series, fraction = _parts(a, x, lower, (sums.series, sums.fraction), terms)
        return _merged(lower, 1 - series * weight[lower] / a[lower], fraction * weight[~lower])

    return _of_regular(a, x, compute, at_zero=1.0, infinite_a=1.0)


def igamma_grad_a(a: Array, x: Array, sums: Sums, terms: Terms) -> Array:
    """The derivative of P(a, x) by `a`: of the series, or of the fraction, term by term."""

    def compute(a: Array, x: Array) -> Array:
        slope = _slope_by_weight(a, x, sums, terms)
        slope *= _weight(a, x)
        return slope

    return _zero_at_zero(x, _of_regular(a, x, compute))


def gamma_sample_slope(a: Array, x: Array, sums: Sums, terms: Terms) -> Array:
    """How a number `x` of the gamma distribution of `a` grows with `a`, while P(a, x) stays."""

    def compute(a: Array, x: Array) -> Array:
        slope = -x * _slope_by_weight(a, x, sums, terms)
        slope[_weight(a, x) == 0] = 0.0
        return slope

    return _zero_at_zero(x, _of_regular(a, x, compute))


def _of_regular(
    a: Array,
    x: Array,
    compute: Callable[[Array, Array], Array],
    *,
    at_zero: float = 0.0,
    infinite_x: float = 0.0,
    infinite_a: float = 0.0,
) -> Array:
    """A function of positive numbers, with the limits that it has, 0 where both are infinite; NaN elsewhere."""
    a, x = np.broadcast_arrays(a, x)
    result = np.where(np.isinf(x), infinite_x, np.where(np.isinf(a), infinite_a, at_zero))
    result[np.isinf(a) & np.isinf(x)] = 0.0
    result[(a <= 0) | (x < 0) | np.isnan(a) | np.isnan(x)] = np.nan
    flat = result.reshape(-1)
    a, x = a.reshape(-1), x.reshape(-1)
    rows = np.flatnonzero((a > 0) & (x > 0) & (a < np.inf) & (x < np.inf))
    for start in range(0, rows.size, _ELEMENTS_AT_ONCE):
        check_time("summing series")
        part = rows[start : start + _ELEMENTS_AT_ONCE]
        flat[part] = compute(a[part], x[part])
    return result


def _zero_at_zero(x: Array, values: Array) -> Array:
    """The values, but 0 where `x` is, even for an `a` that is not defined."""
    result: Array = np.where(x == 0, 0.0, values)
    return result


def _weight(a: Array, x: Array) -> Any:
    """x**a * exp(-x) / gamma(a)."""
    return np.exp(a * np.log(x) - x - lgamma_of_positive(a))


def _parts(
    a: Array, x: Array, is_first: Array, functions: tuple[Any, Any], terms: Terms
) -> tuple[Any, Any]:
    """The sums of the elements that are by series, and of those that are by fraction."""
    first, second = (
        function(a[part], x[part], *terms)
        for function, part in zip(functions, (is_first, ~is_first), strict=True)
    )
    return first, second


def _merged(is_first: Array, first: Any, second: Any) -> Array:
    result = np.empty(is_first.shape)
    result[is_first] = first
    result[~is_first] = second
    return result


def _slope_by_weight(a: Array, x: Array, sums: Sums, terms: Terms) -> Array:
    """The derivative of P(a, x) by `a`, divided by `_weight`."""
    lower = (x <= 1) | (x <= a)
    of_series, of_fraction = _parts(a, x, lower, (sums.series_slope, sums.fraction_slope), terms)
    logarithm = np.log(x)
    (total, slope), below = of_series, a[lower]
    series = (slope + total * (logarithm[lower] - digamma_of_positive(below + 1))) / below
    total, slope = of_fraction
    fraction = slope + total * (logarithm[~lower] - digamma_of_positive(a[~lower]))
    return _merged(lower, series, -fraction)


def _summed(
    step: Callable[..., list[Array]],
    is_done: Callable[..., Array],
    state: list[Array],
    results: int,
    count: int,
) -> list[Array]:
    """The first arrays of the state, of each element once it has converged.

    Args:
        step: Of the number of a term and the state the next state.
        is_done: Of the state whether elements have converged.
        state: The first state.
        results: How many arrays of the state are results.
        count: The most terms.
    """
    found = [np.empty_like(one) for one in state[:results]]
    rows = np.arange(state[0].size)
    for n in range(1, count):
        if not rows.size:
            break
        state = step(n, *state)
        done = is_done(*state) if n % TERMS_AT_ONCE == 0 else None
        if done is not None and done.any():
            leave, stay = np.flatnonzero(done), np.flatnonzero(~done)
            for one, values in zip(found, state, strict=False):
                one[rows[leave]] = values[leave]
            rows, state = rows[stay], [values[stay] for values in state]
    for one, values in zip(found, state, strict=False):
        one[rows] = values
    return found


def series(a: Array, x: Array, count: int, epsilon: float) -> Array:
    """As `Sums.series`."""

    def step(n: int, total: Array, term: Array, a: Array, x: Array) -> list[Array]:
        term = term * x / (a + n)
        return [total + term, term, a, x]

    def is_done(total: Array, term: Array, *_: Array) -> Array:
        return term <= epsilon * total

    ones = np.ones_like(x)
    return _summed(step, is_done, [ones, ones, a, x], 1, count)[0]


def fraction(a: Array, x: Array, count: int, epsilon: float) -> Array:
    """As `Sums.fraction`, evaluated as Steed does; no denominator is 0 where `x >= a`."""

    def step(n: int, total: Array, term: Array, b: Array, d: Array, a: Array) -> list[Array]:
        b = b + 2
        product = n * (a - n) * d
        d = 1 / (b + product)
        term = -(product * d) * term
        return [total + term, term, b, d, a]

    def is_done(total: Array, term: Array, *_: Array) -> Array:
        return np.abs(term) <= epsilon * total

    b = x + 1 - a
    d = 1 / b
    return _summed(step, is_done, [d, d, b, d, a], 1, count)[0]


def series_slope(a: Array, x: Array, count: int, epsilon: float) -> list[Array]:
    """As `Sums.series_slope`."""

    def step(n: int, total: Array, slope: Array, *state: Array) -> list[Array]:
        _, term, of_log, a, x = state
        inverse = 1 / (a + n)
        term = term * x * inverse
        of_log = of_log - inverse  # the derivative of the term's logarithm
        share = term * of_log
        return [total + term, slope + share, share, term, of_log, a, x]

    ones, zeros = np.ones_like(x), np.zeros_like(x)
    state = [ones, zeros, zeros, ones, zeros, a, x]
    return _summed(step, _is_slope_done(epsilon), state, 2, count)


def fraction_slope(a: Array, x: Array, count: int, epsilon: float) -> list[Array]:
    """As `Sums.fraction_slope`, evaluated as `fraction`; names with `_a` are derivatives."""

    def step(n: int, total: Array, total_a: Array, *state: Array) -> list[Array]:
        term_a, term, b, d, d_a, a = state
        b = b + 2
        factor = n * (a - n)
        product, product_a = factor * d, n * d + factor * d_a
        d = 1 / (b + product)
        d_a = (1 - product_a) * (d * d)
        term_a = -((product_a * d + product * d_a) * term + product * d * term_a)
        term = -(product * d) * term
        return [total + term, total_a + term_a, term_a, term, b, d, d_a, a]

    b = x + 1 - a
    d = 1 / b
    d_a = d * d
    return _summed(step, _is_slope_done(epsilon), [d, d_a, d_a, d, b, d, d_a, a], 2, count)


def _is_slope_done(epsilon: float) -> Callable[..., Array]:
    return lambda _, slope, share, *state: np.abs(share) <= epsilon * np.abs(slope)


SUMS = Sums(series, fraction, series_slope, fraction_slope)
"""Those of NumPy."""
