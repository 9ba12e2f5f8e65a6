"""A loop that adds up how likely the ways through the states of CTCLoss are."""

import math
from typing import Any

import numpy as np

from opkernel.ops.nn import ctc_loss
from opkernel.ops.nn.ctc_loss import LN2_HIGH, LN2_LOW, LOG1P_COEFFICIENTS, SQRT2_LESS_1
from opkernel.providers import LOOPS
from opkernel.providers.loops.compiled_loop import loop, part_of_loops
from opkernel.types import Array

_ONE, _TWO, _NONE = np.float32(1), np.float32(2), np.float32(0)


@part_of_loops
def _float_log1p(x: Any) -> Any:
    """The logarithm of 1 + x, for x in 0..1, with the rounding that C's log1pf has."""
    u = _ONE + x
    is_large = x >= SQRT2_LESS_1
    f = u / _TWO - _ONE if is_large else x
    low = LN2_LOW + (x - (u - _ONE)) / u if is_large else _NONE
    half_square = f * f / _TWO
    s = f / (_TWO + f)
    z = s * s
    series = _NONE
    for coefficient in LOG1P_COEFFICIENTS:
        series = z * (series + coefficient)
    rest = half_square - (s * (half_square + series) + low)
    return (LN2_HIGH if is_large else _NONE) - (rest - f)


@part_of_loops
def _log_sum(first: Any, second: Any) -> Any:
    """As `log_sum`."""
    larger, smaller = (first, second) if first > second else (second, first)
    if smaller == -np.inf:
        return larger
    power = math.exp(np.float64(np.float32(smaller - larger)))
    return larger + _float_log1p(np.float32(power))


@part_of_loops
def _ways(states: Array, s: int, by: int, stays: Any, skips: Any) -> Any:
    """How likely the state, the next and the one after it are together, as far as moves allow."""
    impossible = states.dtype.type(-np.inf)
    itself = states[s] if stays else impossible
    next_ = states[s + by] if 0 <= s + by < states.size else impossible
    after = states[s + 2 * by] if skips else impossible
    return _log_sum(_log_sum(itself, next_), after)


@part_of_loops
def _add_beginnings(log_y: Array, moves: Array, end: int, alpha: Array) -> None:
    """As `_beginnings`, of one sequence; alpha is impossible at first."""
    steps, states = log_y.shape
    for s in range(min(2, states, end)):
        alpha[0, s] = log_y[0, s]
    for step in range(1, steps):
        for s in range(states):
            ways = _ways(alpha[step - 1], s, -1, moves[0, s], moves[1, s])
            alpha[step, s] = log_y[step, s] + ways


@part_of_loops
def _add_ends(log_y: Array, moves: Array, end: int, length: int, beta: Array) -> None:
    """As `_ends`, of one sequence; beta is impossible at first."""
    _, states = log_y.shape
    if length == 0:
        return
    for s in range(max(0, end - 2), end):
        beta[length - 1, s] = 0
    for step in range(length - 2, -1, -1):
        after = beta[step + 1] + log_y[step + 1]
        for s in range(states):
            skips = s + 2 < states and moves[1, s + 2]
            beta[step, s] = _ways(after, s, 1, moves[0, s], skips)
        if step == length - 2 and end == 1:
            beta[step, 0] = _log_sum(beta[step, 0], beta.dtype.type(0))


@loop(otherwise=ctc_loss.add_paths)
def add_paths(
    log_y: Array, classes: Array, moves: Array, limits: Array, count: int
) -> tuple[Array, Array]:
    """Sequence by sequence, step by step, state by state."""
    steps, batch, states = log_y.shape
    total = np.full(batch, -np.inf).astype(log_y.dtype)
    of_classes = np.full((steps, batch, count), -np.inf).astype(log_y.dtype)
    for b in range(batch):
        of_sequence = log_y[:, b].copy()
        alpha = np.full((steps, states), -np.inf).astype(log_y.dtype)
        beta = alpha.copy()
        _add_beginnings(of_sequence, moves[b], limits[b, 0], alpha)
        _add_ends(of_sequence, moves[b], limits[b, 0], limits[b, 1], beta)
        both = alpha + beta
        for s in range(states):
            total[b] = _log_sum(total[b], both[0, s])
        for step in range(steps):
            for s in range(states):
                k = classes[b, s]
                of_classes[step, b, k] = _log_sum(of_classes[step, b, k], both[step, s])
    return total, of_classes


ctc_loss.register_ctc_loss(add_paths, LOOPS.kernels)
