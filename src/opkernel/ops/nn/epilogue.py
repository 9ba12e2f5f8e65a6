"""The epilogue of a fused product: a bias or a normalisation, an added tensor, an activation.

A `Fusion` says it as the attrs of a node do, an `Epilogue` with the arrays of a call. Both are data, for
whoever computes a product to read: at once (`finished`), or part by part while each is in the cache.

Source: TensorFlow core/kernels/conv_ops_fused_impl.h, matmul_op_fused.cc, core/util/mkl_util.h
(Add, GeluExact and GeluApproximate, which only its builds with oneDNN compute).
"""

import math
from collections.abc import Callable, Collection, Sequence
from typing import Any

import numpy as np

from opkernel.errors import InvalidArgumentError, UnimplementedError
from opkernel.records import dataclass
from opkernel.types import TensorShape

FUSION_ATTRS = [
    "fused_ops: list(string) = []",
    "epsilon: float = 0.0001",
    "leakyrelu_alpha: float = 0.2",
]
"""The attrs of fused ops that name the fused ops."""

Array = np.ndarray[Any, Any]

_AFTER_CONVOLUTIONS = ("Relu", "Relu6", "Elu", "LeakyRelu")
_AFTER_MATMUL = (*_AFTER_CONVOLUTIONS, "Tanh", "Sigmoid", "GeluExact", "GeluApproximate")


@dataclass(frozen=True, slots=True)
class Epilogue:
    """Operations on each element of a product, in this order.

    Attributes:
        scale: The factors of the channels; None for no factors.
        bias: The numbers that are added to the channels.
        residual: A tensor of the product's shape that is added; None for none.
        activation: The op that comes last, such as Relu; empty for none.
        alpha: The slope of LeakyRelu below 0.
    """

    scale: Array | None
    bias: Array
    residual: Array | None = None
    activation: str = ""
    alpha: float = 0.0


@dataclass(frozen=True, slots=True)
class Fusion:
    """The operations that a node fuses with its product.

    Attributes:
        adds: Whether a tensor of the product's shape is added.
        activation: The op that comes last; empty for none.
        epsilon: Of a batch normalisation.
        alpha: The slope of LeakyRelu below 0.
    """

    adds: bool
    activation: str
    epsilon: float
    alpha: float

    def epilogue(self, args: Sequence[Array], shape: Sequence[int]) -> Epilogue:
        """The epilogue for a product of this shape.

        `args` are a bias, or scale, offset, mean and variance, and then perhaps the tensor to be added.

        Raises:
            InvalidArgumentError: they are not as many as, or not of the shapes that, are fused.
        """
        args, residual = (args[:-1], args[-1]) if self.adds else (args, None)
        if len(args) not in (1, 4):
            raise InvalidArgumentError(
                f"BiasAdd must have one extra argument and FusedBatchNorm four, got {len(args)}"
            )
        for arg in args:
            if arg.ndim != 1:
                raise InvalidArgumentError(
                    f"bias or statistics must be 1-dimensional, got shape {TensorShape(arg.shape)}"
                )
            _check_shape("bias or statistics", arg, shape[-1:])
        if residual is not None:
            _check_shape("the tensor to be added", residual, shape)
        factor, bias = None, args[0]
        if len(args) == 4:
            scale, offset, mean, variance = args
            factor = scale / np.sqrt(variance + variance.dtype.type(self.epsilon))
            bias = offset - mean * factor
        return Epilogue(factor, bias, residual, self.activation, self.alpha)


def _check_shape(name: str, array: Array, expected: Sequence[int]) -> None:
    if array.shape != tuple(expected):
        raise InvalidArgumentError(
            f"Expected {name} shape to be {list(expected)}, but got {list(array.shape)}"
        )


def conv2d_fusion(fused_ops: Sequence[str], epsilon: float, leakyrelu_alpha: float) -> Fusion:
    """The fusion of a `_FusedConv2D` by its attrs; raises as the others do."""
    first = ("BiasAdd", "FusedBatchNorm")
    return _parsed("Fused Conv2D", fused_ops, first, _AFTER_CONVOLUTIONS, epsilon, leakyrelu_alpha)


def depthwise_fusion(fused_ops: Sequence[str], epsilon: float, leakyrelu_alpha: float) -> Fusion:
    """The fusion of a `_FusedDepthwiseConv2dNative` by its attrs; raises as the others do."""
    name = "Fused DepthwiseConv2dNative"
    return _parsed(name, fused_ops, ("BiasAdd",), _AFTER_CONVOLUTIONS, epsilon, leakyrelu_alpha)


def matmul_fusion(fused_ops: Sequence[str], leakyrelu_alpha: float) -> Fusion:
    """The fusion of a `_FusedMatMul` by its attrs.

    Raises:
        InvalidArgumentError: `fused_ops` is empty.
        UnimplementedError: nobody computes these ops after a product.
    """
    return _parsed("Fused MatMul", fused_ops, ("BiasAdd",), _AFTER_MATMUL, 0, leakyrelu_alpha)


def _parsed(
    op: str,
    fused_ops: Sequence[str],
    first: Collection[str],
    activations: Collection[str],
    epsilon: float,
    alpha: float,
) -> Fusion:
    """The fusion that the attr `fused_ops` names.

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
    return Fusion(adds, last[0] if last else "", epsilon, alpha)


def _gelu_exact(x: Array) -> Array:
    from opkernel.ops.math.special.error_functions import erf_float  # few graphs need it

    result: Array = x / 2 * (1 + erf_float(x * math.sqrt(0.5), xp=np))
    return result


def _gelu(x: Array) -> Array:
    """`x / 2 * (1 + tanh(sqrt(2 / pi) * (x + 0.044715 * x ** 3)))`."""
    inner = math.sqrt(2 / math.pi) * (x + 0.044715 * x**3)
    result: Array = x / 2 * (1 + np.tanh(inner))
    return result


_ACTIVATIONS: dict[str, Callable[[Array, float], Array]] = {
    "": lambda x, _: x,
    "Relu": lambda x, _: np.maximum(x, 0),
    "Relu6": lambda x, _: np.clip(x, 0, 6),
    "Elu": lambda x, _: np.where(x < 0, np.expm1(x), x),
    "LeakyRelu": lambda x, alpha: np.where(x < 0, x * alpha, x),
    "Tanh": lambda x, _: np.tanh(x),
    "Sigmoid": lambda x, _: 1 / (1 + np.exp(-x)),
    "GeluExact": lambda x, _: _gelu_exact(x),
    "GeluApproximate": lambda x, _: _gelu(x),
}


def finished(product: Array, epilogue: Epilogue | None) -> Array:
    """A product with an epilogue; the product itself for None."""
    if epilogue is None:
        return product
    scaled = product if epilogue.scale is None else product * epilogue.scale
    total = scaled + epilogue.bias
    if epilogue.residual is not None:
        total = total + epilogue.residual
    return _ACTIVATIONS[epilogue.activation](total, epilogue.alpha)
