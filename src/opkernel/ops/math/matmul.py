"""Products of matrices, in parts where they are long: MatMul.

Source: TensorFlow core/ops/math_ops.cc, core/kernels/matmul_op_impl.h, sparse_matmul_op.cc.
"""

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from opkernel.device.budget import current_budget
from opkernel.device.work_clock import SLOW, in_time
from opkernel.errors import InvalidArgumentError
from opkernel.kernel import KernelContract, KernelRegistry, register_kernel
from opkernel.opdef import register_op
from opkernel.opdef.common_shapes import matmul_shape
from opkernel.ops.registration import COMPLEX, FLOATS, NARROW_FLOATS, WIDE_INDEX
from opkernel.records import dataclass
from opkernel.types import DataType

__all__ = ["Multiply", "check_matrices", "matmul_in_parts", "register_matmul"]


_PART, _PART_OF_OTHERS = 1 << 28, 1 << 26
"""Multiplications in a part of floats, for which there is BLAS, and of other numbers."""


def matmul_in_parts(x: Any, y: Any) -> Any:
    """The products of stacks of matrices `[..., m, k]` by `[..., k, n]`; whole where no deadline holds."""
    budget = current_budget()
    if budget is None or budget.deadline is None:
        return np.matmul(x, y)
    (rows, terms), columns = x.shape[-2:], y.shape[-1]
    batch, work = np.broadcast_shapes(x.shape[:-2], y.shape[:-2]), rows * terms * columns
    part = _PART if x.dtype.kind in "fc" else _PART_OF_OTHERS
    if math.prod(batch) * work <= part:
        return np.matmul(x, y)
    result = np.empty((*batch, rows, columns), np.result_type(x, y))
    left = np.broadcast_to(x, (*batch, rows, terms))
    right = np.broadcast_to(y, (*batch, terms, columns))
    for at in _parts(batch, rows, part, work):
        factor = right[at[:-1]] if work > part else right[at]
        np.matmul(left[at], factor, out=result[at])
    return result


def _parts(batch: tuple[int, ...], rows: int, part: int, work: int) -> Any:
    """Where to cut: between matrices or, if a matrix is a large part, between its rows."""
    axes = batch if work <= part else (*batch, rows)
    step = max(part * (rows if work > part else 1) // max(work, 1), 1)
    pieces = [slice(start, start + step) for start in range(0, axes[-1], step)]
    places = ((*at, piece) for at in np.ndindex(*axes[:-1]) for piece in pieces)
    return in_time(places, SLOW, "multiplying matrices")


Multiply = Callable[[Any, Any], Any]
"""The product of two matrices, or of batches of them."""

_MATMUL_ATTR_TYPES = "bfloat16, half, float, double, int32, int64, uint8, uint16, uint32, uint64, complex64, complex128"

MATMUL = register_op(
    "MatMul(a: T, b: T) -> product: T",
    attrs=[
        "transpose_a: bool = false",
        "transpose_b: bool = false",
        f"T: {{{_MATMUL_ATTR_TYPES}}}",
        "grad_a: bool = false",
        "grad_b: bool = false",
    ],
    shape_fn=matmul_shape,
    traits="cannot_fail cost=product row_rule=matrices function_gradient=yes",
    doc="Multiply the matrix `a` by the matrix `b`, each transposed first where its flag says so.",
)

_MATMUL_TYPES = (*FLOATS, *WIDE_INDEX, *COMPLEX)


@dataclass(frozen=True)
class MatMulKernels:
    """Kernels that compute products by `multiply`; by the matmul of the namespace if that is None."""

    multiply: Multiply | None = None

    def matmul(
        self, *, transpose_a: bool, transpose_b: bool, T: DataType, xp: Any
    ) -> Callable[[Any, Any], Any]:
        """Half and bfloat16 accumulate in float; the sum is rounded to the nearest value, as oneDNN does."""
        multiply = self.multiply or (matmul_in_parts if xp is np else xp.matmul)
        narrow = T in NARROW_FLOATS

        def kernel(a: Any, b: Any) -> Any:
            check_matrices(a, b, transpose_a, transpose_b)
            a, b = a.T if transpose_a else a, b.T if transpose_b else b
            if narrow:
                return multiply(a.astype(np.float32), b.astype(np.float32)).astype(T.numpy_dtype)
            return multiply(a, b)

        return kernel

    def sparse_matmul(
        self, *, transpose_a: bool, transpose_b: bool, xp: Any
    ) -> Callable[[Any, Any], Any]:
        """The hints are not used: a zero times NaN or infinity is NaN whatever they say."""
        multiply = self.multiply or (matmul_in_parts if xp is np else xp.matmul)

        def kernel(a: Any, b: Any) -> Any:
            for name, operand in (("a", a), ("b", b)):
                if operand.ndim != 2:
                    raise InvalidArgumentError(f"{name} is not a matrix")
            check_matrices(a, b, transpose_a, transpose_b)
            a, b = a.astype(np.float32), b.astype(np.float32)
            return multiply(a.T if transpose_a else a, b.T if transpose_b else b)

        return kernel


def check_matrices(a: Any, b: Any, transpose_a: bool, transpose_b: bool) -> None:
    """Raise InvalidArgumentError unless `a` and `b` are matrices that can be multiplied."""
    if a.ndim != b.ndim:
        raise InvalidArgumentError(
            f"In[0] and In[1] has different ndims: {list(a.shape)} vs. {list(b.shape)}"
        )
    if a.ndim != 2:
        raise InvalidArgumentError(f"In[0] and In[1] ndims must be == 2: {a.ndim}")
    if a.shape[0 if transpose_a else 1] != b.shape[1 if transpose_b else 0]:
        raise InvalidArgumentError(
            f"Matrix size-incompatible: In[0]: {list(a.shape)}, In[1]: {list(b.shape)}"
        )


SPARSE_MATMUL = register_op(
    "SparseMatMul(a: Ta, b: Tb) -> product: float",
    attrs=[
        "transpose_a: bool = false",
        "transpose_b: bool = false",
        "a_is_sparse: bool = false",
        "b_is_sparse: bool = false",
        "Ta: {float, bfloat16} = DT_FLOAT",
        "Tb: {float, bfloat16} = DT_FLOAT",
    ],
    shape_fn=matmul_shape,
    doc="As MatMul, in float; `a_is_sparse` and `b_is_sparse` hint at matrices of many zeros.",
)

_SPARSE_TYPES = (DataType.DT_FLOAT, DataType.DT_BFLOAT16)


def register_matmul(
    multiply: Multiply | None = None,
    registry: KernelRegistry | None = None,
    prepares: tuple[str, ...] = (),
) -> None:
    """Register kernels that multiply in a certain way, which may ask for prepared inputs."""
    kernels, sparse = MatMulKernels(multiply), {"Ta": _SPARSE_TYPES, "Tb": _SPARSE_TYPES}
    contract = KernelContract(outputs_as_declared=True, prepares=prepares)
    for op, make, types in (
        (MATMUL, kernels.matmul, {"T": _MATMUL_TYPES}),
        (SPARSE_MATMUL, kernels.sparse_matmul, sparse),
    ):
        register_kernel(
            op, device="CPU", types=types, contract=contract, factory=True, registry=registry
        )(make)


register_matmul()
