"""Reductions over axes: sums, products, extrema and their places, means, norms and logical folds.

Source: TensorFlow core/ops/math_ops.cc, core/kernels/reduction_ops_common.h, reduction_ops.h, argmax_op.cc;
L2Loss: core/ops/nn_ops.cc, core/kernels/l2loss_op.h.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Literal

import numpy as np

import opkernel.gradients as g
from opkernel.errors import InvalidArgumentError
from opkernel.kernel import allocate, cut, intra_op_threads, shard
from opkernel.opdef import InferenceContext, OpHandle, register_op
from opkernel.opdef.common_shapes import reduction_shape, scalar_shape
from opkernel.ops.input_checks import require_scalar
from opkernel.ops.registration import (
    FLOATS,
    INDEX,
    NARROW_FLOATS,
    NUMBERS,
    REAL_NUMBERS,
    WIDE_FLOATS,
    register_kernel,
)
from opkernel.types import DataType, as_dtype

Reduce = Callable[[Any, tuple[int, ...]], Any]
"""Folds an array over axes, all of them in range and no two equal."""

_REAL = "realnumbertype, quantizedtype"
_BLAS_DTYPES = (np.dtype(np.float32), np.dtype(np.float64))
_BLAS_FROM = 4096  # elements, from which on a matrix product pays
_FEW = 9000  # elements, of which OpenBLAS leaves a product with ones to one thread by itself
_THREADS_FROM = 20 << 20  # elements, from which on a second thread pays
_ROW = 1024
_SHORT = 32
_BLOCK = 1 << 16
_LANES = 64
"""Parts of a line begin at multiples of this: the width of several registers."""


def _declare(name: str, what: str, types: str | None, traits: str = "") -> OpHandle:
    element = "bool" if types is None else "T"
    return register_op(
        f"{name}(input: {element}, reduction_indices: Tidx) -> output: {element}",
        attrs=[
            "keep_dims: bool = false",
            *([] if types is None else [f"T: {{{types}}}"]),
            "Tidx: {int32, int64} = DT_INT32",
        ],
        shape_fn=reduction_shape,
        traits=f"reduces cannot_fail {traits}",
        doc=f"{what} of `input` over the axes `reduction_indices`, negative ones from the end.",
    )


SUM = _declare(
    "Sum",
    "The sum",
    "numbertype",
    traits="keeps_not_negative value_rule=sum int32_on_host function_gradient=yes",
)
PROD = _declare("Prod", "The product", "numbertype", traits="value_rule=prod int32_on_host")
MEAN = _declare("Mean", "The mean", "numbertype", traits="keeps_not_negative function_gradient=yes")
EUCLIDEAN_NORM = _declare("EuclideanNorm", "The square root of the sum of squares", "numbertype")
MAX, MIN = (
    _declare(
        name,
        f"The {which} element",
        _REAL,
        f"keeps_not_negative value_rule={name.lower()} int32_on_host function_gradient=yes",
    )
    for name, which in (("Max", "largest"), ("Min", "smallest"))
)
ALL = _declare("All", "The logical and", None, traits="value_rule=all")
ANY = _declare("Any", "The logical or", None, traits="value_rule=any")

L2_LOSS = register_op(
    "L2Loss(t: T) -> output: T",
    attrs=["T: {half, bfloat16, float, double}"],
    shape_fn=scalar_shape,
    doc="Half the sum of the squares of `t`.",
)


def reduction_axes(indices: Any, rank: int) -> tuple[int, ...]:
    """The axes that a tensor of indices, of any shape, names.

    Raises:
        InvalidArgumentError: an axis is out of range, or named twice.
    """
    axes = []
    for index in np.ravel(indices).tolist():
        if not -rank <= index < rank:
            raise InvalidArgumentError(
                f"Invalid reduction dimension ({index} for input with {rank} dimension(s)"
            )
        axis = index % rank
        if axis in axes:
            raise InvalidArgumentError(
                f"Invalid reduction arguments: Axes contains duplicate dimension: {axis}"
            )
        axes.append(axis)
    return tuple(axes)


def _fold_in(
    dtype: np.dtype[Any], xp: Any, name: Literal["sum", "prod"], keep_dims: bool
) -> Reduce:
    """Sum or product, accumulated and given in `dtype`."""
    if xp is np and name == "sum" and dtype in _BLAS_DTYPES:
        return _float_sum(dtype, keep_dims)
    if xp is np:
        reduce: Any = (np.add if name == "sum" else np.multiply).reduce

        def fold(x: Any, axes: tuple[int, ...]) -> Any:
            if not axes:
                return x.astype(dtype)
            if dtype.kind in "iu":
                x = _outer_first(reduce, x, axes, dtype)
            return reduce(x, axes, dtype, None, keep_dims)

        return fold
    function = getattr(xp, name)
    return lambda x, axes: function(x, axis=axes, dtype=dtype, keepdims=keep_dims)


def _float_sum(dtype: np.dtype[Any], keep_dims: bool) -> Reduce:
    """The sum of a NumPy array; over axes before the last it is faster as a product with ones."""
    reduce: Any = np.add.reduce

    def total(x: Any, axes: tuple[int, ...]) -> Any:
        if not axes:
            return x.astype(dtype)  # NumPy would add to 0, and lose the sign of -0.0
        start, stop = min(axes), max(axes) + 1
        is_run = stop - start == len(axes) and stop < x.ndim
        if not is_run or x.size < _BLAS_FROM or x.dtype != dtype or not x.flags.c_contiguous:
            return reduce(x, axes, dtype, None, keep_dims)
        count = math.prod(x.shape[start:stop])
        parts = x.reshape(-1, count, math.prod(x.shape[stop:]))
        ones = (1,) * len(axes) if keep_dims else ()
        shape = (*x.shape[:start], *ones, *x.shape[stop:])
        return _sums(parts).reshape(shape)

    return total


def _sums(parts: Any) -> Any:
    """The sums of matrices `[outer, rows, columns]` over their rows, as products with ones."""
    outer, rows, columns = parts.shape
    ones = np.ones((1, rows), parts.dtype)
    if parts.size <= _FEW:
        return np.matmul(ones, parts)
    if outer == 1:
        parts = parts[0]
    out = allocate((*parts.shape[:-2], 1, columns), as_dtype(parts.dtype))
    pieces = intra_op_threads() if parts.size > _THREADS_FROM else 1

    def compute(some: slice) -> None:
        index = some if outer > 1 else (slice(None), some)
        np.matmul(ones, parts[index], out=out[index])

    shard(compute, cut(outer, pieces) if outer > 1 else cut(columns, pieces, _LANES))
    return out


def _fold(name: Literal["sum", "prod"], keep_dims: bool, T: DataType, xp: Any) -> Reduce:
    """Sum or product in `T`; integers wrap around, half and bfloat16 accumulate in float."""
    if T not in NARROW_FLOATS:
        return _fold_in(T.numpy_dtype, xp, name, keep_dims)
    fold = _fold_in(np.dtype(np.float32), xp, name, keep_dims)
    return lambda x, axes: fold(x, axes).astype(T.numpy_dtype)


def _mean(keep_dims: bool, T: DataType, xp: Any) -> Reduce:
    """Integers are summed in 64 bits and divided towards zero; the mean of nothing is NaN."""
    if T.is_integer:
        return _integer_mean(xp, keep_dims, T)
    total, scalar = _fold("sum", keep_dims, T, xp), T.numpy_dtype.type
    least = 1 if T.is_complex else 0  # Eigen leaves the complex mean of nothing at 0
    return lambda x, axes: total(x, axes) / scalar(max(_count(x, axes), least))


def _count(x: Any, axes: tuple[int, ...]) -> int:
    """How many elements are folded into one."""
    return math.prod([x.shape[axis] for axis in axes])


def _integer_mean(xp: Any, keep_dims: bool, T: DataType) -> Reduce:
    wide = (DataType.DT_UINT64 if T.is_unsigned else DataType.DT_INT64).numpy_dtype
    total = _fold_in(wide, xp, "sum", keep_dims)

    def average(x: Any, axes: tuple[int, ...]) -> Any:
        sums, count = total(x, axes), wide.type(max(_count(x, axes), 1))
        quotient = sums // count
        if not T.is_unsigned:  # floor division rounds down, C's towards zero
            quotient = quotient + ((quotient < 0) & (quotient * count != sums))
        return quotient.astype(T.numpy_dtype)

    return average


def _euclidean_norm(keep_dims: bool, T: DataType, xp: Any) -> Reduce:
    """Everything in `T`: integers wrap around, and the root is truncated."""
    total = _fold("sum", keep_dims, T, xp)

    def norm(x: Any, axes: tuple[int, ...]) -> Any:
        squares = x * (xp.conj(x) if T.is_complex else x)
        return xp.sqrt(total(squares, axes)).astype(T.numpy_dtype)

    return norm


def _extremum(name: Literal["max", "min"], keep_dims: bool, T: DataType, xp: Any) -> Reduce:
    """Largest or smallest element; NaN if there is one, the end of the range of nothing."""
    nothing = {"max": -np.inf, "min": np.inf}[name]
    if not T.is_floating:
        nothing = {"max": T.min, "min": T.max}[name]
    start = T.numpy_dtype.type(nothing)
    if xp is np:
        reduce: Any = (np.maximum if name == "max" else np.minimum).reduce

        def extremum(x: Any, axes: tuple[int, ...]) -> Any:
            x = _outer_first(reduce, x, axes)
            width = x.shape[-1] if axes == (x.ndim - 1,) else 0
            if not 1 < width <= _SHORT or x.size < _BLOCK:
                return reduce(x, axes, None, None, keep_dims, start)
            found = _of_short_rows(reduce, x.reshape(-1, width), T)
            return found.reshape(x.shape[:-1] + (1,) * keep_dims)

        return extremum
    function = getattr(xp, name)

    def fold(x: Any, axes: tuple[int, ...]) -> Any:
        if _count(x, axes):
            return function(x, axis=axes, keepdims=keep_dims)
        zeros = xp.sum(x, axis=axes, keepdims=keep_dims, dtype=T.numpy_dtype)
        return xp.full(zeros.shape, start, dtype=T.numpy_dtype)

    return fold


def _outer_first(reduce: Any, x: Any, axes: tuple[int, ...], dtype: Any = None) -> Any:
    """`x`, already reduced along the outer axes if its rows are short, with which NumPy begins anew each.

    For reductions that are exact in any order.
    """
    outer = tuple(axis for axis in axes if axis != x.ndim - 1)
    is_run = min(axes, default=0) == x.ndim - len(axes)
    if len(outer) == len(axes) or is_run or x.shape[-1] > _SHORT or x.size < _BLOCK:
        return x
    return reduce(x, outer, dtype, None, True)


def _of_short_rows(reduce: Any, rows: Any, T: DataType) -> Any:
    """A reduction of each row: NumPy begins anew with each, so that it goes down columns instead, block by block."""
    out = allocate((len(rows),), T)
    step = _BLOCK // rows.shape[1]

    def compute(start: int) -> None:
        some = slice(start, start + step)
        reduce(np.ascontiguousarray(rows[some].T), 0, None, out[some])

    shard(compute, range(0, len(rows), step))
    return out


def _register(op: OpHandle, types: Sequence[DataType], fold: Callable[..., Reduce]) -> None:
    @register_kernel(op, types={"T": types, "Tidx": INDEX}, factory=True)
    def make(*, keep_dims: bool, T: DataType, xp: Any) -> Callable[[Any, Any], Any]:
        reduce = fold(keep_dims=keep_dims, T=T, xp=xp)
        return lambda x, indices: reduce(x, reduction_axes(indices, x.ndim))


_register(SUM, NUMBERS, partial(_fold, "sum"))
_register(PROD, NUMBERS, partial(_fold, "prod"))
_register(MEAN, NUMBERS, _mean)
_register(EUCLIDEAN_NORM, NUMBERS, _euclidean_norm)
_register(MAX, REAL_NUMBERS, partial(_extremum, "max"))
_register(MIN, REAL_NUMBERS, partial(_extremum, "min"))


@register_kernel(ALL, types={"Tidx": INDEX}, host_memory=["reduction_indices"])
def all_(input: Any, reduction_indices: Any, *, keep_dims: bool, xp: Any) -> Any:
    return xp.all(input, axis=reduction_axes(reduction_indices, input.ndim), keepdims=keep_dims)


@register_kernel(ANY, types={"Tidx": INDEX}, host_memory=["reduction_indices"])
def any_(input: Any, reduction_indices: Any, *, keep_dims: bool, xp: Any) -> Any:
    return xp.any(input, axis=reduction_axes(reduction_indices, input.ndim), keepdims=keep_dims)


@register_kernel(L2_LOSS, types={"T": FLOATS})
def l2_loss(t: Any, *, T: DataType, xp: Any) -> Any:
    """Half and bfloat16 are squared in their type and accumulate in float."""
    if xp is np and T in WIDE_FLOATS:
        return _sum_of_squares(t) / 2
    accumulator = np.float32 if T in NARROW_FLOATS else T.numpy_dtype
    return (xp.sum(t * t, dtype=accumulator) / 2).astype(T.numpy_dtype)


def _sum_of_squares(t: Any) -> Any:
    """Row by row, so that no array of squares is made and large sums have no large error."""
    flat = t.reshape(-1)
    rest = flat[flat.size // _ROW * _ROW :]
    rows = flat[: flat.size - rest.size].reshape(-1, _ROW)
    return np.einsum("ij,ij->i", rows, rows).sum() + (rest * rest).sum()


_MAX_RANK = 7
_ATTR_TYPES = "realnumbertype, quantizedtype, bool"
_TYPES = (*REAL_NUMBERS, DataType.DT_BOOL)


def arg_shape(c: InferenceContext) -> None:
    """Input 0 without the axis that input 1 holds."""
    c.with_rank(c.input(1), 0)
    shape = c.input(0)
    if not c.rank_known(shape):
        c.set_output(0, c.unknown_shape())
        return
    rank = c.rank(shape)
    if rank <= 1:
        c.set_output(0, c.scalar())
        return
    dimension = c.input_tensor(1)
    if dimension is None:
        c.set_output(0, c.unknown_shape_of_rank(rank - 1))
        return
    axis = int(dimension)
    if not -rank <= axis < rank:
        raise InvalidArgumentError(
            f"Dimension ({axis}) must be in the range [{-rank}, {rank}), where {rank} is the "
            "number of dimensions in the input."
        )
    axis %= rank
    c.set_output(0, c.concatenate(c.subshape(shape, 0, axis), c.subshape(shape, axis + 1)))


def _declare_arg(name: str, which: str, index_types: str, output_types: str) -> OpHandle:
    return register_op(
        f"{name}(input: T, dimension: Tidx) -> output: output_type",
        attrs=[
            f"T: {{{_ATTR_TYPES}}}",
            f"Tidx: {{{index_types}}} = DT_INT32",
            f"output_type: {{{output_types}}} = DT_INT64",
        ],
        shape_fn=arg_shape,
        doc=f"The index of the first of the {which} elements of `input` along the axis `dimension`.",
    )


ARG_MAX = _declare_arg("ArgMax", "largest", "int16, int32, int64", "int16, uint16, int32, int64")
ARG_MIN = _declare_arg("ArgMin", "smallest", "int32, int64", "int32, int64")


def _axis(input: Any, dimension: Any) -> int:
    """The axis, after TensorFlow's checks; of an int64 TensorFlow reads the lower 32 bits."""
    require_scalar(dimension, "dim must be a scalar, but received tensor of shape: {}")
    axis, rank = int(np.asarray(dimension).astype(np.int32)), input.ndim
    if not -rank <= axis < rank:
        raise InvalidArgumentError(
            f"Expected dimension in the range [{-rank}, {rank}), but got {axis}"
        )
    if input.shape[axis] == 0:
        raise InvalidArgumentError(
            f"Reduction axis {axis % rank} is empty in shape {list(input.shape)}"
        )
    if rank > _MAX_RANK:
        raise InvalidArgumentError(
            f"Argmax and Argmin only support up to {_MAX_RANK} input dimensions, but got {rank}. "
            f"Inputs shape: {list(input.shape)}"
        )
    return axis


def _search(largest: bool) -> Callable[..., Callable[[Any, Any], Any]]:
    """The kernel.

    Eigen starts at index 0 with the worst finite number, and moves on only to better numbers. So NaNs are
    passed over, and the index is 0 where nothing is better.
    """

    def make(*, T: DataType, output_type: DataType, xp: Any) -> Callable[[Any, Any], Any]:
        find = xp.argmax if largest else xp.argmin
        worst = T.numpy_dtype.type(T.min if largest else T.max) if T.is_floating else None

        def found(input: Any, dimension: Any) -> Any:
            axis = _axis(input, dimension)
            if worst is not None:
                input = xp.where((input > worst) if largest else (input < worst), input, worst)
            return find(input, axis=axis).astype(output_type.numpy_dtype)

        return found

    return make


for _op, _largest, _found in (
    (ARG_MAX, True, (DataType.DT_INT16, DataType.DT_UINT16, *INDEX)),
    (ARG_MIN, False, INDEX),
):
    register_kernel(
        _op, types={"T": _TYPES, "output_type": _found}, host_memory=["dimension"], factory=True
    )(_search(_largest))


g.register_gradient("ArgMax", "ArgMin")(lambda op, grad: (None, None))
