"""Eigenvalues of tridiagonal matrices.

Source: TensorFlow python/ops/linalg/linalg_impl.py.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from opkernel import raw_ops
from opkernel.endpoints.math.reductions import reduce_max
from opkernel.endpoints.tensors import (
    TensorLike,
    composed,
    convert,
    dtype_of,
    known_rank,
    like,
    static_shape,
    static_value,
)
from opkernel.errors import InvalidArgumentError
from opkernel.ops.registration import REAL_OF

_SLACK = 2.1
"""How many roundings of the largest eigenvalue an interval is widened by, for each row."""


@composed
def eigh_tridiagonal(
    alpha: TensorLike,
    beta: TensorLike,
    eigvals_only: bool = True,
    select: str = "a",
    select_range: Sequence[TensorLike] | None = None,
    tol: TensorLike | None = None,
    name: str | None = None,
) -> Any:
    """The eigenvalues of a Hermitian tridiagonal matrix, ascending.

    Args:
        alpha: the diagonal, a vector of n floats; of complex numbers only the real parts count.
        beta: the diagonal above it, n - 1 numbers of the same type.
        eigvals_only: give no eigenvectors.
        select: "a" for all eigenvalues, "v" for those in the interval `select_range`, or "i" for those whose
            numbers it has.
        select_range: the first and the last number, or the ends of the interval.
        tol: not used: the eigenvalues are as exact as their type.
        name: a name for the scope of nodes in a graph.

    Returns:
        The eigenvalues, a vector of k; without `eigvals_only` also the eigenvectors as columns, [n, k].

    Raises:
        ValueError: the types differ, or `select` is another word.
        InvalidArgumentError: `select_range` is empty.
    """
    diagonal, above = convert(alpha), convert(beta)
    if dtype_of(diagonal) != dtype_of(above):
        raise ValueError(
            f"alpha and beta are of one type, and not of {dtype_of(diagonal).tf_name} and {dtype_of(above).tf_name}"
        )
    if select not in ("a", "i", "v"):
        raise ValueError(f'select is "a", "i" or "v", and not {select!r}')
    if select != "a":
        _check_range(select, select_range)
    if known_rank(diagonal, "A tridiagonal matrix") == 1 and static_shape(diagonal) == [1]:
        return _real(diagonal)
    values, vectors = raw_ops.SelfAdjointEigV2(
        input=_matrix(diagonal, above), compute_v=not eigvals_only
    )
    values = _real(values)
    kept = _kept(values, select, select_range)
    if kept is not None:
        values = raw_ops.GatherV2(params=values, indices=kept, axis=0)
        if not eigvals_only:
            vectors = raw_ops.GatherV2(params=vectors, indices=kept, axis=1)
    return values if eigvals_only else (values, vectors)


def _check_range(select: str, select_range: Any) -> None:
    if select_range is None or len(select_range) != 2:
        raise ValueError(f'select="{select}" needs a select_range of two numbers')
    first, last = map(static_value, select_range)
    if (
        first is not None
        and last is not None
        and (first > last or (select == "v" and first == last))
    ):
        raise InvalidArgumentError(f"select_range is empty: from {first} to {last}")


def _real(x: Any) -> Any:
    kind = dtype_of(x)
    return raw_ops.Real(input=x, Tout=REAL_OF[kind]) if kind in REAL_OF else x


def _matrix(diagonal: Any, above: Any) -> Any:
    """The matrix with its diagonal and the one below, which is all that is read of it."""
    kind = dtype_of(diagonal)
    if kind in REAL_OF:
        above = raw_ops.Conj(input=above)
    parts = [raw_ops.MatrixDiagV3(
        diagonal=values, k=np.int32(k), num_rows=np.int32(-1), num_cols=np.int32(-1),
        padding_value=np.zeros((), kind.numpy_dtype),
    ) for values, k in ((diagonal, 0), (above, -1))]  # fmt: skip
    return raw_ops.AddV2(x=parts[0], y=parts[1])


def _kept(values: Any, select: str, select_range: Any) -> Any:
    """The numbers of the eigenvalues that are wanted; None for all."""
    if select == "a":
        return None
    if select == "i":
        first, last = (like(end, dtype_of(np.zeros(1, np.int32))) for end in select_range)
        return raw_ops.Range(start=first, limit=last + np.int32(1), delta=np.int32(1))
    kind = dtype_of(values)
    low, high = (like(end, kind) for end in select_range)
    largest = reduce_max(raw_ops.Abs(x=values))
    count = raw_ops.Cast(x=raw_ops.Size(input=values), DstT=kind)
    rounding = np.array(_SLACK * np.finfo(kind.numpy_dtype).eps, kind.numpy_dtype)
    slack = largest * count * rounding
    is_in = raw_ops.LogicalAnd(
        x=raw_ops.Greater(x=values, y=low - slack), y=raw_ops.LessEqual(x=values, y=high + slack)
    )
    return raw_ops.Reshape(tensor=raw_ops.Where(condition=is_in), shape=np.array([-1], np.int32))
