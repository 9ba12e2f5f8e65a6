"""Loops that sum the series and continued fractions of incomplete gamma functions."""

import numpy as np

from opkernel.ops.math import incomplete_gamma, special_functions
from opkernel.ops.math.incomplete_gamma import TERMS_AT_ONCE, Sums
from opkernel.ops.random import gamma
from opkernel.providers import LOOPS
from opkernel.providers.loops.compiled_loop import loop
from opkernel.types import Array


@loop(otherwise=incomplete_gamma.series)
def series(a: Array, x: Array, count: int, epsilon: float) -> Array:
    """As `Sums.series`."""
    out = np.empty_like(x)
    for i in range(x.size):
        term, total = 1.0, 1.0
        for n in range(1, count):
            term = term * x[i] / (a[i] + n)
            total = total + term
            if n % TERMS_AT_ONCE == 0 and term <= epsilon * total:
                break
        out[i] = total
    return out


@loop(otherwise=incomplete_gamma.fraction)
def fraction(a: Array, x: Array, count: int, epsilon: float) -> Array:
    """As `Sums.fraction`."""
    out = np.empty_like(x)
    for i in range(x.size):
        b = x[i] + 1 - a[i]
        d = 1 / b
        term, total = d, d
        for n in range(1, count):
            b = b + 2
            product = n * (a[i] - n) * d
            d = 1 / (b + product)
            term = -(product * d) * term
            total = total + term
            if n % TERMS_AT_ONCE == 0 and abs(term) <= epsilon * total:
                break
        out[i] = total
    return out


@loop(otherwise=incomplete_gamma.series_slope)
def series_slope(a: Array, x: Array, count: int, epsilon: float) -> tuple[Array, Array]:
    """As `Sums.series_slope`."""
    totals, slopes = np.empty_like(x), np.empty_like(x)
    for i in range(x.size):
        term, total, slope, of_log = 1.0, 1.0, 0.0, 0.0
        for n in range(1, count):
            inverse = 1 / (a[i] + n)
            term = term * x[i] * inverse
            of_log = of_log - inverse
            share = term * of_log
            total, slope = total + term, slope + share
            if n % TERMS_AT_ONCE == 0 and abs(share) <= epsilon * abs(slope):
                break
        totals[i], slopes[i] = total, slope
    return totals, slopes


@loop(otherwise=incomplete_gamma.fraction_slope)
def fraction_slope(a: Array, x: Array, count: int, epsilon: float) -> tuple[Array, Array]:
    """As `Sums.fraction_slope`; names with `_a` are derivatives."""
    totals, slopes = np.empty_like(x), np.empty_like(x)
    for i in range(x.size):
        b = x[i] + 1 - a[i]
        d = 1 / b
        d_a = d * d
        term, term_a, total, total_a = d, d_a, d, d_a
        for n in range(1, count):
            b = b + 2
            factor = n * (a[i] - n)
            product, product_a = factor * d, n * d + factor * d_a
            d = 1 / (b + product)
            d_a = (1 - product_a) * (d * d)
            term_a = -((product_a * d + product * d_a) * term + product * d * term_a)
            term = -(product * d) * term
            total, total_a = total + term, total_a + term_a
            if n % TERMS_AT_ONCE == 0 and abs(term_a) <= epsilon * abs(total_a):
                break
        totals[i], slopes[i] = total, total_a
    return totals, slopes


_SUMS = Sums(series, fraction, series_slope, fraction_slope)
special_functions.register_incomplete_gamma(_SUMS, LOOPS.kernels)
gamma.register_gamma_grad(_SUMS, LOOPS.kernels)
