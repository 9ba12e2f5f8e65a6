"""Loops of activations and of their gradients, for float; of double those without powers."""

from collections.abc import Callable
from typing import Any

import numpy as np

from opkernel.ops.math import elementary_functions as elementary
from opkernel.ops.math.elementwise import kernel_of_body
from opkernel.ops.math.float_functions import exp, floats, log
from opkernel.ops.nn import activation
from opkernel.providers.loops import float_functions  # noqa: F401  (has loops compute powers and logarithms)
from opkernel.providers.loops.elementwise import register_elements
from opkernel.types import DataType

_ZERO, _ONE = floats(0, 1)
_SCALE, _SCALE_ALPHA = activation.SELU_SCALE, activation.SELU_SCALE * activation.SELU_ALPHA
_SCALE_OF_FLOAT, _SCALE_ALPHA_OF_FLOAT = floats(_SCALE, _SCALE_ALPHA)


def _softplus(x: Any) -> Any:
    """To 2e-7; what `1 + power` rounds off is added again."""
    power = exp(-abs(x))
    total = _ONE + power
    return max(x, _ZERO) + log(total) - ((total - _ONE) - power) / total


def _softsign(x: Any) -> Any:
    return x / (abs(x) + _ONE)


def _sigmoid_grad(y: Any, dy: Any) -> Any:
    return dy * (y * (_ONE - y))


def _tanh_grad(y: Any, dy: Any) -> Any:
    return dy * (_ONE - y * y)


def _softplus_grad(gradient: Any, feature: Any) -> Any:
    return gradient / (exp(-feature) + _ONE)


def _softsign_grad(gradient: Any, feature: Any) -> Any:
    root = abs(feature) + _ONE
    return gradient / (root * root)


def _selu_grad(gradient: Any, output: Any) -> Any:
    below, above = gradient * (output + _SCALE_ALPHA_OF_FLOAT), gradient * _SCALE_OF_FLOAT
    return below if output < _ZERO else above


def _selu_grad_of_double(gradient: Any, output: Any) -> Any:
    below, above = gradient * (output + _SCALE_ALPHA), gradient * _SCALE
    return below if output < _ZERO else above


_FLOAT, _DOUBLE = DataType.DT_FLOAT, DataType.DT_DOUBLE


def _register(
    op: str,
    body: Callable[..., Any],
    each: Callable[..., Any],
    of_double: Callable[..., Any] | None = None,
) -> None:
    for type, function in ((_FLOAT, each), (_DOUBLE, of_double)):
        if function is not None:
            register_elements(op, function, kernel_of_body(body, type, np), type)


def _register_gradient(
    op: str,
    general: Callable[[DataType], Callable[..., Any]],
    each: Callable[..., Any],
    of_double: Callable[..., Any] | None = None,
) -> None:
    for type, function in ((_FLOAT, each), (_DOUBLE, of_double)):
        if function is not None:
            register_elements(op, function, general(type), type, kind="same_shapes")


def _by_result(gradient: elementary.Gradient) -> Callable[[DataType], Callable[..., Any]]:
    """The kernels of a gradient in terms of the result."""
    return lambda dtype: kernel_of_body(elementary.gradient_body(gradient), dtype, np)


def _of_activation(op: str, body: Callable[..., Any]) -> Callable[[DataType], Callable[..., Any]]:
    return lambda dtype: activation.with_checked_shapes(op, kernel_of_body(body, dtype, np))


_register("Softplus", activation.softplus, _softplus)
_register("Softsign", activation.softsign, _softsign, _softsign)
_register_gradient("SigmoidGrad", _by_result(elementary.sigmoid_grad), _sigmoid_grad, _sigmoid_grad)
_register_gradient("TanhGrad", _by_result(elementary.tanh_grad), _tanh_grad, _tanh_grad)
for _op, _body, _each, _of_double in (
    ("SeluGrad", activation.selu_grad, _selu_grad, _selu_grad_of_double),
    ("SoftplusGrad", activation.softplus_grad, _softplus_grad, None),
    ("SoftsignGrad", activation.softsign_grad, _softsign_grad, _softsign_grad),
):
    _register_gradient(_op, _of_activation(_op, _body), _each, _of_double)
