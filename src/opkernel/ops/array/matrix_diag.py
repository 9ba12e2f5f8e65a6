"""Diagonals of batches of matrices: MatrixDiag, MatrixDiagPart, MatrixSetDiag in all versions, and gradients.

The input `k` is a diagonal or a band of them; how they are stacked, see `Band`.

Source: TensorFlow core/ops/array_ops.cc, core/kernels/matrix_diag_op.cc, matrix_set_diag_op.cc.
"""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

import opkernel.gradients as g
from opkernel.device.work_clock import SLOW, in_time
from opkernel.errors import InvalidArgumentError
from opkernel.graph import constant
from opkernel.kernel import check_allocation
from opkernel.opdef import InferenceContext, OpHandle, register_op
from opkernel.opdef.common_shapes import (
    matrix_diag_part_v2_shape,
    matrix_diag_v2_shape,
    matrix_set_diag_v2_shape,
    unknown_shape,
)
from opkernel.opdef.common_shapes.shape_rule import shape_rule
from opkernel.opdef.shapes.inference_context import ShapeFn
from opkernel.ops.array.band import Band
from opkernel.ops.array.fill import zeros
from opkernel.ops.input_checks import require_equal, require_rank_at_least, require_scalar
from opkernel.ops.kernel_types import POD
from opkernel.ops.registration import register_kernel
from opkernel.types import DataType, TensorShape, as_dtype

_ALIGN = "align: {'LEFT_RIGHT', 'RIGHT_LEFT', 'LEFT_LEFT', 'RIGHT_RIGHT'} = 'RIGHT_LEFT'"
_LEFT = "LEFT_LEFT"
"""How the ops that have no attr `align` align."""

_Shape = tuple[int, ...]


def matrix_diag_part_shape(c: InferenceContext) -> None:
    """[..., m, n] -> [..., min(m, n)]."""
    dims = c.with_rank_at_least(c.input(0), 2).dims
    if dims is None:
        c.set_output(0, c.unknown_shape())
    else:
        c.set_output(0, c.make_shape((*dims[:-2], c.min(dims[-2], dims[-1]))))


def matrix_set_diag_shape(c: InferenceContext) -> None:
    """[..., m, n] and [..., min(m, n)] -> the shape of the matrices, refined."""
    matrices = c.with_rank_at_least(c.input(0), 2)
    diagonal = c.with_rank_at_least(c.input(1), 1)
    if matrices.dims is not None:
        diagonal = c.with_rank(diagonal, len(matrices.dims) - 1)
    c.merge(c.min(c.dim(matrices, -2), c.dim(matrices, -1)), c.dim(diagonal, -1))
    if diagonal.dims is not None and not c.fully_defined(matrices):
        leading = c.subshape(diagonal, 0, -1)
        matrices = c.merge(matrices, c.concatenate(leading, c.unknown_shape_of_rank(2)))
    c.set_output(0, matrices)


_K, _PADDING = "k: int32", "padding_value: T"


def _declare(
    name: str,
    inputs: Sequence[str],
    output: str,
    shape_fn: ShapeFn,
    doc: str,
    *,
    align: bool = False,
    traits: str = "",
) -> OpHandle:
    return register_op(
        name,
        inputs=inputs,
        outputs=[f"{output}: T"],
        attrs=["T: type", *([_ALIGN] if align else [])],
        shape_fn=shape_fn,
        traits=traits,
        doc=doc,
    )


def _declare_old(op: OpHandle, inputs: Sequence[str], output: str) -> OpHandle:
    """The op under the name that it had before GraphDef version 14."""
    return register_op(
        f"Batch{op.name}",
        inputs=inputs,
        outputs=[f"{output}: T"],
        attrs=["T: type"],
        shape_fn=unknown_shape,
        deprecated=(14, f"Use {op.name}"),
        doc=f"The old name of {op.name}.",
    )


