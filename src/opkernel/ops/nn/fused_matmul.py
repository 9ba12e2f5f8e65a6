"""_FusedMatMul, which graph optimisers put into graphs: MatMul, a bias and an activation.

Source: TensorFlow core/ops/math_ops.cc, core/kernels/matmul_op_fused.cc.
"""

from collections.abc import Callable
from typing import Any

import numpy as np

from opkernel.kernel import KernelContract, KernelRegistry, from_attrs, register_kernel
from opkernel.opdef import register_op
from opkernel.opdef.common_shapes import matmul_shape
from opkernel.ops.math.matmul import check_matrices
from opkernel.ops.nn.epilogue import (
    FUSION_ATTRS,
    Epilogue,
    Fusion,
    finished,
    matmul_fusion,
)
from opkernel.records import dataclass
from opkernel.types import DataType

__all__ = ["register_fused_matmul"]

FUSED_MATMUL = register_op(
    "_FusedMatMul",
    inputs=["a: T", "b: T", "args: num_args * T"],
    outputs=["product: T"],
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

Array = np.ndarray[Any, Any]

Product = Callable[[Array, Array, Epilogue], Array]
"""The product of two matrices, then the epilogue."""

Shortcut = Callable[[Array, Array, Array, Fusion], Array | None]
"""Gives the result of calls that it takes: two matrices, neither transposed, and a bias; unchecked."""


@dataclass(frozen=True)
class FusedMatMulKernels:
    product: Product
    shortcut: Shortcut | None

    @from_attrs(fusion=matmul_fusion)
    def fused_matmul(
        self, *, T: DataType, transpose_a: bool, transpose_b: bool, fusion: Fusion
    ) -> Callable[[Array, Array, list[Array]], Array]:
        """Half and bfloat16 are computed in float."""
        product, shortcut = self.product, self.shortcut
        if transpose_a or transpose_b or fusion.adds:
            shortcut = None

        def fused(a: Array, b: Array, args: list[Array]) -> Array:
            if shortcut is not None and len(args) == 1:
                result = shortcut(a, b, args[0], fusion)
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


def register_fused_matmul(
    product: Product,
    shortcut: Shortcut | None = None,
    registry: KernelRegistry | None = None,
    prepares: tuple[str, ...] = (),
) -> None:
    """Register kernels that compute products in a certain way, which may ask for prepared inputs."""
    register_kernel(
        FUSED_MATMUL,
        device="CPU",
        types={"T": (DataType.DT_BFLOAT16, DataType.DT_HALF, DataType.DT_FLOAT)},
        contract=KernelContract(outputs_as_declared=True, prepares=prepares),
        factory=True,
        registry=registry,
    )(FusedMatMulKernels(product, shortcut).fused_matmul)


register_fused_matmul(lambda a, b, epilogue: finished(np.matmul(a, b), epilogue))
