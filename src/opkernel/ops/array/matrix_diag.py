"""Diagonals of batches of matrices: MatrixDiag, MatrixDiagPart, MatrixSetDiag in all versions, and gradients.

The input `k` is a diagonal or a band of them. A diagonal index counts from the main diagonal, and is positive above it.
The diagonals of a band are stacked from the top. A diagonal shorter than the longest stands left or right in its row:
the attr `align` says which, for the diagonals above and for those below the main diagonal.

Source: TensorFlow core/ops/array_ops.cc, core/kernels/matrix_diag_op.cc, matrix_set_diag_op.cc.
"""

from collections.abc import Iterator
from typing import Any, NamedTuple

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
from opkernel.opdef.common_shapes.rules import shape_rule
from opkernel.opdef.shapes.inference_context import ShapeFn
from opkernel.ops.array.fill import zeros
from opkernel.ops.input_checks import (
    require,
    require_equal,
    require_rank_at_least,
    require_rank_at_most,
    require_scalar,
)
from opkernel.ops.registration import POD, register_kernel
from opkernel.types import DataType, TensorShape, as_dtype


class Band(NamedTuple):
    """The diagonals from `lower` to `upper`."""

    lower: int
    upper: int

    @classmethod
    def of(cls, index: Any) -> "Band":
        """The band of the input `k`: one diagonal, or the lowest and the highest.

        Raises:
            InvalidArgumentError: `k` is no scalar and no vector of one or two elements.
        """
        require_rank_at_most(index, 1, "diag_index must be a scalar or vector, received shape: {}")
        require(index.size, "Expected diag_index to have at least 1 element")
        if index.size > 2:
            raise InvalidArgumentError(
                f"diag_index must have only one or two elements, received {index.size} elements."
            )
        lower, upper = index.item(0), index.item(-1)
        if lower > upper:
            raise InvalidArgumentError(
                f"lower_diag_index must not be larger than upper_diag_index: {lower} > {upper}"
            )
        return cls(lower, upper)

    @property
    def size(self) -> int:
        """The number of diagonals."""
        return self.upper - self.lower + 1

    def longest(self, rows: int, columns: int) -> int:
        """The length of the longest diagonal, in a matrix of this size."""
        return min(rows + min(self.upper, 0), columns - max(self.lower, 0))

    def packed_shape(self, rows: int, columns: int) -> tuple[int, ...]:
        """The shape of the stacked diagonals of one matrix."""
        longest = self.longest(rows, columns)
        return (longest,) if self.size == 1 else (self.size, longest)

    def check_inside(self, rows: int, columns: int) -> None:
        """Raise InvalidArgumentError unless the band lies in matrices of this size."""
        for name, index in (("lower", self.lower), ("upper", self.upper)):
            if index != 0 and not -rows < index < columns:
                raise InvalidArgumentError(
                    f"{name}_diag_index is out of bound: {index}. It must be between {-rows} and {columns}"
                )

    def places(
        self, rows: int, columns: int, longest: int, align: str
    ) -> Iterator[tuple[int, slice, slice]]:
        """For each diagonal its row and columns in the stack, and its places in a flat matrix."""
        above, below = align.split("_")
        for row, index in enumerate(range(self.upper, self.lower - 1, -1)):
            length = min(rows + min(index, 0), columns - max(index, 0))
            if length <= 0:
                continue
            left = (index >= 0 and above == "LEFT") or (index <= 0 and below == "LEFT")
            first = 0 if left else longest - length
            start = max(index, 0) - min(index, 0) * columns
            stop = start + (length - 1) * (columns + 1) + 1
            yield row, slice(first, first + length), slice(start, stop, columns + 1)


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