_DIAGONAL, _SIZES = ["diagonal: T"], ["num_rows: int32", "num_cols: int32"]
_DIAG_DOC = "Matrices with the given diagonals, and with the padding value elsewhere."
MATRIX_DIAG = _declare(
    "MatrixDiag",
    _DIAGONAL,
    "output",
    shape_rule("[..., n] -> [..., n, n]"),
    _DIAG_DOC,
    traits="cost=linear",
)
BATCH_MATRIX_DIAG = _declare_old(MATRIX_DIAG, _DIAGONAL, "output")
MATRIX_DIAG_V2, MATRIX_DIAG_V3 = (
    _declare(
        f"MatrixDiagV{version}",
        [*_DIAGONAL, _K, *_SIZES, _PADDING],
        "output",
        matrix_diag_v2_shape,
        _DIAG_DOC,
        align=version == 3,
        traits="cost=linear",
    )
    for version in (2, 3)
)

_MATRICES = ["input: T"]
_PART_DOC = "The diagonals of matrices, stacked, and filled up with the padding value."
MATRIX_DIAG_PART = _declare(
    "MatrixDiagPart", _MATRICES, "diagonal", matrix_diag_part_shape, _PART_DOC, traits="cost=linear"
)
BATCH_MATRIX_DIAG_PART = _declare_old(MATRIX_DIAG_PART, _MATRICES, "diagonal")
MATRIX_DIAG_PART_V2, MATRIX_DIAG_PART_V3 = (
    _declare(
        f"MatrixDiagPartV{version}",
        [*_MATRICES, _K, _PADDING],
        "diagonal",
        matrix_diag_part_v2_shape,
        _PART_DOC,
        align=version == 3,
        traits="cost=linear",
    )
    for version in (2, 3)
)

_BOTH = [*_MATRICES, *_DIAGONAL]
_SET_DOC = "The matrices `input` with other diagonals."
MATRIX_SET_DIAG = _declare("MatrixSetDiag", _BOTH, "output", matrix_set_diag_shape, _SET_DOC)
BATCH_MATRIX_SET_DIAG = _declare_old(MATRIX_SET_DIAG, _BOTH, "output")
MATRIX_SET_DIAG_V2, MATRIX_SET_DIAG_V3 = (
    _declare(
        f"MatrixSetDiagV{version}",
        [*_BOTH, _K],
        "output",
        matrix_set_diag_v2_shape,
        _SET_DOC,
        align=version == 3,
    )
    for version in (2, 3)
)


@register_kernel(MATRIX_DIAG, BATCH_MATRIX_DIAG, types={"T": POD}, factory=True)
def matrix_diag(*, T: DataType) -> Callable[[Any], Any]:
    zero = zeros((), T)
    return lambda diagonal: _diag(diagonal, Band(0, 0), -1, -1, zero, _LEFT)


@register_kernel(MATRIX_DIAG_V2, types={"T": POD})
def matrix_diag_v2(diagonal: Any, k: Any, num_rows: Any, num_cols: Any, padding_value: Any) -> Any:
    return matrix_diag_v3(diagonal, k, num_rows, num_cols, padding_value, align=_LEFT)


@register_kernel(MATRIX_DIAG_V3, types={"T": POD})
def matrix_diag_v3(
    diagonal: Any, k: Any, num_rows: Any, num_cols: Any, padding_value: Any, *, align: str
) -> Any:
    check_scalars(num_rows=num_rows, num_cols=num_cols, padding_value=padding_value)
    return _diag(diagonal, Band.of(k), num_rows.item(), num_cols.item(), padding_value, align)


def check_scalars(**inputs: Any) -> None:
    """Raise InvalidArgumentError unless all inputs are scalars."""
    for name, value in inputs.items():
        require_scalar(value, f"{name} must be a scalar")


def _diag(diagonal: Any, band: Band, rows: int, columns: int, padding: Any, align: str) -> Any:
    """The matrices; `rows` and `columns` are -1 where they are not given."""
    output = np.empty(matrices_of(diagonal, band, rows, columns), diagonal.dtype)
    output[...] = padding
    return _written(output, diagonal, band, align)


