"""Tensors with a diagonal of any rank, and bands of matrices: Diag, DiagPart, MatrixBandPart.

Source: TensorFlow core/ops/array_ops.cc, core/kernels/diag_op.cc, matrix_band_part_op.cc.
"""

from __future__ import annotations

from typing import Any

import numpy as np

import opkernel.gradients as g
from opkernel.errors import InvalidArgumentError
from opkernel.kernel import check_allocation
from opkernel.opdef import InferenceContext, OpHandle, register_op
from opkernel.opdef.common_shapes import unchanged_shape, unknown_shape
from opkernel.ops.input_checks import require_rank_at_least, require_scalar
from opkernel.ops.registration import COMPLEX, INDEX, NUMBERS, POD, register_kernel
from opkernel.types import DataType, TensorShape, as_dtype

_T = "T: {bfloat16, half, float, double, int32, int64, complex64, complex128}"
_DIAG_TYPES = (DataType.DT_HALF, DataType.DT_FLOAT, DataType.DT_DOUBLE, *INDEX, *COMPLEX)


def diag_shape(c: InferenceContext) -> None:
    """[dims...] -> [dims..., dims...]."""
    diagonal = c.with_rank_at_least(c.input(0), 1)
    c.set_output(0, c.concatenate(diagonal, diagonal))


DIAG = register_op(
    "Diag(diagonal: T) -> output: T",
    attrs=[_T],
    shape_fn=diag_shape,
    doc="Zeros of twice the rank with `diagonal` where both halves of the index are equal.",
)


@register_kernel(DIAG, types={"T": _DIAG_TYPES})
def diag(diagonal: Any) -> Any:
    require_rank_at_least(diagonal, 1, "Input must be at least rank 1, got 0")
    shape = check_allocation(diagonal.shape * 2, as_dtype(diagonal.dtype))
    output = np.zeros(shape, diagonal.dtype)
    output.reshape(-1)[:: diagonal.size + 1] = diagonal.reshape(-1)
    return output


def diag_part_shape(c: InferenceContext) -> None:
    """[dims..., dims...] -> [dims...]."""
    dims = c.input(0).dims
    if dims is None:
        c.set_output(0, c.unknown_shape())
        return
    rank = len(dims)
    if rank % 2 or rank == 0:
        raise InvalidArgumentError(f"Input must have even and non-zero rank, input rank is {rank}")
    pairs = zip(dims[: rank // 2], dims[rank // 2 :], strict=True)
    c.set_output(0, c.make_shape([c.merge(first, second) for first, second in pairs]))


DIAG_PART = register_op(
    "DiagPart(input: T) -> diagonal: T",
    attrs=[_T],
    shape_fn=diag_part_shape,
    doc="The elements of `input` where both halves of the index are equal.",
)


@register_kernel(DIAG_PART, types={"T": _DIAG_TYPES})
def diag_part(tensor: Any) -> Any:
    shape, rank = tensor.shape, tensor.ndim
    if rank % 2:
        raise InvalidArgumentError(
            f"The rank of the tensor should be even and positive, got shape {TensorShape(shape)}"
        )
    half = rank // 2
    for i in range(half):
        if shape[i] != shape[half + i]:
            raise InvalidArgumentError(
                f"Invalid shape {TensorShape(shape)}: dimensions {i} and {half + i} do not match."
            )
    flat = tensor.reshape(-1)
    size = int(np.prod(shape[:half]))
    return flat[:: size + 1].copy().reshape(shape[:half])


def _declare_band(name: str, index: str, deprecated: tuple[int, str] | None = None) -> OpHandle:
    return register_op(
        f"{name}(input: T, num_lower: {index}, num_upper: {index}) -> band: T",
        attrs=["T: type", *(["Tindex: {int32, int64} = DT_INT64"] if index == "Tindex" else [])],
        shape_fn=unchanged_shape if deprecated is None else unknown_shape,
        traits="cost=linear",
        deprecated=deprecated,
        doc="Matrices with zeros outside of a band around the diagonal; negative: no limit.",
    )


MATRIX_BAND_PART = _declare_band("MatrixBandPart", "Tindex")
BATCH_MATRIX_BAND_PART = _declare_band("BatchMatrixBandPart", "int64", (14, "Use MatrixBandPart"))


@register_kernel(MATRIX_BAND_PART, types={"T": POD})
@register_kernel(BATCH_MATRIX_BAND_PART, types={"T": NUMBERS})
def matrix_band_part(matrices: Any, num_lower: Any, num_upper: Any, *, xp: Any) -> Any:
    require_rank_at_least(matrices, 2, "input must be at least 2-dim, received shape: {}")
    rows, columns = matrices.shape[-2:]
    lower = _band_limit(num_lower, "num_lower", rows, "rows", xp)
    upper = _band_limit(num_upper, "num_upper", columns, "columns", xp)
    distance = xp.arange(columns) - xp.arange(rows)[:, None]  # above the diagonal positive
    inside = (distance >= -lower) & (distance <= upper)
    return xp.where(inside, matrices, xp.zeros((), dtype=matrices.dtype))


def _band_limit(limit: Any, name: str, size: int, what: str, xp: Any) -> Any:
    require_scalar(limit, f"{name} must be scalar, got shape {{}}")
    if xp is not np:  # where only a trace is made there are no values to check
        return xp.where(limit < 0, size, limit)
    value: int = limit.item()
    if value > size:
        raise InvalidArgumentError(
            f"{name} must be negative or less or equal to number of {what} ({size}) got: {value}"
        )
    return size if value < 0 else value


g.register_gradient("Diag")(g.by_op("DiagPart"))
g.register_gradient("DiagPart")(g.by_op("Diag"))
g.register_gradient("MatrixBandPart")(g.by_op("MatrixBandPart"))
