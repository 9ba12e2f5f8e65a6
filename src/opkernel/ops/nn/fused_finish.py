"""What fused ops do to their product: a bias or a normalisation, a tensor added, an activation.

It is done in place to each part of the product, while that is in the cache.

Source: TensorFlow core/kernels/conv_ops_fused_impl.h, matmul_op_fused.cc, core/util/mkl_util.h
(Add, GeluExact and GeluApproximate, which only its builds with oneDNN compute).
"""

import math
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np

from opkernel.errors import InvalidArgumentError, UnimplementedError
from opkernel.kernel import scratch
from opkernel.ops.math.products import Finish
from opkernel.ops.math.special.error_functions import ERF_FLOAT
from opkernel.ops.nn.bias import LANES
from opkernel.ops.nn.geometry import check_rank, check_shape
from opkernel.ops.nn.windows import Array

__all__ = ["Fusion", "parse_fusion"]

_Activation = Callable[[Array, float], object]
"""Changes an array in place, given the slope of LeakyRelu."""

_BLOCK = 1 << 18
"""Elements; smaller blocks have threads wait for each other between the steps."""
_FEW = 4096
_INFINITY = np.float32(np.inf)
_ZERO, _HALF, _ONE, _SIX = (np.float32(value) for value in (0, 0.5, 1, 6))
_LINEAR = np.float32(math.sqrt(2 / math.pi))
_CUBIC = np.float32(0.044715 * math.sqrt(2 / math.pi))
_GELU_EXACT = [np.float32(c * 0.5 ** (i + 0.5)) for i, c in enumerate(ERF_FLOAT)]
"""erf(x / sqrt(2)) = tanh(x * p(x**2)): the coefficients of p."""


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
    np.multiply(square, _GELU_EXACT[-1], out=share)
    for coefficient in _GELU_EXACT[-2:0:-1]:
        np.add(share, coefficient, out=share)
        np.multiply(share, square, out=share)
    np.add(share, _GELU_EXACT[0], out=share)
    _weigh_by_tanh(x, share)


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


@dataclass(frozen=True, slots=True)
class Fusion:
    """What is fused.

    Attributes:
        adds: whether a tensor of the product's shape is added.
        activation: the last step.
        epsilon: of a batch normalisation.
        alpha: the slope of LeakyRelu.
    """

    adds: bool
    activation: _Activation | None
    epsilon: float
    alpha: float

    def finish(self, args: Sequence[Array], shape: Sequence[int]) -> Finish:
        """What finishes parts of a product of this shape.

        Raises:
            InvalidArgumentError: `args` are not as many as, or not of the shapes that, are fused.
        """
        args, addend = (args[:-1], args[-1]) if self.adds else (args, None)
        affine = _affine(args, self.epsilon, shape[-1])
        if addend is not None:
            check_shape("the tensor to be added", addend.shape, shape)

        def finish(part: Array, where: tuple[slice, ...]) -> None:
            affine(part, where[-1])
            if addend is not None:
                np.add(part, addend[where], out=part)
            if self.activation is not None:
                self.activation(part, self.alpha)

        return finish


def parse_fusion(
    op: str,
    fused_ops: Sequence[str],
    first: Collection[str],
    activations: Collection[str],
    epsilon: float,
    alpha: float,
) -> Fusion:
    """What the attr `fused_ops` names.

    Raises:
        InvalidArgumentError: it is empty.
        UnimplementedError: it is none of `first`, then perhaps Add, then perhaps one of
            `activations`.
    """
    if not fused_ops:
        raise InvalidArgumentError(f"{op} must have at least one fused op.")
    head, *tail = fused_ops
    adds = head == "BiasAdd" and tail[:1] == ["Add"]
    last = tail[1:] if adds else tail
    if head not in first or len(last) > 1 or not set(last) <= set(activations):
        raise UnimplementedError(f"Fusion is not implemented: [{','.join(fused_ops)}]")
    return Fusion(adds, _ACTIVATIONS[last[0]] if last else None, epsilon, alpha)


def _add_bias(bias: Array, x: Array, channels: slice) -> None:
    """Add a bias to some channels, a short one to several positions at a time."""
    depth = len(bias)
    if x.size > _FEW and x.shape[-1] == depth <= LANES // 2 and x.flags.c_contiguous:
        together = LANES // depth
        if x.size % (together * depth) == 0:
            x = x.reshape(-1, together * depth)
            bias, channels = np.tile(bias, together), slice(None)
    np.add(x, bias[np.newaxis, channels], out=x)  # of the same shape where that has one row


def _affine(args: Sequence[Array], epsilon: float, depth: int) -> Callable[[Array, slice], object]:
    """Adds a bias, or normalises with scale, offset, mean and variance; told which channels."""
    if len(args) not in (1, 4):
        raise InvalidArgumentError(
            f"BiasAdd must have one extra argument and FusedBatchNorm four, got {len(args)}"
        )
    for arg in args:
        check_rank("bias or statistics", arg, 1)
        check_shape("bias or statistics", arg.shape, (depth,))
    if len(args) == 1:
        return partial(_add_bias, args[0])
    scale, offset, mean, variance = args
    factor = scale / np.sqrt(variance + variance.dtype.type(epsilon))
    shift = offset - mean * factor

    def normalise(x: Array, channels: slice) -> None:
        np.multiply(x, factor[channels], out=x)
        np.add(x, shift[channels], out=x)

    return normalise
