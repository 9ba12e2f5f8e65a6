"""Epilogues, done in place to each part of a product while that is in the cache."""

import math
from collections.abc import Callable
from functools import cache

import numpy as np

from opkernel.kernel import scratch
from opkernel.ops.nn.bias import LANES
from opkernel.ops.nn.fused_matmul import Epilogue
from opkernel.types import Array

_Activation = Callable[[Array, float], object]
"""Changes an array in place, given the slope of LeakyRelu."""

_BLOCK = 1 << 18
"""Elements; smaller blocks have threads wait for each other between the steps."""
_FEW = 4096
_INFINITY = np.float32(np.inf)
_ZERO, _HALF, _ONE, _SIX = (np.float32(value) for value in (0, 0.5, 1, 6))
_LINEAR = np.float32(math.sqrt(2 / math.pi))
_CUBIC = np.float32(0.044715 * math.sqrt(2 / math.pi))


def _elu(x: Array, _: float) -> None:
    np.copyto(x, np.expm1(x), where=x < 0)


def _leaky_relu(x: Array, alpha: float) -> None:
    np.copyto(x, x * x.dtype.type(alpha), where=x < 0)


def _sigmoid(x: Array, _: float) -> None:
    np.negative(x, out=x)
    np.exp(x, out=x)
    np.add(x, 1, out=x)
    np.reciprocal(x, out=x)


def _gelu_exact(x: Array, _: float) -> None:
    """`x / 2 * (1 + erf(x / sqrt(2)))`, with erf as `erf_float` computes it."""
    square, share = _powers(x)
    first, *between, last = _gelu_coefficients()
    np.multiply(square, last, out=share)
    for coefficient in reversed(between):
        np.add(share, coefficient, out=share)
        np.multiply(share, square, out=share)
    np.add(share, first, out=share)
    _weigh_by_tanh(x, share)


@cache
def _gelu_coefficients() -> list[np.float32]:
    """The coefficients of p in erf(x / sqrt(2)) = tanh(x * p(x**2))."""
    from opkernel.ops.math.error_functions import ERF_FLOAT  # few graphs need it

    return [np.float32(c * 0.5 ** (i + 0.5)) for i, c in enumerate(ERF_FLOAT)]


def _gelu_approximate(x: Array, _: float) -> None:
    """`x / 2 * (1 + tanh(sqrt(2 / pi) * (x + 0.044715 * x ** 3)))`."""
    square, share = _powers(x)
    np.multiply(square, _CUBIC, out=share)
    np.add(share, _LINEAR, out=share)
    _weigh_by_tanh(x, share)


def _powers(x: Array) -> tuple[Array, Array]:
    """The square of an array, and an array of its shape; both are this thread's scratch memory."""
    square = scratch("squares", x.shape, x.dtype)
    return np.multiply(x, x, out=square), scratch("shares", x.shape, x.dtype)


def _weigh_by_tanh(x: Array, share: Array) -> None:
    """`x *= (1 + tanh(x * share)) / 2`."""
    np.multiply(share, x, out=share)
    np.tanh(share, out=share)
    np.add(share, _ONE, out=share)
    np.multiply(share, _HALF, out=share)
    np.multiply(x, share, out=x)


def _by_blocks(activation: _Activation) -> _Activation:
    """An activation of several steps applied to so many rows at a time as stay in the cache."""

    def activate(x: Array, alpha: float) -> None:
        if x.size <= _BLOCK:
            activation(x, alpha)
            return
        rows = max(1, _BLOCK * len(x) // x.size)
        for start in range(0, len(x), rows):
            activation(x[start : start + rows], alpha)

    return activate


def _relu(x: Array, _: float) -> None:
    if x.size <= _FEW:
        np.maximum(x, _ZERO, out=x)
    else:
        np.clip(x, _ZERO, _INFINITY, out=x)  # four times as fast, but begins later


_ACTIVATIONS: dict[str, _Activation] = {
    "Relu": _relu,
    "Relu6": lambda x, _: np.clip(x, _ZERO, _SIX, out=x),
    "Elu": _by_blocks(_elu),
    "LeakyRelu": _by_blocks(_leaky_relu),
    "Tanh": lambda x, _: np.tanh(x, out=x),
    "Sigmoid": _by_blocks(_sigmoid),
    "GeluExact": _by_blocks(_gelu_exact),
    "GeluApproximate": _by_blocks(_gelu_approximate),
}


def activate(part: Array, activation: str, alpha: float) -> None:
    """Apply an activation to part of a product; none if its name is empty."""
    if activation:
        _ACTIVATIONS[activation](part, alpha)


def finish(part: Array, where: tuple[slice, ...], epilogue: Epilogue | None) -> None:
    """Apply the epilogue to part of a product.

    Args:
        part: the part, which is changed.
        where: where in the product it is: an index with a slice for each dimension.
        epilogue: the steps to apply; none if None.
    """
    if epilogue is None:
        return
    channels = where[-1]
    if epilogue.scale is not None:
        np.multiply(part, epilogue.scale[channels], out=part)
    _add_bias(epilogue.bias, part, channels)
    if epilogue.residual is not None:
        np.add(part, epilogue.residual[where], out=part)
    activate(part, epilogue.activation, epilogue.alpha)


def _add_bias(bias: Array, x: Array, channels: slice) -> None:
    """Add a bias to some channels, a short one to several positions at a time."""
    depth = len(bias)
    if x.size > _FEW and x.shape[-1] == depth <= LANES // 2 and x.flags.c_contiguous:
        together = LANES // depth
        if x.size % (together * depth) == 0:
            x = x.reshape(-1, together * depth)
            bias, channels = np.tile(bias, together), slice(None)
    np.add(x, bias[np.newaxis, channels], out=x)  # of the same shape where that has one row
