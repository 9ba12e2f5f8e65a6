"""Steps along the gradient or its sign, with or without momentum.

Each function takes the arrays of variables, which it changes in place, and the other arguments
of its op, in the order of the op.

Source: TensorFlow core/kernels/training_ops.cc.
"""

from typing import Any

import numpy as np

__all__ = ["add_sign", "gradient_descent", "keras_momentum", "momentum_descent", "power_sign"]


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
