"""Products of matrices, and related ops, as plain NumPy functions."""

from typing import Any

import numpy as np

__all__ = ["FUNCTIONS"]


def matmul(a: Any, b: Any, *, transpose_a: bool = False, transpose_b: bool = False) -> Any:
    return (a.T if transpose_a else a) @ (b.T if transpose_b else b)


def batch_matmul(x: Any, y: Any, *, adj_x: bool = False, adj_y: bool = False) -> Any:
    return (adjoint_of(x) if adj_x else x) @ (adjoint_of(y) if adj_y else y)


def batch_matmul_v3(
    x: Any,
    y: Any,
    *,
    Tout: str,  # noqa: N803  # the attr's name
    adj_x: bool = False,
    adj_y: bool = False,
) -> Any:
    return batch_matmul(x.astype(Tout), y.astype(Tout), adj_x=adj_x, adj_y=adj_y)


def adjoint_of(x: Any) -> Any:
    return np.conj(np.swapaxes(x, -1, -2))


def einsum(inputs: Any, *, equation: str) -> Any:
    return np.einsum(equation, *inputs, optimize=True)


def matrix_band_part(x: Any, lower: Any, upper: Any) -> Any:
    """The diagonals of each matrix near the main one; all of a side whose number is negative."""
    offset = np.arange(x.shape[-1]) - np.arange(x.shape[-2])[:, np.newaxis]
    kept = ((lower < 0) | (-offset <= lower)) & ((upper < 0) | (offset <= upper))
    return np.where(kept, x, x.dtype.type(0))


def matrix_diag(diagonal: Any) -> Any:
    return diagonal[..., np.newaxis] * np.eye(diagonal.shape[-1], dtype=diagonal.dtype)


def one_diagonal(k: Any) -> int:
    """The number of a diagonal; bands of several have no function here."""
    first, *others = np.ravel(k).tolist()
    if others and others[0] != first:
        raise NotImplementedError(
            "diagonals that form a band are not implemented: k must be one number"
        )
    return int(first)


def matrix_diag_v3(diagonal: Any, k: Any, rows: Any, columns: Any, padding: Any) -> Any:
    size, k = diagonal.shape[-1], one_diagonal(k)
    rows = max(int(rows), size + max(-k, 0))
    columns = max(int(columns), size + max(k, 0))
    result = np.full((*diagonal.shape[:-1], rows, columns), padding)
    steps = np.arange(size)
    result[..., steps + max(-k, 0), steps + max(k, 0)] = diagonal
    return result


def matrix_diag_part(x: Any) -> Any:
    return np.diagonal(x, axis1=-2, axis2=-1)


def matrix_diag_part_v3(x: Any, k: Any, padding: Any) -> Any:
    return np.diagonal(x, one_diagonal(k), axis1=-2, axis2=-1)


def matrix_set_diag(x: Any, diagonal: Any) -> Any:
    result, steps = x.copy(), np.arange(diagonal.shape[-1])
    result[..., steps, steps] = diagonal
    return result


def matrix_set_diag_v3(x: Any, diagonal: Any, k: Any) -> Any:
    result, steps, k = x.copy(), np.arange(diagonal.shape[-1]), one_diagonal(k)
    result[..., steps + max(-k, 0), steps + max(k, 0)] = diagonal
    return result


def diag(diagonal: Any) -> Any:
    return np.diag(diagonal.ravel()).reshape(diagonal.shape * 2)


def diag_part(x: Any) -> Any:
    half = x.shape[: x.ndim // 2]
    return np.diag(x.reshape(int(np.prod(half)), -1)).reshape(half)


def conjugate_transpose(x: Any, perm: Any) -> Any:
    x = np.transpose(x, perm.tolist())
    return np.conj(x) if x.dtype.kind == "c" else x


FUNCTIONS = {
    "BatchMatMul": batch_matmul,
    "BatchMatMulV2": batch_matmul,
    "BatchMatMulV3": batch_matmul_v3,
    "MatMul": matmul,
}