def _declare(
    signature: str, new_inputs: str, *shape_fns: ShapeFn, doc: str, traits: str = "cost=linear"
) -> list[OpHandle]:
    """The four versions of an op: that named Batch, before GraphDef version 14, that without, V2 and V3.

    Args:
        signature: That of the op.
        new_inputs: The inputs that V2 and V3 have beside.
        shape_fns: That of the op, and that of V2 and V3.
        doc: What the op does.
        traits: The traits.
    """
    name, _, arguments = signature.partition("(")
    old = register_op(
        f"Batch{signature}",
        attrs=["T: type"],
        shape_fn=unknown_shape,
        deprecated=(14, f"Use {name}"),
        doc=f"The old name of {name}.",
    )
    wide = arguments.replace(")", f", {new_inputs})", 1)
    first, second = shape_fns
    return [
        old,
        *(
            register_op(each, attrs=["T: type", *align], shape_fn=shapes, traits=traits, doc=doc)
            for each, shapes, *align in (
                (signature, first),
                (f"{name}V2({wide}", second),
                (f"{name}V3({wide}", second, _ALIGN),
            )
        ),
    ]


BATCH_MATRIX_DIAG, MATRIX_DIAG, MATRIX_DIAG_V2, MATRIX_DIAG_V3 = _declare(
    "MatrixDiag(diagonal: T) -> output: T",
    "k: int32, num_rows: int32, num_cols: int32, padding_value: T",
    shape_rule("[..., n] -> [..., n, n]"),
    matrix_diag_v2_shape,
    doc="Matrices with the given diagonals, and with the padding value elsewhere.",
)
BATCH_MATRIX_DIAG_PART, MATRIX_DIAG_PART, MATRIX_DIAG_PART_V2, MATRIX_DIAG_PART_V3 = _declare(
    "MatrixDiagPart(input: T) -> diagonal: T",
    "k: int32, padding_value: T",
    matrix_diag_part_shape,
    matrix_diag_part_v2_shape,
    doc="The diagonals of matrices, stacked, and filled up with the padding value.",
)
BATCH_MATRIX_SET_DIAG, MATRIX_SET_DIAG, MATRIX_SET_DIAG_V2, MATRIX_SET_DIAG_V3 = _declare(
    "MatrixSetDiag(input: T, diagonal: T) -> output: T",
    "k: int32",
    matrix_set_diag_shape,
    matrix_set_diag_v2_shape,
    doc="The matrices `input` with other diagonals.",
    traits="",
)


@register_kernel(MATRIX_DIAG, BATCH_MATRIX_DIAG, types={"T": POD})
def matrix_diag(diagonal: Any, *, T: DataType, xp: Any) -> Any:
    return _diag(diagonal, Band(0, 0), (-1, -1), zeros((), T), _LEFT, xp)


@register_kernel(MATRIX_DIAG_V2, types={"T": POD})
def matrix_diag_v2(
    diagonal: Any, k: Any, num_rows: Any, num_cols: Any, padding_value: Any, *, xp: Any
) -> Any:
    return matrix_diag_v3(diagonal, k, num_rows, num_cols, padding_value, align=_LEFT, xp=xp)


@register_kernel(MATRIX_DIAG_V3, types={"T": POD})
def matrix_diag_v3(
    diagonal: Any, k: Any, num_rows: Any, num_cols: Any, padding_value: Any, *, align: str, xp: Any
) -> Any:
    inputs = {"num_rows": num_rows, "num_cols": num_cols, "padding_value": padding_value}
    for name, value in inputs.items():
        require_scalar(value, f"{name} must be a scalar")
    sizes = num_rows.item(), num_cols.item()
    return _diag(diagonal, Band.of(k), sizes, padding_value, align, xp)


def _diag(
    diagonal: Any, band: Band, sizes: tuple[int, int], padding: Any, align: str, xp: Any
) -> Any:
    """The matrices with the given diagonals; their rows and columns are -1 where they are not given.

    Raises:
        InvalidArgumentError: the diagonals do not fit the band, or the sizes.
    """
    _check_has_elements(diagonal)
    if band.size > 1 and (diagonal.ndim < 2 or diagonal.shape[-2] != band.size):
        raise InvalidArgumentError(
            "The number of diagonals provided in the input does not match the lower_diag_index "
            "and upper_diag_index range."
        )
    batch = diagonal.shape[: -1 if band.size == 1 else -2]
    shape = (*batch, *_matrix_size(band, diagonal.shape[-1], *sizes))
    check_allocation(shape, as_dtype(diagonal.dtype))
    output = xp.full(shape, padding, dtype=diagonal.dtype)
    return _written(output, diagonal, band, align, xp)


