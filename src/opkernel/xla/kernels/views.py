"""Other shapes, orders and parts of the same elements. Kernels of the CPU that only take views compile as they are.

Matrices from diagonals and diagonals of matrices. Each element is found by its place, so that no loop is needed.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from opkernel.errors import InvalidArgumentError
from opkernel.kernel import check_allocation
from opkernel.kernel.function_kernel import forward_input
from opkernel.ops.array import space_depth
from opkernel.ops.array.band import Band
from opkernel.ops.array.diag import diag_part
from opkernel.ops.array.identity import ensure_shape
from opkernel.ops.array.matrix_diag import (
    check_scalars,
    check_set_diag,
    matrices_of,
    matrices_shape,
)
from opkernel.ops.array.reshape import expand_dims, reshape, squeeze
from opkernel.ops.array.reverse import reverse, reverse_v2
from opkernel.ops.array.space_batch import batch_to_space, batch_to_space_nd
from opkernel.ops.array.split import split, split_v, unpack
from opkernel.ops.array.transpose import conjugate_transpose, transpose
from opkernel.types import DataType, as_dtype
from opkernel.xla.jax_numpy import lax
from opkernel.xla.register_kernel import register_xla_kernel

register_xla_kernel(["Identity", "IdentityN"], resources=True, variants=True)(forward_input)
register_xla_kernel("StopGradient", variants=True)(forward_input)
register_xla_kernel(["PlaceholderWithDefault", "PreventGradient", "Snapshot"])(forward_input)
register_xla_kernel("EnsureShape", factory=True)(ensure_shape)

register_xla_kernel("Reshape", compile_time_constants=["shape"])(reshape)
register_xla_kernel("ExpandDims", compile_time_constants=["dim"])(expand_dims)
register_xla_kernel("Squeeze", factory=True)(squeeze)
register_xla_kernel("Transpose", compile_time_constants=["perm"])(transpose)
register_xla_kernel("ConjugateTranspose", compile_time_constants=["perm"])(conjugate_transpose)
register_xla_kernel("Reverse", compile_time_constants=["dims"])(reverse)
register_xla_kernel("ReverseV2", compile_time_constants=["axis"])(reverse_v2)
register_xla_kernel("DiagPart")(diag_part)

register_xla_kernel("Split", compile_time_constants=["split_dim"], factory=True)(split)
register_xla_kernel("SplitV", compile_time_constants=["size_splits", "split_dim"], factory=True)(
    split_v
)
register_xla_kernel("Unpack", factory=True)(unpack)

register_xla_kernel("BatchToSpaceND", compile_time_constants=["block_shape", "crops"])(
    batch_to_space_nd
)
register_xla_kernel("BatchToSpace", compile_time_constants=["crops"], factory=True)(batch_to_space)

_Move = Callable[[Any], Any]


@register_xla_kernel("SpaceToDepth", factory=True)
def space_to_depth(*, block_size: int, data_format: str) -> _Move:
    return _on_images(space_depth.space_to_depth(block_size=block_size), data_format)


@register_xla_kernel("DepthToSpace", factory=True)
def depth_to_space(*, block_size: int, data_format: str) -> _Move:
    return _on_images(space_depth.depth_to_space(block_size=block_size), data_format)


def _on_images(move: _Move, data_format: str) -> _Move:
    """What a function of images with the depth last is for images of a data format."""
    if data_format == "NHWC":
        return move
    if data_format != "NCHW":
        raise InvalidArgumentError(f"XLA does not compile images of the data format {data_format}")
    return lambda images: move(images.transpose((0, 2, 3, 1))).transpose((0, 3, 1, 2))


@register_xla_kernel("Bitcast", factory=True)
def bitcast(*, T: DataType, type: DataType) -> _Move:
    def read(tensor: Any) -> Any:
        count = max(type.size // T.size, 1)
        if count > 1 and (tensor.ndim == 0 or tensor.shape[-1] != count):
            raise InvalidArgumentError(
                f"Cannot bitcast from {int(T)} to {int(type)}: the last dimension of "
                f"{list(tensor.shape)} is not {count}"
            )
        if T is type:
            return tensor
        if not (T.is_complex or type.is_complex):
            return lax().bitcast_convert_type(tensor, type.numpy_dtype)
        shape = tensor.shape if count == 1 else tensor.shape[:-1]
        rest = (T.size // type.size,) if T.size > type.size else ()
        return _from_bytes(_bytes(tensor, T), type, (*shape, *rest))

    return read


def _bytes(tensor: Any, dtype: DataType) -> Any:
    """The bytes of all elements."""
    if dtype.is_complex:
        tensor = lax().concatenate([tensor.real[..., None], tensor.imag[..., None]], tensor.ndim)
    return lax().bitcast_convert_type(tensor, "uint8").reshape(-1)


def _from_bytes(values: Any, dtype: DataType, shape: tuple[int, ...]) -> Any:
    if not dtype.is_complex:
        values = values.reshape((*shape, dtype.size))
        return lax().bitcast_convert_type(values, dtype.numpy_dtype)
    parts = values.reshape((*shape, 2, dtype.size // 2))
    parts = lax().bitcast_convert_type(parts, f"float{dtype.size * 4}")
    return lax().complex(parts[..., 0], parts[..., 1])


_MAIN, _LEFT = Band(0, 0), "LEFT_LEFT"


@register_xla_kernel("Diag")
def diag(diagonal: Any, *, xp: Any) -> Any:
    if diagonal.ndim < 1:
        raise InvalidArgumentError("Input must be at least rank 1, got 0")
    shape = check_allocation(diagonal.shape * 2, as_dtype(diagonal.dtype))
    return xp.diag(diagonal.reshape(-1)).reshape(shape)


@register_xla_kernel("MatrixDiag")
def matrix_diag(diagonal: Any, *, xp: Any) -> Any:
    return _diag(diagonal, _MAIN, (-1, -1), 0, _LEFT, xp)


_DIAG_CONSTANTS = ["k", "num_rows", "num_cols", "padding_value"]


@register_xla_kernel("MatrixDiagV2", compile_time_constants=_DIAG_CONSTANTS)
def matrix_diag_v2(
    diagonal: Any, k: Any, num_rows: Any, num_cols: Any, padding_value: Any, *, xp: Any
) -> Any:
    return matrix_diag_v3(diagonal, k, num_rows, num_cols, padding_value, align=_LEFT, xp=xp)


@register_xla_kernel("MatrixDiagV3", compile_time_constants=_DIAG_CONSTANTS)
def matrix_diag_v3(
    diagonal: Any, k: Any, num_rows: Any, num_cols: Any, padding_value: Any, *, align: str, xp: Any
) -> Any:
    check_scalars(num_rows=num_rows, num_cols=num_cols, padding_value=padding_value)
    sizes = num_rows.item(), num_cols.item()
    return _diag(diagonal, Band.of(k), sizes, padding_value, align, xp)


def _diag(
    diagonal: Any, band: Band, sizes: tuple[int, int], padding: Any, align: str, xp: Any
) -> Any:
    shape = matrices_of(diagonal, band, *sizes)
    matrices = xp.full(shape, padding, dtype=diagonal.dtype)
    return _with_diagonals(matrices, diagonal, band, align, xp)


@register_xla_kernel("MatrixSetDiag")
def matrix_set_diag(matrices: Any, diagonal: Any, *, xp: Any) -> Any:
    return _set_diag(matrices, diagonal, _MAIN, _LEFT, xp)


@register_xla_kernel("MatrixSetDiagV2", compile_time_constants=["k"])
def matrix_set_diag_v2(matrices: Any, diagonal: Any, k: Any, *, xp: Any) -> Any:
    return _set_diag(matrices, diagonal, Band.of(k), _LEFT, xp)


@register_xla_kernel("MatrixSetDiagV3", compile_time_constants=["k"])
def matrix_set_diag_v3(matrices: Any, diagonal: Any, k: Any, *, align: str, xp: Any) -> Any:
    return _set_diag(matrices, diagonal, Band.of(k), align, xp)


def _set_diag(matrices: Any, diagonal: Any, band: Band, align: str, xp: Any) -> Any:
    check_set_diag(matrices, diagonal, band)
    return _with_diagonals(matrices, diagonal, band, align, xp)


class _Stack(NamedTuple):
    """Where the diagonals of a band stand in their stack, row by row from the upper one."""

    first: Any
    """The column in which each begins."""
    length: Any
    """How many elements each has."""

    @classmethod
    def of(cls, band: Band, rows: int, columns: int, longest: int, align: str) -> _Stack:
        """The stack of the diagonals of matrices of a size."""
        first, length = np.zeros((2, band.size), np.int32)
        for row, packed, _ in band.places(rows, columns, longest, align):
            first[row], length[row] = packed.start, packed.stop - packed.start
        return cls(first, length)


def _with_diagonals(matrices: Any, diagonal: Any, band: Band, align: str, xp: Any) -> Any:
    """The matrices, with other elements where the band lies."""
    batch, rows, columns = matrices_shape(matrices)
    longest = diagonal.shape[-1]
    if 0 in (*matrices.shape, longest):
        return matrices
    stack = diagonal.reshape((*batch, band.size, longest))
    i, j = xp.arange(rows, dtype=np.int32)[:, None], xp.arange(columns, dtype=np.int32)
    row = xp.clip(band.upper - (j - i), 0, band.size - 1)
    first = xp.asarray(_Stack.of(band, rows, columns, longest, align).first)
    column = xp.clip(xp.minimum(i, j) + first[row], 0, longest - 1)
    inside = (j - i >= band.lower) & (j - i <= band.upper)
    return xp.where(inside, stack[..., row, column], matrices)


@register_xla_kernel("MatrixDiagPart")
def matrix_diag_part(matrices: Any, *, xp: Any) -> Any:
    return _part(matrices, _MAIN, 0, _LEFT, xp)


@register_xla_kernel("MatrixDiagPartV2", compile_time_constants=["k", "padding_value"])
def matrix_diag_part_v2(matrices: Any, k: Any, padding_value: Any, *, xp: Any) -> Any:
    return matrix_diag_part_v3(matrices, k, padding_value, align=_LEFT, xp=xp)


@register_xla_kernel("MatrixDiagPartV3", compile_time_constants=["k", "padding_value"])
def matrix_diag_part_v3(matrices: Any, k: Any, padding_value: Any, *, align: str, xp: Any) -> Any:
    if padding_value.size != 1:
        raise InvalidArgumentError("Padding must be scalar.")
    return _part(matrices, Band.of(k), padding_value.reshape(()), align, xp)


def _part(matrices: Any, band: Band, padding: Any, align: str, xp: Any) -> Any:
    batch, rows, columns = matrices_shape(matrices)
    band.check_inside(rows, columns)
    longest = band.longest(rows, columns)
    shape = batch + band.packed_shape(rows, columns)
    if 0 in (*matrices.shape, longest):
        return xp.full(shape, padding, dtype=matrices.dtype)
    stack = _Stack.of(band, rows, columns, longest, align)
    above = np.arange(band.upper, band.lower - 1, -1)[:, None]  # how far above the main diagonal
    step = np.arange(longest) - stack.first[:, None]
    inside = (step >= 0) & (step < stack.length[:, None])
    i = np.where(inside, step + np.maximum(-above, 0), 0)
    j = np.where(inside, step + np.maximum(above, 0), 0)
    zero = xp.asarray(padding, dtype=matrices.dtype)
    return xp.where(inside, matrices[..., i, j], zero).reshape(shape)
