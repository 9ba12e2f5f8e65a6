"""Sums of probabilities by their logarithms, as the CTC ops have them.

TensorFlow computes the part that is added to the larger logarithm in float, of double inputs, too.

Source: TensorFlow core/util/ctc/ctc_loss_util.h; log1pf of FreeBSD's msun, from Sun's fdlibm.
"""

from typing import Any

import numpy as np

__all__ = ["float_exp", "log_sum"]

_FLOAT = np.float32
_LN2_HIGH, _LN2_LOW = _FLOAT(6.9313812256e-01), _FLOAT(9.0580006145e-06)
_COEFFICIENTS = np.array(
    [
        1.4798198640e-01,
        1.5313838422e-01,
        1.8183572590e-01,
        2.2222198546e-01,
        2.8571429849e-01,
        4.0000000596e-01,
        6.6666668653e-01,
    ],
    _FLOAT,
)
_SQRT2_LESS_1 = _FLOAT(0.41421387)


def log_sum(first: Any, second: Any) -> Any:
    """The logarithm of the sum of what two logarithms stand for."""
    larger, smaller = np.maximum(first, second), np.minimum(first, second)
    added = _float_log1p(float_exp(smaller - larger))
    return np.where(smaller == -np.inf, larger, larger + added)


def float_exp(values: Any) -> Any:
    """The power of e in float, rounded correctly."""
    return np.exp(values.astype(_FLOAT), dtype=np.float64).astype(_FLOAT)


def _float_log1p(x: Any) -> Any:
    """The logarithm of 1 + x, for x in 0..1, with the rounding that C's log1pf has."""
    u = 1 + x
    is_large = x >= _SQRT2_LESS_1  # then of u / 2, and of 2
    f = np.where(is_large, u / 2 - 1, x)
    low = np.where(is_large, _LN2_LOW + (x - (u - 1)) / u, 0)
    half_square = f * f / 2
    s = f / (2 + f)
    z = s * s
    series = np.zeros_like(z)
    for coefficient in _COEFFICIENTS:
        series = z * (series + coefficient)
    rest = half_square - (s * (half_square + series) + low)
    return np.where(is_large, _LN2_HIGH, _FLOAT(0)) - (rest - f)