def _matrix_size(band: Band, longest: int, rows: int, columns: int) -> tuple[int, int]:
    """The size of the matrices: as given, or else the smallest; square if nothing is given."""
    least_rows, least_columns = longest - min(band.upper, 0), longest + max(band.lower, 0)
    require(rows == -1 or rows >= least_rows, "The number of rows is too small.")
    require(columns == -1 or columns >= least_columns, "The number of columns is too small.")
    if rows == columns == -1:
        return (max(least_rows, least_columns),) * 2
    rows = least_rows if rows == -1 else rows
    columns = least_columns if columns == -1 else columns
    if rows != least_rows and columns != least_columns:
        raise InvalidArgumentError(
            "The number of rows or columns is not consistent with the specified d_lower, d_upper, and diagonal."
        )
    return rows, columns


@register_kernel(MATRIX_DIAG_PART, BATCH_MATRIX_DIAG_PART, types={"T": POD})
def matrix_diag_part(matrices: Any, *, T: DataType, xp: Any) -> Any:
    return _part(matrices, Band(0, 0), zeros((), T), _LEFT, xp)


@register_kernel(MATRIX_DIAG_PART_V2, types={"T": POD})
def matrix_diag_part_v2(matrices: Any, k: Any, padding_value: Any, *, xp: Any) -> Any:
    return matrix_diag_part_v3(matrices, k, padding_value, align=_LEFT, xp=xp)


@register_kernel(MATRIX_DIAG_PART_V3, types={"T": POD})
def matrix_diag_part_v3(matrices: Any, k: Any, padding_value: Any, *, align: str, xp: Any) -> Any:
    require_equal(padding_value.size, 1, "Padding must be scalar.")
    return _part(matrices, Band.of(k), padding_value.reshape(()), align, xp)


def _part(matrices: Any, band: Band, padding: Any, align: str, xp: Any) -> Any:
    batch, rows, columns = _matrices_shape(matrices)
    band.check_inside(rows, columns)
    longest = band.longest(rows, columns)
    stack = xp.full((*batch, band.size, longest), padding, dtype=matrices.dtype)
    if xp is np:
        flat = matrices.reshape((*batch, rows * columns))
        for row, packed, places in in_time(band.places(rows, columns, longest, align), SLOW):
            stack[..., row, packed] = flat[..., places]
    else:
        stack = _taken(stack, matrices, band, align, xp)
    return stack.reshape(batch + band.packed_shape(rows, columns))


def _taken(stack: Any, matrices: Any, band: Band, align: str, xp: Any) -> Any:
    """The stack with the diagonals, where arrays do not change: each element is found by its place."""
    rows, columns = matrices.shape[-2:]
    longest = stack.shape[-1]
    if 0 in (*matrices.shape, longest):
        return stack
    first, length = _in_stack(band, rows, columns, longest, align)
    above = np.arange(band.upper, band.lower - 1, -1)[:, None]  # how far above the main diagonal
    step = np.arange(longest) - first[:, None]
    inside = (step >= 0) & (step < length[:, None])
    i = np.where(inside, step + np.maximum(-above, 0), 0)
    j = np.where(inside, step + np.maximum(above, 0), 0)
    return xp.where(inside, matrices[..., i, j], stack)


def _in_stack(band: Band, rows: int, columns: int, longest: int, align: str) -> Any:
    """The column in which each diagonal begins in its row of the stack, and how many elements it has."""
    first, length = np.zeros((2, band.size), np.int32)
    for row, packed, _ in band.places(rows, columns, longest, align):
        first[row], length[row] = packed.start, packed.stop - packed.start
    return first, length


