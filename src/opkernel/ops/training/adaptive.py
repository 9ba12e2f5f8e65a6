"""Optimisers that scale each element by its past gradients.

Each function takes the arrays of variables, which it changes in place, and the other arguments
of its op, in the order of the op.

Source: TensorFlow core/kernels/training_ops.cc.
"""

from typing import Any

import numpy as np

__all__ = [
    "ada_max",
    "adadelta",
    "adagrad",
    "adagrad_v2",
    "adam",
    "adam_with_amsgrad",
    "centered_rms_prop",
    "rms_prop",
]


def adam(
    var: Any,
    m: Any,
    v: Any,
    beta1_power: Any,
    beta2_power: Any,
    lr: Any,
    beta1: Any,
    beta2: Any,
    epsilon: Any,
    grad: Any,
    *,
    use_nesterov: bool,
) -> None:
    """Goes along the running mean of the gradients, by the root of that of their squares."""
    one = var.dtype.type(1)
    _towards(m, grad, beta1)
    _towards(v, grad * grad, beta2)
    direction = grad * (one - beta1) + beta1 * m if use_nesterov else m
    _adam_step(var, direction, v, _adam_rate(lr, beta1_power, beta2_power), epsilon)


def adam_with_amsgrad(
    var: Any,
    m: Any,
    v: Any,
    vhat: Any,
    beta1_power: Any,
    beta2_power: Any,
    lr: Any,
    beta1: Any,
    beta2: Any,
    epsilon: Any,
    grad: Any,
) -> None:
    """As Adam, by the largest mean of squares that there was."""
    _towards(m, grad, beta1)
    _towards(v, grad * grad, beta2)
    np.maximum(vhat, v, out=vhat)
    _adam_step(var, m, vhat, _adam_rate(lr, beta1_power, beta2_power), epsilon)


def _adam_step(var: Any, direction: Any, squares: Any, rate: Any, epsilon: Any) -> None:
    """Go along a direction, by the root of the mean of squares."""
    scale = np.sqrt(squares)
    scale += epsilon
    step = direction * rate
    step /= scale
    var -= step


def _adam_rate(lr: Any, beta1_power: Any, beta2_power: Any) -> Any:
    """The learning rate, corrected for means that began at zero."""
    one = lr.dtype.type(1)
    return lr * np.sqrt(one - beta2_power) / (one - beta1_power)


def _towards(mean: Any, value: Any, decay: Any) -> None:
    """Let a running mean go towards a value."""
    change = value - mean
    change *= mean.dtype.type(1) - decay
    mean += change


def ada_max(
    var: Any,
    m: Any,
    v: Any,
    beta1_power: Any,
    lr: Any,
    beta1: Any,
    beta2: Any,
    epsilon: Any,
    grad: Any,
) -> None:
    """As Adam, by the largest of the gradients, which fade."""
    _towards(m, grad, beta1)
    np.maximum(beta2 * v, np.abs(grad), out=v)
    var -= lr / (var.dtype.type(1) - beta1_power) * (m / (v + epsilon))


def adadelta(
    var: Any, accum: Any, accum_update: Any, lr: Any, rho: Any, epsilon: Any, grad: Any
) -> None:
    """Steps are to gradients as the roots of their mean squares."""
    rest = var.dtype.type(1) - rho
    accum[...] = accum * rho + grad * grad * rest
    update = np.sqrt(accum_update + epsilon) / np.sqrt(accum + epsilon) * grad
    var -= update * lr
    accum_update[...] = accum_update * rho + update * update * rest


def adagrad(var: Any, accum: Any, lr: Any, grad: Any, *, update_slots: bool) -> None:
    """By the root of the sum of the squares."""
    if update_slots:
        accum += grad * grad
    var -= grad * lr / np.sqrt(accum)


def adagrad_v2(
    var: Any, accum: Any, lr: Any, epsilon: Any, grad: Any, *, update_slots: bool
) -> None:
    """By the root of the sum of the squares, and a little."""
    if update_slots:
        accum += grad * grad
    var -= grad * lr / (np.sqrt(accum) + epsilon)


def rms_prop(
    var: Any, ms: Any, mom: Any, lr: Any, rho: Any, momentum: Any, epsilon: Any, grad: Any
) -> None:
    """By the root of the mean square, with momentum."""
    _towards(ms, grad * grad, rho)
    _rms_step(var, mom, ms + epsilon, lr, momentum, grad)


def centered_rms_prop(
    var: Any, mg: Any, ms: Any, mom: Any, lr: Any, rho: Any, momentum: Any, epsilon: Any, grad: Any
) -> None:
    """By the standard deviation, with momentum."""
    _towards(ms, grad * grad, rho)
    _towards(mg, grad, rho)
    _rms_step(var, mom, ms - mg * mg + epsilon, lr, momentum, grad)


def _rms_step(var: Any, mom: Any, variance: Any, lr: Any, momentum: Any, grad: Any) -> None:
    mom[...] = mom * momentum + grad * lr / np.sqrt(variance)
    var -= mom
