"""Norms, and tensors scaled to have one.

Source: TensorFlow python/ops/linalg_ops.py, clip_ops.py, nn_impl.py.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from opkernel import raw_ops
from opkernel.endpoints.tensors import (
    TensorLike,
    all_axes,
    composed,
    convert,
    dtype_of,
    known_rank,
    number_like,
)
from opkernel.ops.registration import REAL_OF


@composed
def norm(
    tensor: TensorLike,
    ord: Any = "euclidean",
    axis: Any = None,
    keepdims: bool | None = None,
    name: str | None = None,
) -> Any:
    """The norm of a tensor, of its vectors, or of its matrices.

    Args:
        tensor: floating-point or complex numbers.
        ord: "euclidean", 1, 2, inf or a positive number for vectors; for matrices "euclidean" or
            "fro", 1, 2 (the largest singular value) or inf.
        axis: an axis for vectors, two for matrices; None for the whole tensor as one vector.
        keepdims: keep the axes with size 1.
        name: a name for the scope of nodes in a graph.

    Raises:
        ValueError: there is no such norm.
    """
    x = convert(tensor)
    is_matrix = isinstance(axis, list | tuple) and len(axis) == 2
    if isinstance(axis, list | tuple) and not is_matrix and len(axis) != 1:
        raise ValueError(f"axis is None, a number or two numbers, and not {axis!r}")
    _check_order(ord, is_matrix)
    keep = bool(keepdims)
    axes = all_axes(x) if axis is None else axis
    if ord in ("euclidean", "fro") or (ord == 2 and not is_matrix):
        squares = raw_ops.Mul(x=x, y=raw_ops.Conj(input=x) if dtype_of(x).is_complex else x)
        if is_matrix or axis is not None or ord != "fro":
            return raw_ops.Sqrt(x=_sum(squares, axes, keep))
    sizes = _absolute(x)
    if is_matrix:
        return _matrix_norm(x, sizes, ord, [*axes], keep)
    if ord == np.inf:
        return raw_ops.Max(input=sizes, axis=axes, keep_dims=keep)
    if ord == 1:
        return _sum(sizes, axes, keep)
    power = raw_ops.Pow(x=sizes, y=number_like(sizes, ord))
    return raw_ops.Pow(x=_sum(power, axes, keep), y=number_like(sizes, 1.0 / ord))


def _check_order(order: Any, is_matrix: bool) -> None:
    known: list[Any] = ["euclidean", "fro", 1, 2, np.inf] if is_matrix else ["euclidean"]
    is_power = not is_matrix and not isinstance(order, str) and order > 0
    if order not in known and not is_power:
        kind = "matrices" if is_matrix else "vectors"
        raise ValueError(f"ord {order!r} is not a norm of {kind}")


def _absolute(x: Any) -> Any:
    if not dtype_of(x).is_complex:
        return raw_ops.Abs(x=x)
    return raw_ops.ComplexAbs(x=x, Tout=REAL_OF[dtype_of(x)])


def _sum(x: Any, axes: Any, keep: bool) -> Any:
    return raw_ops.Sum(input=x, axis=axes, keep_dims=keep)


def _matrix_norm(x: Any, sizes: Any, order: Any, axes: list[int], keep: bool) -> Any:
    if order == 2:
        return _largest_singular_value(x, axes, keep)
    inner, outer = (axes[0], axes[1]) if order == 1 else (axes[1], axes[0])
    sums = _sum(sizes, inner, True)
    found = raw_ops.Max(input=sums, axis=outer, keep_dims=True)
    return found if keep else raw_ops.Squeeze(input=found, axis=axes)


def _largest_singular_value(x: Any, axes: list[int], keep: bool) -> Any:
    rank = known_rank(x, "norm")
    rows, columns = (axis % rank for axis in axes)
    others = [axis for axis in range(rank) if axis not in (rows, columns)]
    turned = raw_ops.Transpose(x=x, perm=np.array([*others, rows, columns], np.int32))
    values = raw_ops.Svd(input=turned, compute_uv=False)[0]
    found = raw_ops.Max(input=_absolute(values), axis=np.array([-1], np.int32))
    if keep:
        for axis in sorted((rows, columns)):
            found = raw_ops.ExpandDims(input=found, axis=axis)
    return found


@composed
def normalize(
    tensor: TensorLike, ord: Any = "euclidean", axis: Any = None, name: str | None = None
) -> tuple[Any, Any]:
    """A tensor divided by its norm, and the norm with its axes kept; the arguments are those of norm."""
    x = convert(tensor)
    length = norm(x, ord, axis, keepdims=True)
    if dtype_of(x) != dtype_of(length):
        length = raw_ops.Cast(x=length, DstT=dtype_of(x))
    return raw_ops.RealDiv(x=x, y=length), length


@composed
def l2_normalize(
    x: TensorLike,
    axis: Any = None,
    epsilon: float = 1e-12,
    name: str | None = None,
    dim: Any = None,
) -> Any:
    """A tensor divided by the root of the sum of its squares over axes, which is at least `epsilon`.

    Args:
        x: the tensor.
        axis: an axis or several; all if None.
        epsilon: the least sum of squares.
        name: a name for the scope of nodes in a graph.
        dim: an older name of `axis`.
    """
    x = convert(x)
    over = dim if axis is None else axis
    axes = all_axes(x) if over is None else over
    if dtype_of(x).is_complex:
        part = REAL_OF[dtype_of(x)]
        real, imag = raw_ops.Real(input=x, Tout=part), raw_ops.Imag(input=x, Tout=part)
        squares = raw_ops.AddV2(x=raw_ops.Square(x=real), y=raw_ops.Square(x=imag))
        scale = _inverse_root(_sum(squares, axes, True), epsilon)
        return raw_ops.Complex(
            real=raw_ops.Mul(x=real, y=scale),
            imag=raw_ops.Mul(x=imag, y=scale),
            Tout=dtype_of(x),
        )
    return raw_ops.Mul(x=x, y=_inverse_root(_sum(raw_ops.Square(x=x), axes, True), epsilon))


def _inverse_root(total: Any, least: float) -> Any:
    return raw_ops.Rsqrt(x=raw_ops.Maximum(x=total, y=number_like(total, least)))


@composed
def global_norm(t_list: Sequence[TensorLike | None], name: str | None = None) -> Any:
    """The norm of several tensors as one vector; None does not count.

    Raises:
        TypeError: `t_list` is not a list.
    """
    if not isinstance(t_list, list | tuple):
        raise TypeError(f"global_norm takes a list of tensors, and not {type(t_list).__name__}")
    halves = [raw_ops.L2Loss(t=t) for t in t_list if t is not None]
    total = raw_ops.Sum(input=raw_ops.Pack(values=halves), axis=np.array([0], np.int32))
    return raw_ops.Sqrt(x=raw_ops.Mul(x=total, y=number_like(total, 2.0)))