def _matrices_shape(matrices: Any) -> tuple[_Shape, int, int]:
    """The batch, rows and columns; raises InvalidArgumentError where there are none."""
    require_rank_at_least(matrices, 2, "input must be at least 2-dim, received shape: {}")
    return matrices.shape[:-2], matrices.shape[-2], matrices.shape[-1]


@register_kernel(MATRIX_SET_DIAG, BATCH_MATRIX_SET_DIAG, types={"T": POD})
def matrix_set_diag(matrices: Any, diagonal: Any, *, xp: Any) -> Any:
    return _set_diag(matrices, diagonal, Band(0, 0), _LEFT, xp)


@register_kernel(MATRIX_SET_DIAG_V2, types={"T": POD})
def matrix_set_diag_v2(matrices: Any, diagonal: Any, k: Any, *, xp: Any) -> Any:
    return _set_diag(matrices, diagonal, Band.of(k), _LEFT, xp)


@register_kernel(MATRIX_SET_DIAG_V3, types={"T": POD})
def matrix_set_diag_v3(matrices: Any, diagonal: Any, k: Any, *, align: str, xp: Any) -> Any:
    return _set_diag(matrices, diagonal, Band.of(k), align, xp)


def _set_diag(matrices: Any, diagonal: Any, band: Band, align: str, xp: Any) -> Any:
    batch, rows, columns = _matrices_shape(matrices)
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
    output = np.array(matrices, order="C") if xp is np else matrices
    return _written(output, diagonal, band, align, xp)


def _check_has_elements(diagonal: Any) -> None:
    require_rank_at_least(diagonal, 1, "diagonal must be at least 1-dim, received shape: {}")


def _written(matrices: Any, diagonal: Any, band: Band, align: str, xp: Any) -> Any:
    """New matrices with their diagonals set."""
    batch, rows, columns = _matrices_shape(matrices)
    longest = diagonal.shape[-1]
    stack = diagonal.reshape((*batch, band.size, longest))
    if xp is not np:
        return _selected(matrices, stack, band, align, xp)
    flat = matrices.reshape((*batch, rows * columns))
    for row, packed, places in in_time(band.places(rows, columns, longest, align), SLOW):
        flat[..., places] = stack[..., row, packed]
    return matrices


def _selected(matrices: Any, stack: Any, band: Band, align: str, xp: Any) -> Any:
    """The matrices with the diagonals of a stack, where arrays do not change: each element is found by its place."""
    rows, columns = matrices.shape[-2:]
    longest = stack.shape[-1]
    if 0 in (*matrices.shape, longest):
        return matrices
    i, j = xp.arange(rows, dtype=np.int32)[:, None], xp.arange(columns, dtype=np.int32)
    row = xp.clip(band.upper - (j - i), 0, band.size - 1)
    first = xp.asarray(_in_stack(band, rows, columns, longest, align)[0])
    column = xp.clip(xp.minimum(i, j) + first[row], 0, longest - 1)
    inside = (j - i >= band.lower) & (j - i <= band.upper)
    return xp.where(inside, stack[..., row, column], matrices)


g.register_gradient("MatrixDiag")(g.by_op("MatrixDiagPart"))


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
    return _of_version(op, "MatrixDiagPart", matrix, k, constant(0, matrix.dtype))


def _with_diagonals(op: g.Operation, matrix: g.Tensor, diagonals: g.Tensor, k: g.Tensor) -> Any:
    """A matrix with other diagonals, laid out as `op` does."""
    return _of_version(op, "MatrixSetDiag", matrix, diagonals, k)


def _of_version(op: g.Operation, name: str, *inputs: Any) -> Any:
    """A node of the version of `op`, with its attr `align` where there is one."""
    attrs = g.attrs_of(op, "align") if op.type.endswith("V3") else {}
    return getattr(g.nodes, f"{name}{op.type[-2:]}")(*inputs, **attrs)
