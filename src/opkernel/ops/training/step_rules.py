"""What the steps of optimizers compute: gradient descent, adaptive rules, and rules with penalties.

Each function takes the arrays of variables, which it changes in place, and the other arguments
of its op, in the order of the op.

Each function takes the arrays of variables, which it changes in place, and the other arguments
of its op, in the order of the op.

Each function takes the arrays of variables, which it changes in place, and the other arguments
of its op, in the order of the op.

Source: TensorFlow core/kernels/training_ops.cc.
"""

from collections.abc import Callable
from typing import Any

import numpy as np


def gradient_descent(var: Any, alpha: Any, delta: Any) -> None:
    """Against the gradient."""
    var -= delta * alpha


def momentum_descent(
    var: Any, accum: Any, lr: Any, grad: Any, momentum: Any, *, use_nesterov: bool
) -> None:
    """Against the sum of the gradients, which fade."""
    accum *= momentum
    accum += grad
    var -= grad * lr + accum * momentum * lr if use_nesterov else accum * lr


def keras_momentum(
    var: Any, accum: Any, lr: Any, grad: Any, momentum: Any, *, use_nesterov: bool
) -> None:
    """Along the sum of the steps, which fade."""
    step = grad * lr
    accum *= momentum
    accum -= step
    var += accum * momentum - step if use_nesterov else accum


def add_sign(var: Any, m: Any, lr: Any, alpha: Any, sign_decay: Any, beta: Any, grad: Any) -> None:
    """Further where the gradient has the sign of its mean."""
    var -= lr * (alpha + sign_decay * _agreement(m, beta, grad)) * grad


def power_sign(
    var: Any, m: Any, lr: Any, logbase: Any, sign_decay: Any, beta: Any, grad: Any
) -> None:
    """Much further where the gradient has the sign of its mean."""
    var -= lr * np.exp(logbase * sign_decay * _agreement(m, beta, grad)) * grad


def _agreement(m: Any, beta: Any, grad: Any) -> Any:
    """Update the mean; 1 where it has the sign of the gradient, -1 where it has the other."""
    m[...] = m * beta + grad * (m.dtype.type(1) - beta)
    return np.sign(grad) * np.sign(m)


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
    rates = lr, l1, l2, lr_power
    _ftrl_step((var, accum, linear), grad, grad, rates, multiply_linear_by_lr)


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
    rates = lr, l1, l2, lr_power
    _ftrl_step((var, accum, linear), grad, shrinking, rates, multiply_linear_by_lr)


def _ftrl_step(
    state: tuple[Any, Any, Any],
    grad: Any,
    shrinking: Any,
    rates: tuple[Any, Any, Any, Any],
    multiply_linear_by_lr: bool,
) -> None:
    """Move `state`, the variable with its accumulator and its linear part, by `rates`: lr, l1, l2, lr_power."""
    (var, accum, linear), (lr, l1, l2, lr_power) = state, rates
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
