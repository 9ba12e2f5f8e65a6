"""Products of matrices and tensors, and matrices made of parts.

Source: TensorFlow python/ops/math_ops.py, special_math_ops.py, linalg_ops.py, array_ops.py, python/ops/linalg/linalg_impl.py.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from opkernel import raw_ops
from opkernel.endpoints.tensors import (
    DTypeLike,
    TensorLike,
    cast_to,
    composed,
    convert,
    dtype_of,
    known_rank,
    pair,
    shape_of,
    static_rank,
    static_value,
)
from opkernel.errors import InvalidArgumentError
from opkernel.types import DataType, as_dtype


@composed
def matmul(
    a: TensorLike,
    b: TensorLike,
    transpose_a: bool = False,
    transpose_b: bool = False,
    adjoint_a: bool = False,
    adjoint_b: bool = False,
    a_is_sparse: bool = False,
    b_is_sparse: bool = False,
    output_type: DTypeLike | None = None,
    grad_a: bool = False,
    grad_b: bool = False,
    name: str | None = None,
) -> Any:
    """The product of two matrices, or of two batches of them, whose leading axes are broadcast.

    Args:
        a: the left matrices, of rank 2 or more.
        b: the right matrices, of the same type.
        transpose_a: transpose the left ones first.
        transpose_b: transpose the right ones first.
        adjoint_a: take the conjugate transpose of the left ones.
        adjoint_b: take the conjugate transpose of the right ones.
        a_is_sparse: the left matrix has many zeros; a hint, for matrices only.
        b_is_sparse: the right one has.
        output_type: the type of the result, where it is another: int32 for int8.
        grad_a: ignored: a hint for gradients, as grad_b is.
        grad_b: ignored.
        name: a name for the scope of nodes in a graph.

    Raises:
        ValueError: one matrix is to be transposed in two ways.
    """
    if (transpose_a and adjoint_a) or (transpose_b and adjoint_b):
        raise ValueError("matmul takes transpose or adjoint for a matrix, and not both")
    x, y = pair(a, b)
    wanted = None if output_type is None else as_dtype(output_type)
    are_matrices = static_rank(x) == static_rank(y) == 2
    if (a_is_sparse or b_is_sparse) and are_matrices and dtype_of(x) in _SPARSE:
        return raw_ops.SparseMatMul(
            a=x,
            b=y,
            transpose_a=transpose_a or adjoint_a,
            transpose_b=transpose_b or adjoint_b,
            a_is_sparse=a_is_sparse,
            b_is_sparse=b_is_sparse,
        )
    if wanted is not None and (wanted, dtype_of(x)) != (dtype_of(x), dtype_of(y)):
        adj: dict[str, Any] = {"adj_x": transpose_a or adjoint_a, "adj_y": transpose_b or adjoint_b}
        return raw_ops.BatchMatMulV3(x=x, y=y, Tout=wanted, **adj)
    if dtype_of(x).is_complex:
        x = _conjugated(x, transpose_a)
        y = _conjugated(y, transpose_b)
    if are_matrices and not dtype_of(x).is_complex:
        return raw_ops.MatMul(
            a=x, b=y, transpose_a=transpose_a or adjoint_a, transpose_b=transpose_b or adjoint_b
        )
    return raw_ops.BatchMatMulV2(
        x=x, y=y, adj_x=transpose_a or adjoint_a, adj_y=transpose_b or adjoint_b
    )


_SPARSE = (DataType.DT_FLOAT, DataType.DT_BFLOAT16)


def _conjugated(x: Any, is_wanted: bool) -> Any:
    return raw_ops.Conj(input=x) if is_wanted else x


@composed
def matvec(
    a: TensorLike,
    b: TensorLike,
    transpose_a: bool = False,
    adjoint_a: bool = False,
    a_is_sparse: bool = False,
    b_is_sparse: bool = False,
    name: str | None = None,
) -> Any:
    """The product of a matrix and a vector, or of batches of them; the arguments are those of matmul."""
    y = raw_ops.ExpandDims(input=convert(b), axis=-1)
    product = matmul(
        a,
        y,
        transpose_a=transpose_a,
        adjoint_a=adjoint_a,
        a_is_sparse=a_is_sparse,
        b_is_sparse=b_is_sparse,
    )
    return raw_ops.Squeeze(input=product, axis=[-1])


@composed
def tensordot(a: TensorLike, b: TensorLike, axes: Any, name: str | None = None) -> Any:
    """The sums of products of two tensors over pairs of axes.

    Args:
        a: the first tensor.
        b: the second, of the same type.
        axes: N for the last N axes of `a` with the first N of `b`; or two lists with the axes of each.
        name: a name for the scope of nodes in a graph.

    Raises:
        ValueError: `axes` is not of these forms.
    """
    x, y = pair(a, b)
    first, second = _pairs(x, y, axes)
    left, left_free = _as_matrix(x, first, True)
    right, right_free = _as_matrix(y, second, False)
    product = raw_ops.MatMul(a=left, b=right)
    shape = raw_ops.ConcatV2(values=[left_free, right_free], axis=0)
    return raw_ops.Reshape(tensor=product, shape=shape)


def _pairs(x: Any, y: Any, axes: Any) -> tuple[list[int], list[int]]:
    value = static_value(axes) if not isinstance(axes, list | tuple) else None
    given: Any = axes if value is None else value.tolist()
    ranks = known_rank(x, "tensordot"), known_rank(y, "tensordot")
    if isinstance(given, int):
        if not 0 <= given <= min(ranks):
            raise ValueError(f"axes is from 0 to {min(ranks)}, the lower rank, and not {given}")
        return [*range(ranks[0] - given, ranks[0])], [*range(given)]
    if not isinstance(given, list | tuple) or len(given) != 2:
        raise ValueError(f"axes is a number or two lists of axes, and not {given!r}")
    first, second = ([part] if isinstance(part, int) else [*part] for part in given)
    if len(first) != len(second):
        raise ValueError(f"axes has as many axes of a as of b, and not {given!r}")
    both = []
    for rank, part in zip(ranks, (first, second), strict=True):
        if not all(-rank <= axis < rank for axis in part):
            raise InvalidArgumentError(f"axes has {part} for a tensor of rank {rank}")
        both.append([int(axis) % rank for axis in part])
    return both[0], both[1]


def _as_matrix(x: Any, axes: list[int], is_left: bool) -> tuple[Any, Any]:
    """A tensor as a matrix with these axes as its columns (rows on the right), and its other sizes."""
    free = [axis for axis in range(known_rank(x, "tensordot")) if axis not in axes]
    shape = shape_of(x)
    perm = np.array(free + axes if is_left else axes + free, np.int32)
    sizes = raw_ops.GatherV2(params=shape, indices=np.array(free, np.int32), axis=0)
    inner = raw_ops.GatherV2(params=shape, indices=np.array(axes, np.int32), axis=0)
    products = [raw_ops.Prod(input=part, axis=np.array([0], np.int32)) for part in (sizes, inner)]
    matrix = raw_ops.Pack(values=products if is_left else products[::-1])
    return raw_ops.Reshape(tensor=raw_ops.Transpose(x=x, perm=perm), shape=matrix), sizes


@composed
def einsum(equation: str, *inputs: TensorLike, **kwargs: Any) -> Any:
    """Sums of products over axes with letters: `einsum("ij,jk->ik", a, b)` is `a @ b`.

    Args:
        equation: the letters of the axes of each tensor, then `->` and those of the result; `...`
            stands for axes that are broadcast. Letters of no result are summed over.
        inputs: the tensors, of one type.
        kwargs: `optimize` ("greedy" and others: the order of products, which does not change the
            result) and `name`.

    Raises:
        TypeError: there is another keyword.
        InvalidArgumentError: the equation does not fit the tensors.
    """
    kwargs.pop("name", None)
    kwargs.pop("optimize", None)
    if kwargs:
        raise TypeError(f"einsum takes optimize and name, and got {', '.join(sorted(kwargs))}")
    tensors = [convert(value) for value in inputs]
    text = equation.replace(" ", "")
    if "->" not in text:
        letters = text.replace(",", "").replace(".", "")
        single = "".join(sorted(letter for letter in {*letters} if letters.count(letter) == 1))
        text = f"{text}->{'...' if '...' in text else ''}{single}"
    parts = text.split("->")[0].split(",")
    if len(parts) != len(tensors):
        raise ValueError(
            f"The equation {equation!r} has {len(parts)} operands, and {len(tensors)} tensors are given"
        )
    while len(tensors) > 2:
        text, tensors = _contracted(text, tensors)
    return raw_ops.Einsum(inputs=tensors, equation=text)


def _contracted(equation: str, tensors: list[Any]) -> tuple[str, list[Any]]:
    """An equation after the product of its first two tensors."""
    given, result = equation.split("->")
    first, second, *others = given.split(",")
    kept = {*"".join(others), *result}
    letters = dict.fromkeys(letter for letter in first + second if letter != ".")
    product = "".join(letter for letter in letters if letter in kept)
    if "..." in first + second:
        product = f"...{product}"
    made = raw_ops.Einsum(inputs=tensors[:2], equation=f"{first},{second}->{product}")
    return f"{','.join([product, *others])}->{result}", [made, *tensors[2:]]


@composed
def matrix_transpose(
    a: TensorLike, name: str | None = "matrix_transpose", conjugate: bool = False
) -> Any:
    """The last two axes in the opposite order; with `conjugate`, the complex conjugate too.

    Raises:
        ValueError: the rank is less than 2.
    """
    x = convert(a)
    rank = static_rank(x)
    if rank is None:
        axes = raw_ops.Range(start=0, limit=raw_ops.Rank(input=x), delta=1)
        perm = raw_ops.ConcatV2(values=[axes[:-2], axes[-1:], axes[-2:-1]], axis=0)
    elif rank < 2:
        raise ValueError(
            f"matrix_transpose takes a tensor of rank 2 or more, and not of rank {rank}"
        )
    else:
        perm = np.array([*range(rank - 2), rank - 1, rank - 2], np.int32)
    op = raw_ops.ConjugateTranspose if conjugate and dtype_of(x).is_complex else raw_ops.Transpose
    return op(x=x, perm=perm)


@composed
def adjoint(matrix: TensorLike, name: str | None = None) -> Any:
    """The conjugate transpose of matrices."""
    return matrix_transpose(matrix, conjugate=True)


@composed
def trace(x: TensorLike, name: str | None = None) -> Any:
    """The sum of the diagonal of each matrix."""
    diagonal = raw_ops.MatrixDiagPart(input=convert(x))
    return raw_ops.Sum(input=diagonal, axis=np.array([-1], np.int32))


@composed
def eye(
    num_rows: TensorLike,
    num_columns: TensorLike | None = None,
    batch_shape: Any = None,
    dtype: DTypeLike = DataType.DT_FLOAT,
    name: str | None = None,
) -> Any:
    """The identity matrix, or a batch of identity matrices.

    Args:
        num_rows: how many rows, a scalar.
        num_columns: how many columns; as many as rows if None.
        batch_shape: the sizes of the axes before the matrix.
        dtype: the type.
        name: a name for the scope of nodes in a graph.

    Raises:
        ValueError: a size is negative.
    """
    rows = convert(num_rows)
    columns = rows if num_columns is None else convert(num_columns)
    for size in (rows, columns):
        value = static_value(size)
        if value is not None and value < 0:
            raise ValueError(f"eye takes sizes that are not negative, and got {int(value)}")
    batch = np.zeros(0, np.int32) if batch_shape is None else convert(batch_shape)
    batch = cast_to(batch, DataType.DT_INT32)
    size = raw_ops.Pack(values=[cast_to(raw_ops.Minimum(x=rows, y=columns), DataType.DT_INT32)])
    both = raw_ops.Pack(values=[cast_to(part, DataType.DT_INT32) for part in (rows, columns)])
    wanted = as_dtype(dtype)
    diagonal = raw_ops.Fill(
        dims=raw_ops.ConcatV2(values=[batch, size], axis=0), value=np.array(1, wanted.numpy_dtype)
    )
    full = raw_ops.ConcatV2(values=[batch, both], axis=0)
    zeros = raw_ops.Fill(dims=full, value=np.array(0, wanted.numpy_dtype))
    return raw_ops.MatrixSetDiag(input=zeros, diagonal=diagonal)