def matrices_of(diagonal: Any, band: Band, rows: int, columns: int) -> _Shape:
    """The shape of matrices with the given diagonals; `rows` and `columns` are -1 where they are not given.

    Raises:
        InvalidArgumentError: the diagonals do not fit the band, or the sizes.
    """
    _check_has_elements(diagonal)
    if band.size > 1 and (diagonal.ndim < 2 or diagonal.shape[-2] != band.size):
        raise InvalidArgumentError(
            "The number of diagonals provided in the input does not match the lower_diag_index "
            "and upper_diag_index range."
        )
    longest = diagonal.shape[-1]
    rows, columns = _matrix_size(band, longest, rows, columns)
    batch: _Shape = diagonal.shape[: -1 if band.size == 1 else -2]
    return check_allocation((*batch, rows, columns), as_dtype(diagonal.dtype))


def _matrix_size(band: Band, longest: int, rows: int, columns: int) -> tuple[int, int]:
    """The size of the matrices: as given, or else the smallest; square if nothing is given."""
    least_rows, least_columns = longest - min(band.upper, 0), longest + max(band.lower, 0)
    if rows != -1 and rows < least_rows:
        raise InvalidArgumentError("The number of rows is too small.")
    if columns != -1 and columns < least_columns:
        raise InvalidArgumentError("The number of columns is too small.")
    if rows == columns == -1:
        return (max(least_rows, least_columns),) * 2
    rows = least_rows if rows == -1 else rows
    columns = least_columns if columns == -1 else columns
    if rows != least_rows and columns != least_columns:
        raise InvalidArgumentError(
            "The number of rows or columns is not consistent with the specified d_lower, d_upper, "
            "and diagonal."
        )
    return rows, columns


@register_kernel(MATRIX_DIAG_PART, BATCH_MATRIX_DIAG_PART, types={"T": POD}, factory=True)
def matrix_diag_part(*, T: DataType) -> Callable[[Any], Any]:
    zero = zeros((), T)
    return lambda matrices: _part(matrices, Band(0, 0), zero, _LEFT)


@register_kernel(MATRIX_DIAG_PART_V2, types={"T": POD})
def matrix_diag_part_v2(matrices: Any, k: Any, padding_value: Any) -> Any:
    return matrix_diag_part_v3(matrices, k, padding_value, align=_LEFT)


@register_kernel(MATRIX_DIAG_PART_V3, types={"T": POD})
def matrix_diag_part_v3(matrices: Any, k: Any, padding_value: Any, *, align: str) -> Any:
    require_equal(padding_value.size, 1, "Padding must be scalar.")
    return _part(matrices, Band.of(k), padding_value.reshape(()), align)


def _part(matrices: Any, band: Band, padding: Any, align: str) -> Any:
    batch, rows, columns = matrices_shape(matrices)
    band.check_inside(rows, columns)
    longest = band.longest(rows, columns)
    stack = np.empty((*batch, band.size, longest), matrices.dtype)
    stack[...] = padding
    flat = matrices.reshape((*batch, rows * columns))
    for row, packed, places in in_time(band.places(rows, columns, longest, align), SLOW):
        stack[..., row, packed] = flat[..., places]
    return stack.reshape(batch + band.packed_shape(rows, columns))


def matrices_shape(matrices: Any) -> tuple[_Shape, int, int]:
    """The batch, rows and columns; raises InvalidArgumentError where there are none."""
    require_rank_at_least(matrices, 2, "input must be at least 2-dim, received shape: {}")
    return matrices.shape[:-2], matrices.shape[-2], matrices.shape[-1]


@register_kernel(MATRIX_SET_DIAG, BATCH_MATRIX_SET_DIAG, types={"T": POD})
def matrix_set_diag(matrices: Any, diagonal: Any) -> Any:
    return _set_diag(matrices, diagonal, Band(0, 0), _LEFT)


@register_kernel(MATRIX_SET_DIAG_V2, types={"T": POD})
def matrix_set_diag_v2(matrices: Any, diagonal: Any, k: Any) -> Any:
    return _set_diag(matrices, diagonal, Band.of(k), _LEFT)


@register_kernel(MATRIX_SET_DIAG_V3, types={"T": POD})
def matrix_set_diag_v3(matrices: Any, diagonal: Any, k: Any, *, align: str) -> Any:
    return _set_diag(matrices, diagonal, Band.of(k), align)


def _set_diag(matrices: Any, diagonal: Any, band: Band, align: str) -> Any:
    check_set_diag(matrices, diagonal, band)
    return _written(np.array(matrices, order="C"), diagonal, band, align)


