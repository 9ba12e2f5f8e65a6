"""Products of batches of matrices, and of vectors of three elements: BatchMatMul and its versions, Cross.

Source: TensorFlow core/ops/math_ops.cc, core/kernels/matmul_op_impl.h, cross_op.cc.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

import opkernel.gradients as g
from opkernel.errors import FailedPreconditionError, InvalidArgumentError
from opkernel.kernel import KernelRegistry
from opkernel.opdef import InferenceContext, OpHandle, register_op
from opkernel.opdef.common_shapes import batch_matmul_shape, batch_matmul_v2_shape
from opkernel.opdef.shapes.inference_context import ShapeFn
from opkernel.ops.input_checks import require_equal, require_rank_at_least
from opkernel.ops.math.matmul import Multiply, matmul_in_parts
from opkernel.ops.registration import (
    COMPLEX,
    FLOATS,
    NARROW_FLOATS,
    REAL_NUMBERS,
    WIDE_INDEX,
    register_kernel,
)
from opkernel.records import dataclass
from opkernel.types import DataType

__all__ = ["register_batch_matmul"]


def _declare(
    name: str, types: dict[str, str], how: str, shape_fn: ShapeFn, traits: str = ""
) -> OpHandle:
    x, y, output = (list(types) * 3)[:3]
    return register_op(
        f"{name}(x: {x}, y: {y}) -> output: {output}",
        attrs=[
            *(f"{attr}: {{{allowed}}}" for attr, allowed in types.items()),
            "adj_x: bool = false",
            "adj_y: bool = false",
            "grad_x: bool = false",
            "grad_y: bool = false",
        ],
        shape_fn=shape_fn,
        traits=f"cannot_fail cost=product row_rule=batched_matrices {traits}",
        doc=f"""Multiply the matrices of `x` [..., m, k] by those of `y` [..., k, n]{how}.

