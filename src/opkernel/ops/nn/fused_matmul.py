"""_FusedMatMul, which graph optimisers put into graphs, and the epilogues of all fused products.

An epilogue is a bias or a normalisation, an added tensor, an activation. A `Fusion` says it as the attrs of a
node do, an `Epilogue` with the arrays of a call. Both are data, for whoever computes a product to read: at
once (`finished`), or part by part while each is in the cache.

Source: TensorFlow core/ops/math_ops.cc, core/kernels/matmul_op_fused.cc, conv_ops_fused_impl.h,
core/util/mkl_util.h (Add, GeluExact and GeluApproximate, which only its builds with oneDNN compute).
"""

import math
from collections.abc import Callable, Collection, Sequence
from functools import partial

import numpy as np

from opkernel.errors import InvalidArgumentError, UnimplementedError
from opkernel.kernel import KernelContract, KernelRegistry, from_attrs, register_kernel
from opkernel.opdef import register_op
from opkernel.opdef.common_shapes import matmul_shape
from opkernel.ops.input_checks import require, require_vector
from opkernel.ops.math.matmul import check_matrices
from opkernel.records import dataclass
from opkernel.types import Array, DataType

__all__ = [
    "FUSION_ATTRS",
    "Epilogue",
    "Fusion",
    "conv2d_fusion",
    "depthwise_fusion",
    "finished",
    "matmul_fusion",
    "register_fused_matmul",
]


FUSION_ATTRS = [
    "fused_ops: list(string) = []",
    "epsilon: float = 0.0001",
    "leakyrelu_alpha: float = 0.2",
]
"""The attrs of fused ops that name the fused ops."""


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
            require_vector(arg, "bias or statistics must be 1-dimensional, got shape {}")
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


def _fusion(
    op: str,
    first: Collection[str],
    activations: Collection[str],
    fused_ops: Sequence[str],
    epsilon: float,
    leakyrelu_alpha: float,
) -> Fusion:
    """The fusion that the attrs of an op say.

    Raises:
        InvalidArgumentError: `fused_ops` is empty.
        UnimplementedError: it is none of `first`, then perhaps Add, then perhaps one of
            `activations`: nobody computes these ops after a product.
    """
    require(fused_ops, f"{op} must have at least one fused op.")
    head, *tail = fused_ops
    adds = head == "BiasAdd" and tail[:1] == ["Add"]
    last = tail[1:] if adds else tail
    if head not in first or len(last) > 1 or not set(last) <= set(activations):
        raise UnimplementedError(f"Fusion is not implemented: [{','.join(fused_ops)}]")
    return Fusion(adds, last[0] if last else "", epsilon, leakyrelu_alpha)


conv2d_fusion = partial(_fusion, "Fused Conv2D", ("BiasAdd", "FusedBatchNorm"), _AFTER_CONVOLUTIONS)
"""The fusion of a `_FusedConv2D` by its attrs; raises as the others do."""
depthwise_fusion = partial(
    _fusion, "Fused DepthwiseConv2dNative", ("BiasAdd",), _AFTER_CONVOLUTIONS
)
"""The fusion of a `_FusedDepthwiseConv2dNative` by its attrs."""
matmul_fusion = partial(_fusion, "Fused MatMul", ("BiasAdd",), _AFTER_MATMUL, epsilon=0.0)
"""The fusion of a `_FusedMatMul` by its attrs."""


def _gelu_exact(x: Array) -> Array:
    from opkernel.ops.math.error_functions import erf_float

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


FUSED_MATMUL = register_op(
    "_FusedMatMul(a: T, b: T, args: num_args * T) -> product: T",
    attrs=[
        "transpose_a: bool = false",
        "transpose_b: bool = false",
        "T: {bfloat16, half, float}",
        "num_args: int >= 0",
        *FUSION_ATTRS,
    ],
    shape_fn=matmul_shape,
    doc="MatMul, and then the ops that `fused_ops` names, with `args` as their inputs.",
    traits="cost=product row_rule=matrices",
)

Product = Callable[[Array, Array, Epilogue], Array]
"""The product of two matrices, then the epilogue."""

Shortcut = Callable[[Array, Array, Array, Fusion], Array | None]
"""Gives the result of calls that it takes: two matrices, neither transposed, and a bias; unchecked."""


def register_fused_matmul(
    product: Product,
    shortcut: Shortcut | None = None,
    registry: KernelRegistry | None = None,
    prepares: tuple[str, ...] = (),
) -> None:
    """Register kernels that compute products in a certain way, which may ask for prepared inputs."""

    @register_kernel(
        FUSED_MATMUL,
        device="CPU",
        types={"T": (DataType.DT_BFLOAT16, DataType.DT_HALF, DataType.DT_FLOAT)},
        contract=KernelContract(outputs_as_declared=True, prepares=prepares),
        factory=True,
        registry=registry,
    )
    @from_attrs(fusion=matmul_fusion)
    def fused_matmul(
        *, T: DataType, transpose_a: bool, transpose_b: bool, fusion: Fusion
    ) -> Callable[[Array, Array, list[Array]], Array]:
        """Half and bfloat16 are computed in float."""
        quick = None if transpose_a or transpose_b or fusion.adds else shortcut

        def fused(a: Array, b: Array, args: list[Array]) -> Array:
            if quick is not None and len(args) == 1:
                result = quick(a, b, args[0], fusion)
                if result is not None:
                    return result
            check_matrices(a, b, transpose_a, transpose_b)
            left, right = a.T if transpose_a else a, b.T if transpose_b else b
            epilogue = fusion.epilogue(args, (left.shape[0], right.shape[1]))
            if not left.shape[1]:  # nothing is added to the product of empty matrices
                empty: Array = np.matmul(left, right)
                return empty
            return product(left, right, epilogue)

        def widened(a: Array, b: Array, args: list[Array]) -> Array:
            left, right, *others = (array.astype(np.float32) for array in (a, b, *args))
            return fused(left, right, others).astype(a.dtype)

        return fused if T == DataType.DT_FLOAT else widened


register_fused_matmul(lambda a, b, epilogue: finished(np.matmul(a, b), epilogue))
