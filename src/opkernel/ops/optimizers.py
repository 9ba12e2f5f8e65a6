"""Optimisers: what their steps compute, and the inputs and types of the ops of each.

The steps are gradient descent, adaptive rules, and rules with penalties. Each function takes the arrays of
variables, which it changes in place, and the other inputs and the attrs of its op, by their names.

Source: TensorFlow core/ops/training_ops.cc, core/kernels/training_ops.cc.
"""

from collections.abc import Callable
from inspect import getfullargspec
from typing import Any, Literal, NamedTuple, TypeVar

import numpy as np

from opkernel.ops.registration import COMPLEX, FLOATS, WIDE_FLOATS
from opkernel.types import DataType

_HALF_TO_DOUBLE = (DataType.DT_HALF, *WIDE_FLOATS)
_HALF_TO_COMPLEX = (*_HALF_TO_DOUBLE, *COMPLEX)
_ALL = (*FLOATS, *COMPLEX)


class Optimizer(NamedTuple):
    """The ops of an optimiser.

    Attributes:
        step: Changes arrays of the variables in place; takes the inputs and attrs of the op.
        variables: The inputs that are variables: the first one, and its slots.
        values: The other inputs.
        attrs: The attrs that the step takes.
        types: Those of the dense kernels.
        sparse_types: Those of the kernels for some rows alone; empty where there are no such ops.
        references: Whether there are ops for the variables of TensorFlow 1, too.
        bounded: Which ops take no rates or strengths below zero.
        empty_rows: Whether the sparse ops take rows without elements.
    """

    step: Callable[..., None]
    variables: list[str]
    values: list[str]
    attrs: dict[str, bool]
    types: tuple[DataType, ...] = _ALL
    sparse_types: tuple[DataType, ...] = ()
    references: bool = True
    bounded: Literal["none", "sparse", "all"] = "none"
    empty_rows: bool = True

    def inputs(self, *, sparse: bool) -> list[str]:
        """The names of the inputs in order."""
        names = [*self.variables, *self.values]
        if not sparse:
            return names
        names = ["grad" if name == "delta" else name for name in names]
        at = names.index("grad") + 1
        return [*names[:at], "indices", *names[at:]]


OPTIMIZERS: dict[str, Optimizer] = {}
"""By the end of the names of their ops."""
_Step = TypeVar("_Step", bound=Callable[..., None])


def _optimizer(name: str, *, slots: int = 0, **facts: Any) -> Callable[[_Step], _Step]:
    """The decorator of a step, whose arguments have the names of the inputs of its ops.

    Args:
        name: The end of the names of the ops.
        slots: How many slots come after the variable.
        facts: Attributes of the `Optimizer` that have no default, or another value.
    """

    def note(step: _Step) -> _Step:
        spec = getfullargspec(step)
        variables, values = spec.args[: 1 + slots], spec.args[1 + slots :]
        attrs = spec.kwonlydefaults or {}
        OPTIMIZERS[name] = Optimizer(step, variables, values, attrs, **facts)
        return step

    return note


@_optimizer("GradientDescent")
def gradient_descent(var: Any, alpha: Any, delta: Any) -> None:
    """Against the gradient."""
    var -= delta * alpha


@_optimizer("Momentum", slots=1, sparse_types=_ALL)
def momentum_descent(
    var: Any, accum: Any, lr: Any, grad: Any, momentum: Any, *, use_nesterov: bool = False
) -> None:
    """Against the sum of the gradients, which fade."""
    accum *= momentum
    accum += grad
    var -= grad * lr + accum * momentum * lr if use_nesterov else accum * lr


@_optimizer("KerasMomentum", slots=1, sparse_types=_ALL, references=False)
def keras_momentum(
    var: Any, accum: Any, lr: Any, grad: Any, momentum: Any, *, use_nesterov: bool = False
) -> None:
    """Along the sum of the steps, which fade."""
    step = grad * lr
    accum *= momentum
    accum -= step
    var += accum * momentum - step if use_nesterov else accum


@_optimizer("AddSign", slots=1, types=FLOATS)
def add_sign(var: Any, m: Any, lr: Any, alpha: Any, sign_decay: Any, beta: Any, grad: Any) -> None:
    """Further where the gradient has the sign of its mean."""
    var -= lr * (alpha + sign_decay * _agreement(m, beta, grad)) * grad


@_optimizer("PowerSign", slots=1, types=FLOATS)
def power_sign(
    var: Any, m: Any, lr: Any, logbase: Any, sign_decay: Any, beta: Any, grad: Any
) -> None:
    """Much further where the gradient has the sign of its mean."""
    var -= lr * np.exp(logbase * sign_decay * _agreement(m, beta, grad)) * grad


def _agreement(m: Any, beta: Any, grad: Any) -> Any:
    """Update the mean; 1 where it has the sign of the gradient, -1 where it has the other."""
    m[...] = m * beta + grad * (m.dtype.type(1) - beta)
    return np.sign(grad) * np.sign(m)