adj_x: take the conjugate transpose of each matrix of `x` first.
adj_y: the same for `y`.
""",
    )


_BROADCAST = ", their batches broadcast"

BATCH_MATMUL = _declare(
    "BatchMatMul",
    {"T": "bfloat16, half, float, double, int32, int64, complex64, complex128"},
    "",
    batch_matmul_shape,
    traits="function_gradient=yes",
)
BATCH_MATMUL_V2 = _declare(
    "BatchMatMulV2",
    {
        "T": "bfloat16, half, float, double, int16, int32, int64, uint8, uint16, uint32, uint64, complex64, complex128"
    },
    _BROADCAST,
    batch_matmul_v2_shape,
    traits="function_gradient=yes",
)
_V3_INPUT = "bfloat16, half, float, double, uint8, int8, int16, int32, int64, complex64, complex128"
BATCH_MATMUL_V3 = _declare(
    "BatchMatMulV3",
    {
        "Ta": _V3_INPUT,
        "Tb": _V3_INPUT,
        "Tout": "bfloat16, half, float, double, int16, int32, int64, complex64, complex128",
    },
    f"{_BROADCAST}, with a result type of its own",
    batch_matmul_v2_shape,
)


def _check_equal_batches(x: Any, y: Any) -> None:
    if x.ndim != y.ndim:
        raise InvalidArgumentError(
            f"In[0] and In[1] has different ndims: {list(x.shape)} vs. {list(y.shape)}"
        )
    if x.ndim < 2:
        raise InvalidArgumentError(f"In[0] and In[1] ndims must be >= 2: {x.ndim}")
    for i in range(x.ndim - 2):
        if x.shape[i] != y.shape[i]:
            raise InvalidArgumentError(
                f"In[0].dim({i}) and In[1].dim({i}) must be the same: {list(x.shape)} vs {list(y.shape)}"
            )


def _check_broadcast(x: Any, y: Any) -> None:
    for index, operand in enumerate((x, y)):
        if operand.ndim < 2:
            raise InvalidArgumentError(f"In[{index}] ndims must be >= 2: {operand.ndim}")
    for a, b in zip(x.shape[-3::-1], y.shape[-3::-1], strict=False):
        if a != b and 1 not in (a, b):
            raise InvalidArgumentError(
                f"In[0] and In[1] must have compatible batch dimensions: {list(x.shape)} vs. {list(y.shape)}"
            )


def _adjoint(x: Any, xp: Any) -> Any:
    return xp.conj(x.mT) if x.dtype.kind == "c" else x.mT


@dataclass(frozen=True)
class BatchMatMulKernels:
    """Kernels that compute products by `multiply`; by the matmul of the namespace if that is None."""

    multiply: Multiply | None

    def batch_matmul(self, *, adj_x: bool, adj_y: bool, T: DataType, xp: Any) -> Multiply:
        return self._product(_check_equal_batches, adj_x, adj_y, T, xp)

    def batch_matmul_v2(self, *, adj_x: bool, adj_y: bool, T: DataType, xp: Any) -> Multiply:
        return self._product(_check_broadcast, adj_x, adj_y, T, xp)

    def batch_matmul_v3(self, *, adj_x: bool, adj_y: bool, Tout: DataType, xp: Any) -> Multiply:
        return self._product(_check_broadcast, adj_x, adj_y, Tout, xp)

    def _product(
        self, check: Callable[[Any, Any], None], adj_x: bool, adj_y: bool, T: DataType, xp: Any
    ) -> Multiply:
        """The function of the inputs; half and bfloat16 accumulate in float."""
        multiply = self.multiply or (matmul_in_parts if xp is np else xp.matmul)
        narrow = T in NARROW_FLOATS
        accumulator = np.dtype(np.float32) if narrow else T.numpy_dtype

        def product(x: Any, y: Any) -> Any:
            check(x, y)
            if x.shape[-2 if adj_x else -1] != y.shape[-1 if adj_y else -2]:
                raise InvalidArgumentError(
                    f"Matrix size-incompatible: In[0]: {list(x.shape)}, In[1]: {list(y.shape)}"
                )
            x, y = x.astype(accumulator, copy=False), y.astype(accumulator, copy=False)
            x, y = _adjoint(x, xp) if adj_x else x, _adjoint(y, xp) if adj_y else y
            result = multiply(x, y)
            return result.astype(T.numpy_dtype) if narrow else result

        return product


_TYPES = {"T": (*FLOATS, *WIDE_INDEX, *COMPLEX)}
_BYTES = (DataType.DT_INT8, DataType.DT_UINT8)
_V3_SAME = (DataType.DT_BFLOAT16, DataType.DT_FLOAT, DataType.DT_DOUBLE, *WIDE_INDEX, *COMPLEX)
_V3_TYPES = [
    *((dtype, dtype, dtype) for dtype in _V3_SAME),
    *((a, b, DataType.DT_INT32) for a in _BYTES for b in _BYTES),
    *((DataType.DT_BFLOAT16, b, DataType.DT_BFLOAT16) for b in _BYTES),
    *((a, DataType.DT_BFLOAT16, DataType.DT_BFLOAT16) for a in _BYTES),
]


def register_batch_matmul(
    multiply: Multiply | None = None, registry: KernelRegistry | None = None
) -> None:
    """Register kernels that multiply batches in a certain way."""
    kernels = BatchMatMulKernels(multiply)
    register = partial(register_kernel, device="CPU", factory=True, registry=registry)
    register(BATCH_MATMUL, types=_TYPES)(kernels.batch_matmul)
    register(BATCH_MATMUL_V2, types=_TYPES)(kernels.batch_matmul_v2)
    for a, b, out in _V3_TYPES:
        types = {"Ta": a, "Tb": b, "Tout": out}
        register(BATCH_MATMUL_V3, types=types)(kernels.batch_matmul_v3)


register_batch_matmul()


def cross_shape(c: InferenceContext) -> None:
    """Two inputs [..., 3] of one shape, which is the result's."""
    a = c.with_rank_at_least(c.input(0), 1)
    b = c.with_rank_at_least(c.input(1), 1)
    both = c.merge(a, b)
    if c.rank_known(both):
        c.with_value(c.dim(both, -1), 3)
    c.set_output(0, both)


CROSS = register_op(
    "Cross(a: T, b: T) -> product: T",
    attrs=["T: realnumbertype"],
    shape_fn=cross_shape,
    doc="The cross products of the vectors in the last dimension, of size 3, of `a` and `b`.",
)


@register_kernel(CROSS, types={"T": REAL_NUMBERS})
def cross(a: Any, b: Any, *, xp: Any) -> Any:
    require_equal(a.shape, b.shape, "Both inputs must be of same shape: {} vs. {}")
    require_rank_at_least(a, 1, "Input must be at least 1D{}")
    if a.shape[-1] != 3:
        raise FailedPreconditionError("Cross-products are only defined for 3-element vectors.")
    (a0, a1, a2), (b0, b1, b2) = ([v[..., i] for i in range(3)] for v in (a, b))
    return xp.stack([a1 * b2 - a2 * b1, a2 * b0 - a0 * b2, a0 * b1 - a1 * b0], axis=-1)


@g.register_gradient("Cross")
def cross_gradient(op: g.Operation, grad: g.Tensor) -> g.Gradients:
    a, b = op.inputs
    return g.nodes.Cross(b, grad), g.nodes.Cross(grad, a)
