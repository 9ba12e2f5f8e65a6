"""Shapes of operations on the diagonals of batches of matrices.

A diagonal index counts from the main diagonal, above it positive. A pair of indices is a band;
its diagonals are stacked from the top, padded to the longest.

Source: TensorFlow core/framework/common_shape_fns.cc.
"""

from opkernel.errors import InvalidArgumentError
from opkernel.opdef.shapes.inference_context import InferenceContext
from opkernel.opdef.shapes.input_values import Array
from opkernel.opdef.shapes.shape_handles import UNKNOWN_DIM, ShapeHandle


def matrix_diag_part_v2_shape(c: InferenceContext) -> None:
    """[..., m, n] and a band k -> [..., diagonals, longest], or [..., length] for one diagonal."""
    matrices = c.with_rank_at_least(c.input(0), 2)
    index_shape = c.with_rank_at_most(c.input(1), 1)
    c.with_rank(c.input(2), 0)
    index = c.input_tensor(1)
    if matrices.dims is None or not c.fully_defined(index_shape) or index is None:
        c.set_output(0, c.unknown_shape())
        return
    lower, upper = _band(index)
    rows, columns = (dim.value for dim in matrices.dims[-2:])
    longest = UNKNOWN_DIM
    if UNKNOWN_DIM not in (rows, columns):
        _check_band_inside(lower, upper, rows, columns)
        longest = min(rows + min(upper, 0), columns - max(lower, 0))
    diagonals = [upper - lower + 1] if lower < upper else []
    c.set_output(0, c.make_shape([*matrices.dims[:-2], *diagonals, longest]))


def matrix_diag_v2_shape(c: InferenceContext) -> None:
    """Diagonals of a band k -> [..., m, n]; the smallest matrix where the size is not given."""
    diagonal = c.with_rank_at_least(c.input(0), 1)
    index_shape = c.with_rank_at_most(c.input(1), 1)
    for i in (2, 3, 4):
        c.with_rank(c.input(i), 0)
    index = c.input_tensor(1)
    if diagonal.dims is None or not c.fully_defined(index_shape) or index is None:
        c.set_output(0, c.unknown_shape())
        return
    lower, upper = _band(index)
    if lower < upper:
        _check_number_of_diagonals(c, diagonal, lower, upper)
    rows, columns = _matrix_size(c, c.dim(diagonal, -1).value, lower, upper)
    leading = diagonal.dims[: -2 if lower < upper else -1]
    c.set_output(0, c.make_shape([*leading, rows, columns]))
    are_known = c.value_known(c.dim(diagonal, -1)) and all(
        c.input_tensor(i) is not None for i in (2, 3)
    )
    if not are_known:  # TensorFlow takes -1, which stands for the unknown, for the value
        c.doubt_output(0)


def matrix_set_diag_v2_shape(c: InferenceContext) -> None:
    """[..., m, n] with a band k replaced -> the same shape, refined by the shape of the diagonals."""
    matrices = c.with_rank_at_least(c.input(0), 2)
    diagonal = c.with_rank_at_least(c.input(1), 1)
    index_shape = c.with_rank_at_most(c.input(2), 1)
    index = c.input_tensor(2)
    index_known = index is not None and c.fully_defined(index_shape)
    lower, upper = _band(index) if index is not None and index_known else (0, 0)
    if matrices.dims is not None:
        rank = len(matrices.dims)
        if index_known:
            diagonal = c.with_rank(diagonal, rank - 1 if lower == upper else rank)
        else:
            diagonal = c.with_rank_at_least(diagonal, rank - 1)
            diagonal = c.with_rank_at_most(diagonal, rank)
        rows, columns = (dim.value for dim in matrices.dims[-2:])
        if UNKNOWN_DIM not in (rows, columns):
            _check_band_inside(lower, upper, rows, columns)
    if c.rank_known(diagonal) and not c.fully_defined(matrices):
        leading = c.subshape(diagonal, 0, -1 if lower == upper else -2)
        matrices = c.merge(matrices, c.concatenate(leading, c.unknown_shape_of_rank(2)))
    c.set_output(0, matrices)


def _band(index: Array) -> tuple[int, int]:
    """The lowest and highest diagonal that a tensor of one or two indices names."""
    values: list[int] = index.reshape(-1).tolist()
    if len(values) not in (1, 2):
        raise InvalidArgumentError(
            f"diag_index must be a vector with one or two elements. It has {len(values)} elements."
        )
    lower, upper = values[0], values[-1]
    if lower > upper:
        raise InvalidArgumentError(
            f"lower_diag_index is greater than upper_diag_index: {lower} > {upper}"
        )
    return lower, upper


def _check_band_inside(lower: int, upper: int, rows: int, columns: int) -> None:
    for name, index in (("lower", lower), ("upper", upper)):
        if index != 0 and not -rows < index < columns:
            raise InvalidArgumentError(
                f"{name}_diag_index is out of bound: {index} for matrices [{rows},{columns}]"
            )


def _check_number_of_diagonals(
    c: InferenceContext, diagonal: ShapeHandle, lower: int, upper: int
) -> None:
    given = c.dim(c.with_rank_at_least(diagonal, 2), -2).value
    if given != upper - lower + 1:
        raise InvalidArgumentError(
            "The number of rows of `diagonal` doesn't match the number of diagonals implied from "
            f"`d_lower` and `d_upper`: num_diags = {given}, d_lower = {lower}, d_upper = {upper}"
        )


def _matrix_size(c: InferenceContext, longest: int, lower: int, upper: int) -> tuple[int, int]:
    """Rows and columns of the matrices whose longest diagonal of the band has this length."""
    given_rows, given_columns = (_size_input(c, i) for i in (2, 3))
    least_rows, least_columns = longest - min(upper, 0), longest + max(lower, 0)
    if given_rows == given_columns == UNKNOWN_DIM:
        return (max(least_rows, least_columns),) * 2
    rows = least_rows if given_rows == UNKNOWN_DIM else given_rows
    columns = least_columns if given_columns == UNKNOWN_DIM else given_columns
    for name, size, least in (("rows", rows, least_rows), ("cols", columns, least_columns)):
        if size < least:
            raise InvalidArgumentError(f"num_{name} is too small: {size} < {least}")
    if rows != least_rows and columns != least_columns:
        raise InvalidArgumentError(
            "num_rows and num_cols are not consistent with lower_diag_index, upper_diag_index, "
            f"and the length of the given diagonals.\nnum_rows = {rows} != min_num_rows = "
            f"{least_rows}, num_cols = {columns} != min_num_cols = {least_columns}"
        )
    return rows, columns


def _size_input(c: InferenceContext, index: int) -> int:
    tensor = c.input_tensor(index)
    return UNKNOWN_DIM if tensor is None else c.get_scalar_from_tensor(tensor)
