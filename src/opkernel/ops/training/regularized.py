"""Optimisers that keep variables small or zero.

Each function takes the arrays of variables, which it changes in place, and the other arguments
of its op, in the order of the op.

Source: TensorFlow core/kernels/training_ops.cc.
"""

from collections.abc import Callable
from typing import Any

import numpy as np

__all__ = ["adagrad_da", "ftrl", "ftrl_v2", "proximal_adagrad", "proximal_gradient_descent"]


def proximal_gradient_descent(var: Any, alpha: Any, l1: Any, l2: Any, delta: Any) -> None:
    """Against the gradient, then towards zero."""
    var -= delta * alpha
    _shrink(var, alpha, l1, l2)


def proximal_adagrad(var: Any, accum: Any, lr: Any, l1: Any, l2: Any, grad: Any) -> None:
    """As Adagrad, then towards zero."""
    accum += grad * grad
    rate = lr / np.sqrt(accum)
    var -= grad * rate
    _shrink(var, rate, l1, l2)


def _shrink(var: Any, rate: Any, l1: Any, l2: Any) -> None:
    var[...] = _either(l1 > 0, lambda: _soft_threshold(var, rate * l1), lambda: var)
    var /= var.dtype.type(1) + l2 * rate


def _soft_threshold(x: Any, threshold: Any) -> Any:
    """`x` nearer to zero by `threshold`, zero where it would pass it."""
    return np.sign(x) * np.maximum(np.abs(x) - threshold, x.dtype.type(0))


def adagrad_da(
    var: Any,
    gradient_accumulator: Any,
    gradient_squared_accumulator: Any,
    grad: Any,
    lr: Any,
    l1: Any,
    l2: Any,
    global_step: Any,
) -> None:
    """The variable follows from the sums of the gradients and of their squares alone."""
    step = global_step.astype(np.float32).astype(var.dtype)
    gradient_accumulator += grad
    gradient_squared_accumulator += grad * grad
    total = _either(
        l1 > 0,
        lambda: _soft_threshold(gradient_accumulator, step * l1),
        lambda: gradient_accumulator,
    )
    var[...] = -lr * total / (l2 * (step * lr) + np.sqrt(gradient_squared_accumulator))


def ftrl(
    var: Any,
    accum: Any,
    linear: Any,
    grad: Any,
    lr: Any,
    l1: Any,
    l2: Any,
    lr_power: Any,
    *,
    multiply_linear_by_lr: bool,
) -> None:
    """Follow the regularised leader: zero where the linear part is below `l1`."""
    _ftrl_step(var, accum, linear, grad, grad, lr, l1, l2, lr_power, multiply_linear_by_lr)


def ftrl_v2(
    var: Any,
    accum: Any,
    linear: Any,
    grad: Any,
    lr: Any,
    l1: Any,
    l2: Any,
    l2_shrinkage: Any,
    lr_power: Any,
    *,
    multiply_linear_by_lr: bool,
) -> None:
    """As Ftrl; the linear part takes a gradient that shrinks the variable, too."""
    shrinking = grad + var.dtype.type(2) * l2_shrinkage * var
    _ftrl_step(var, accum, linear, grad, shrinking, lr, l1, l2, lr_power, multiply_linear_by_lr)


def _ftrl_step(
    var: Any,
    accum: Any,
    linear: Any,
    grad: Any,
    shrinking: Any,
    lr: Any,
    l1: Any,
    l2: Any,
    lr_power: Any,
    multiply_linear_by_lr: bool,
) -> None:
    # The linear part is in units of 1 / lr unless it is multiplied by lr.
    one = var.dtype.type(1)
    scale, divisor = (lr, one) if multiply_linear_by_lr else (one, lr)
    before = _power(accum, -lr_power)
    accum += grad * grad
    after = _power(accum, -lr_power)
    linear += shrinking * scale - (after - before) / divisor * var
    threshold = l1 * scale
    missing = np.clip(linear, -threshold, threshold) - linear
    var[...] = missing / (after / divisor + var.dtype.type(2) * l2 * scale)


def _power(x: Any, exponent: Any) -> Any:
    return _either(exponent == 0.5, lambda: np.sqrt(x), lambda: np.power(x, exponent))


def _either(condition: Any, first: Callable[[], Any], second: Callable[[], Any]) -> Any:
    """One of two results; both are computed where a compiler does not know the condition."""
    if isinstance(condition, np.ndarray | np.bool_):
        return first() if condition else second()
    return np.where(condition, first(), second())