@_optimizer("Adam", slots=2)
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
    use_nesterov: bool = False,
) -> None:
    """Goes along the running mean of the gradients, by the root of that of their squares."""
    one = var.dtype.type(1)
    _towards(m, grad, beta1)
    _towards(v, grad * grad, beta2)
    direction = grad * (one - beta1) + beta1 * m if use_nesterov else m
    _adam_step(var, direction, v, _adam_rate(lr, beta1_power, beta2_power), epsilon)


@_optimizer("AdamWithAmsgrad", slots=3, types=FLOATS, references=False)
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


@_optimizer("AdaMax", slots=2, types=_HALF_TO_DOUBLE)
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


@_optimizer("Adadelta", slots=2, sparse_types=_ALL)
def adadelta(
    var: Any, accum: Any, accum_update: Any, lr: Any, rho: Any, epsilon: Any, grad: Any
) -> None:
    """Steps are to gradients as the roots of their mean squares."""
    rest = var.dtype.type(1) - rho
    accum[...] = accum * rho + grad * grad * rest
    update = np.sqrt(accum_update + epsilon) / np.sqrt(accum + epsilon) * grad
    var -= update * lr
    accum_update[...] = accum_update * rho + update * update * rest


@_optimizer("Adagrad", slots=1, sparse_types=_ALL, empty_rows=False)
def adagrad(var: Any, accum: Any, lr: Any, grad: Any, *, update_slots: bool = True) -> None:
    """By the root of the sum of the squares."""
    if update_slots:
        accum += grad * grad
    var -= grad * lr / np.sqrt(accum)


@_optimizer("AdagradV2", slots=1, sparse_types=_ALL, empty_rows=False)
def adagrad_v2(
    var: Any, accum: Any, lr: Any, epsilon: Any, grad: Any, *, update_slots: bool = True
) -> None:
    """By the root of the sum of the squares, and a little."""
    if update_slots:
        accum += grad * grad
    var -= grad * lr / (np.sqrt(accum) + epsilon)


@_optimizer("RMSProp", slots=2, sparse_types=_HALF_TO_COMPLEX)
def rms_prop(
    var: Any, ms: Any, mom: Any, lr: Any, rho: Any, momentum: Any, epsilon: Any, grad: Any
) -> None:
    """By the root of the mean square, with momentum."""
    _towards(ms, grad * grad, rho)
    _rms_step(var, mom, ms + epsilon, lr, momentum, grad)


@_optimizer("CenteredRMSProp", slots=3, sparse_types=_HALF_TO_COMPLEX)
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


@_optimizer(
    "ProximalGradientDescent", types=WIDE_FLOATS, sparse_types=WIDE_FLOATS, empty_rows=False
)
def proximal_gradient_descent(var: Any, alpha: Any, l1: Any, l2: Any, delta: Any) -> None:
    """Against the gradient, then towards zero."""
    var -= delta * alpha
    _shrink(var, alpha, l1, l2)


@_optimizer(
    "ProximalAdagrad",
    slots=1,
    types=WIDE_FLOATS,
    sparse_types=WIDE_FLOATS,
    bounded="all",
    empty_rows=False,
)
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


@_optimizer("AdagradDA", slots=2, types=WIDE_FLOATS, sparse_types=WIDE_FLOATS, empty_rows=False)
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
    sums, squares = gradient_accumulator, gradient_squared_accumulator
    step = global_step.astype(np.float32).astype(var.dtype)
    sums += grad
    squares += grad * grad
    total = _either(l1 > 0, lambda: _soft_threshold(sums, step * l1), lambda: sums)
    var[...] = -lr * total / (l2 * (step * lr) + np.sqrt(squares))


@_optimizer("Ftrl", slots=2, types=FLOATS, sparse_types=FLOATS, bounded="sparse", empty_rows=False)
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
    multiply_linear_by_lr: bool = False,
) -> None:
    """Follow the regularised leader: zero where the linear part is below `l1`."""
    rates = lr, l1, l2, lr_power
    _ftrl_step((var, accum, linear), grad, grad, rates, multiply_linear_by_lr)


@_optimizer(
    "FtrlV2", slots=2, types=FLOATS, sparse_types=FLOATS, bounded="sparse", empty_rows=False
)
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
    multiply_linear_by_lr: bool = False,
) -> None:
    """As Ftrl; the linear part takes a gradient that shrinks the variable, too."""
    rates = lr, l1, l2, lr_power
    shrinking = grad + var.dtype.type(2) * l2_shrinkage * var
    _ftrl_step((var, accum, linear), grad, shrinking, rates, multiply_linear_by_lr)


def _ftrl_step(
    state: tuple[Any, Any, Any],
    grad: Any,
    shrinking: Any,
    rates: tuple[Any, ...],
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