def check_set_diag(matrices: Any, diagonal: Any, band: Band) -> None:
    """Raise InvalidArgumentError unless the diagonals are those of the band of the matrices."""
    batch, rows, columns = matrices_shape(matrices)
    _check_has_elements(diagonal)
    band.check_inside(rows, columns)
    expected = batch + band.packed_shape(rows, columns)
    if diagonal.shape != expected:
        raise InvalidArgumentError(
            "Either first dimensions of diagonal don't match input.shape[:-2], or "
            "diagonal.shape[:-1] is not equal to the longests diagonal in range "
            f"[lower_diag_index:upper_diag_index].\nInput shape: {TensorShape(matrices.shape)}\n"
            f"Diagonal shape: {TensorShape(diagonal.shape)}\n"
            f"Expected diagonal shape: {TensorShape(expected)}"
        )


def _check_has_elements(diagonal: Any) -> None:
    require_rank_at_least(diagonal, 1, "diagonal must be at least 1-dim, received shape: {}")


def _written(matrices: Any, diagonal: Any, band: Band, align: str) -> Any:
    """New matrices with their diagonals set."""
    batch, rows, columns = matrices_shape(matrices)
    stack = diagonal.reshape((*batch, band.size, diagonal.shape[-1]))
    flat = matrices.reshape((*batch, rows * columns))
    for row, packed, places in in_time(band.places(rows, columns, diagonal.shape[-1], align), SLOW):
        flat[..., places] = stack[..., row, packed]
    return matrices


@g.register_gradient("MatrixDiag")
def matrix_diag_gradient(op: g.Operation, grad: g.Tensor) -> g.Gradients:
    return g.nodes.MatrixDiagPart(grad)


@g.register_gradient(
    "MatrixDiagV2", "MatrixDiagV3", not_derivative="padding_value counts as constant"
)
def matrix_diag_v2_gradient(op: g.Operation, grad: g.Tensor) -> g.Gradients:
    return [_diagonals(op, grad, op.inputs[1]), None, None, None, None]


@g.register_gradient("MatrixDiagPart")
def matrix_diag_part_gradient(op: g.Operation, grad: g.Tensor) -> g.Gradients:
    return g.nodes.MatrixSetDiag(g.zeros_like(op.inputs[0]), grad)


@g.register_gradient(
    "MatrixDiagPartV2", "MatrixDiagPartV3", not_derivative="padding_value counts as constant"
)
def matrix_diag_part_v2_gradient(op: g.Operation, grad: g.Tensor) -> g.Gradients:
    x, k, _ = op.inputs
    return _with_diagonals(op, g.zeros_like(x), grad, k), None, None


@g.register_gradient("MatrixSetDiag")
def matrix_set_diag_gradient(op: g.Operation, grad: g.Tensor) -> g.Gradients:
    without = g.nodes.MatrixSetDiag(grad, g.zeros_like(op.inputs[1]))
    return without, g.nodes.MatrixDiagPart(grad)


@g.register_gradient("MatrixSetDiagV2", "MatrixSetDiagV3")
def matrix_set_diag_v2_gradient(op: g.Operation, grad: g.Tensor) -> g.Gradients:
    _, diagonal, k = op.inputs
    without = _with_diagonals(op, grad, g.zeros_like(diagonal), k)
    return without, _diagonals(op, grad, k), None


def _diagonals(op: g.Operation, matrix: g.Tensor, k: g.Tensor) -> Any:
    """The diagonals of a matrix, laid out as `op` does."""
    zero = constant(0, matrix.dtype)
    if op.type.endswith("V3"):
        return g.nodes.MatrixDiagPartV3(matrix, k, zero, align=op.get_attr("align"))
    return g.nodes.MatrixDiagPartV2(matrix, k, zero)


def _with_diagonals(op: g.Operation, matrix: g.Tensor, diagonals: g.Tensor, k: g.Tensor) -> Any:
    """A matrix with other diagonals, laid out as `op` does."""
    if op.type.endswith("V3"):
        return g.nodes.MatrixSetDiagV3(matrix, diagonals, k, align=op.get_attr("align"))
    return g.nodes.MatrixSetDiagV2(matrix, diagonals, k)
