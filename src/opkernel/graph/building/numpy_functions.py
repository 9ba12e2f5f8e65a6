"""NumPy's functions on tensors of a graph: `np.exp(x)` adds TensorFlow's ops, and so does `x.sum(axis=0)`.

Results have the types that NumPy gives for arrays: `np.mean` of integers is a float64, `np.sum` of int32 an int64.
Operators, such as `np.add`, treat types as the operators of tensors do.

Source: NumPy's NEP 13 and NEP 18; TensorFlow python/ops/numpy_ops.
"""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np

from opkernel.errors import InvalidArgumentError
from opkernel.graph.building.constructors import apply_op, array_like_tensor
from opkernel.graph.building.operators import operate
from opkernel.graph.core.tensor import Tensor, tensors_in
from opkernel.messages import did_you_mean
from opkernel.opdef import global_op_registry
from opkernel.types import DataType, as_dtype

_Axis = int | Sequence[int] | None


def call_numpy(name: str, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
    """What a function of NumPy gives for tensors, as new operations.

    Args:
        name: Its name below `numpy`: "exp", "linalg.norm".
        args: Its arguments, with a tensor among them or in a list of them.
        kwargs: Those by keyword.

    Raises:
        TypeError: the function has no counterpart here, or not with these arguments; the message names it.
        InvalidArgumentError: a type or shape does not suit the ops.
    """
    function = _FUNCTIONS.get(name)
    if function is None:
        hint = did_you_mean(name.rpartition(".")[2].replace("_", ""), global_op_registry().names())
        raise TypeError(
            f"numpy.{name} does not take tensors of a graph, which have no value yet: use an op of "
            f"opkernel.raw_ops in its place{hint}"
        )
    try:
        inspect.signature(function).bind(*args, **kwargs)
    except TypeError as error:
        raise TypeError(f"numpy.{name} of a tensor: {error}") from None
    return function(*args, **kwargs)


# -- types ------------------------------------------------------------------------------------------


def _tensor(value: Any) -> Tensor:
    """A tensor; a value beside tensors becomes a constant."""
    found = next(tensors_in(value), None) if not isinstance(value, list | tuple) else None
    return apply_op("Identity", input=value) if found is None else found


def _cast(x: Tensor, dtype: DataType) -> Tensor:
    return x if x.dtype.base == dtype else apply_op("Cast", x=x, DstT=dtype)


def _as_numpy_gives(function: Callable[[Any], Any], x: Tensor) -> Tensor:
    """A tensor of the type that a function of NumPy gives for it."""
    given = x.dtype.base
    if not (given.is_integer or given.is_bool):
        return x
    with np.errstate(all="ignore"):
        return _cast(x, as_dtype(function(np.ones(1, given.numpy_dtype)).dtype))


def _alike(values: Sequence[Any]) -> list[Any]:
    """Values of one type: that of the first tensor among them."""
    dtype = next(tensors_in([*values])).dtype.base
    return [one if isinstance(one, Tensor) else array_like_tensor(one, dtype) for one in values]


# -- element by element -----------------------------------------------------------------------------


def _pointwise(name: str, op: str, x: Any) -> Any:
    return apply_op(op, x=_as_numpy_gives(getattr(np, name), _tensor(x)))


def _rounded(op: str, x: Any) -> Any:
    x = _tensor(x)
    return x if x.dtype.base.is_integer else apply_op(op, x=x)


def _test(op: str, x: Any) -> Any:
    x = _tensor(x)
    return apply_op(op, x=_cast(x, DataType.DT_DOUBLE) if x.dtype.base.is_integer else x)


def _pair(op: str, x: Any, y: Any) -> Any:
    x, y = _alike([x, y])
    return apply_op(op, x=x, y=y)


def _logical(op: str, x: Any, y: Any) -> Any:
    return apply_op(op, x=_truth(x), y=_truth(y))


def _truth(x: Any) -> Any:
    return _cast(x, DataType.DT_BOOL) if isinstance(x, Tensor) else np.asarray(x, np.bool_)


def _round(a: Any, decimals: int = 0) -> Any:
    if decimals:
        raise TypeError(f"numpy.round of a tensor takes no decimals; got {decimals}")
    return _rounded("Round", a)


def _part(op: str, val: Any) -> Any:
    x = _tensor(val)
    if not x.dtype.base.is_complex:
        return x if op == "Real" else apply_op("ZerosLike", x=x)
    is_single = x.dtype.base == DataType.DT_COMPLEX64
    return apply_op(op, input=x, Tout=DataType.DT_FLOAT if is_single else DataType.DT_DOUBLE)


def _conjugate(x: Any) -> Any:
    x = _tensor(x)
    return apply_op("Conj", input=x) if x.dtype.base.is_complex else x


def _where(condition: Any, x: Any, y: Any) -> Any:
    if any(True for _ in tensors_in([x, y])):
        x, y = _alike([x, y])
    return apply_op("SelectV2", condition=_truth(condition), t=x, e=y)


def _clip(a: Any, a_min: Any = None, a_max: Any = None) -> Any:
    for op, bound in (("Maximum", a_min), ("Minimum", a_max)):
        a = a if bound is None else _pair(op, a, bound)
    return a


# -- reductions -------------------------------------------------------------------------------------


def _axes(x: Tensor, axis: _Axis) -> Any:
    if axis is not None:
        return np.array(axis, np.int32)
    rank = x.shape.rank
    if rank is not None:
        return np.arange(rank, dtype=np.int32)
    return apply_op("Range", start=0, limit=apply_op("Rank", input=x), delta=1)


def _reduced(op: str, a: Any, axis: _Axis = None, *, keepdims: bool = False) -> Any:
    x = _tensor(a)
    if op in ("Any", "All"):
        x = _truth(x)
    return apply_op(op, input=x, reduction_indices=_axes(x, axis), keep_dims=bool(keepdims))


def _summed(
    name: str, op: str, a: Any, axis: _Axis = None, dtype: Any = None, *, keepdims: bool = False
) -> Any:
    return _reduced(op, _accumulated(name, a, dtype), axis, keepdims=keepdims)


def _accumulated(name: str, a: Any, dtype: Any) -> Tensor:
    """A tensor of the type in which a function adds up."""
    x = _tensor(a)
    return _as_numpy_gives(getattr(np, name), x) if dtype is None else _cast(x, as_dtype(dtype))


def _variance(a: Any, axis: _Axis = None, *, keepdims: bool = False) -> Any:
    x = _accumulated("var", a, None)
    if x.dtype.base.is_complex:
        raise TypeError("numpy.var of a tensor takes real numbers")
    distance = operate("sub", x, _reduced("Mean", x, axis, keepdims=True))
    return _reduced("Mean", apply_op("Square", x=distance), axis, keepdims=keepdims)


def _deviation(a: Any, axis: _Axis = None, *, keepdims: bool = False) -> Any:
    return apply_op("Sqrt", x=_variance(a, axis, keepdims=keepdims))


def _place(op: str, a: Any, axis: int | None = None) -> Any:
    x = _ravel(a) if axis is None else _tensor(a)
    at = np.int32(0 if axis is None else axis)
    return apply_op(op, input=x, dimension=at, output_type=DataType.DT_INT64)


def _running(name: str, op: str, a: Any, axis: int | None = None, dtype: Any = None) -> Any:
    x = _accumulated(name, a, dtype)
    return apply_op(op, x=_ravel(x) if axis is None else x, axis=np.int32(axis or 0))


def _norm(x: Any, ord: int | None = None, axis: _Axis = None, *, keepdims: bool = False) -> Any:
    if ord not in (None, 2) or (ord == 2 and not isinstance(axis, int)):
        raise TypeError(f"numpy.linalg.norm of a tensor is the Euclidean one; got ord={ord!r}")
    x = operate("abs", _as_numpy_gives(np.linalg.norm, _tensor(x)))
    total = _reduced("Sum", apply_op("Square", x=x), axis, keepdims=keepdims)
    return apply_op("Sqrt", x=total)


# -- shapes -----------------------------------------------------------------------------------------


def _sizes(shape: Any) -> Any:
    """A shape as an input of ops: a tensor, or an int or a list of ints, with tensors among them."""
    if isinstance(shape, Tensor):
        return shape
    parts = [*shape] if isinstance(shape, list | tuple | np.ndarray) else [shape]
    is_known = not any(True for _ in tensors_in(parts))
    return np.array(parts, np.int32) if is_known else parts


def _reshape(a: Any, shape: Any) -> Any:
    return apply_op("Reshape", tensor=_tensor(a), shape=_sizes(shape))


def _ravel(a: Any) -> Any:
    return _reshape(a, -1)


def _rank(x: Tensor, name: str) -> int:
    rank = x.shape.rank
    if rank is None:
        raise InvalidArgumentError(f"numpy.{name} of {x!r} needs its rank, which is unknown")
    return rank


def _transpose(a: Any, axes: Sequence[int] | None = None) -> Any:
    x = _tensor(a)
    rank = _rank(x, "transpose")
    order = [*range(rank)][::-1] if axes is None else [axis % max(rank, 1) for axis in axes]
    return apply_op("Transpose", x=x, perm=np.array(order, np.int32))


def _swap_axes(a: Any, axis1: int, axis2: int) -> Any:
    order = [*range(_rank(_tensor(a), "swapaxes"))]
    order[axis1], order[axis2] = order[axis2], order[axis1]
    return _transpose(a, order)


def _move_axis(a: Any, source: int, destination: int) -> Any:
    order = [*range(_rank(_tensor(a), "moveaxis"))]
    axis = order.pop(source)
    order.insert(destination % (len(order) + 1), axis)
    return _transpose(a, order)


def _squeeze(a: Any, axis: _Axis = None) -> Any:
    x = _tensor(a)
    axes = [] if axis is None else [axis] if isinstance(axis, int) else [*axis]
    if axis is None and not x.shape.is_fully_defined():
        raise InvalidArgumentError(f"numpy.squeeze of {x!r} needs an axis: its shape is not known")
    return apply_op("Squeeze", input=x, squeeze_dims=axes)


def _expand(a: Any, axis: int) -> Any:
    return apply_op("ExpandDims", input=_tensor(a), dim=np.int32(axis))


def _concatenate(arrays: Sequence[Any], axis: int = 0) -> Any:
    return apply_op("ConcatV2", values=_alike(arrays), axis=np.int32(axis))


def _stack(arrays: Sequence[Any], axis: int = 0) -> Any:
    return apply_op("Pack", values=_alike(arrays), axis=axis)


def _split(ary: Any, indices_or_sections: int, axis: int = 0) -> Any:
    return apply_op(
        "Split", split_dim=np.int32(axis), value=_tensor(ary), num_split=indices_or_sections
    )


def _tile(a: Any, reps: Any) -> Any:
    return apply_op("Tile", input=_tensor(a), multiples=_sizes(reps))


def _broadcast(array: Any, shape: Any) -> Any:
    return apply_op("BroadcastTo", input=_tensor(array), shape=_sizes(shape))


def _flip(m: Any, axis: _Axis = None) -> Any:
    x = _tensor(m)
    return apply_op("ReverseV2", tensor=x, axis=np.ravel(_axes(x, axis)))


def _roll(a: Any, shift: Any, axis: Any = None) -> Any:
    x = _tensor(a)
    if axis is None:
        return _reshape(_roll(_ravel(x), shift, 0), apply_op("Shape", input=x))
    return apply_op("Roll", input=x, shift=np.int32(shift), axis=np.int32(axis))


def _pad(array: Any, pad_width: Any, mode: str = "constant", *, constant_values: Any = 0) -> Any:
    x = _tensor(array)
    widths = np.broadcast_to(np.array(pad_width, np.int32), (_rank(x, "pad"), 2))
    if mode in ("reflect", "symmetric"):
        return apply_op("MirrorPad", input=x, paddings=widths, mode=mode.upper())
    if mode != "constant":
        raise TypeError(f"numpy.pad of a tensor has no mode {mode!r}")
    value = np.asarray(constant_values, x.dtype.base.numpy_dtype)
    return apply_op("PadV2", input=x, paddings=widths, constant_values=value)


def _take(a: Any, indices: Any, axis: int | None = None) -> Any:
    x = _ravel(a) if axis is None else _tensor(a)
    return apply_op("GatherV2", params=x, indices=indices, axis=np.int32(axis or 0))


def _shape(a: Any) -> Any:
    x = _tensor(a)
    if not x.shape.is_fully_defined():
        raise TypeError(f"numpy.shape of {x!r} is not known: use opkernel.raw_ops.Shape(input=x)")
    return tuple(x.shape.as_list())


def _filled(a: Any, fill_value: Any) -> Any:
    x = _tensor(a)
    value = np.asarray(fill_value, x.dtype.base.numpy_dtype)
    return apply_op("Fill", dims=apply_op("Shape", input=x), value=value)


# -- products ---------------------------------------------------------------------------------------


def _dot(a: Any, b: Any) -> Any:
    ranks = [one.shape.rank if isinstance(one, Tensor) else np.ndim(one) for one in (a, b)]
    if 0 in ranks:
        return operate("mul", a, b)
    if ranks in ([1, 1], [1, 2], [2, 1], [2, 2]):
        return _matmul(a, b)
    raise TypeError(f"numpy.dot of tensors takes vectors and matrices, not ranks {ranks}")


def _matmul(a: Any, b: Any) -> Any:
    """The product of matrices; a vector on the left is a row, and on the right a column."""
    a, b = _alike([a, b])
    ranks = [one.shape.rank if isinstance(one, Tensor) else np.ndim(one) for one in (a, b)]
    product = operate(
        "matmul", _expand(a, 0) if ranks[0] == 1 else a, _expand(b, 1) if ranks[1] == 1 else b
    )
    made = [axis for axis, rank in ((-2, ranks[0]), (-1, ranks[1])) if rank == 1]
    return _squeeze(product, made) if made else product


def _einsum(subscripts: str, *operands: Any) -> Any:
    return apply_op("Einsum", inputs=_alike(operands), equation=subscripts)


def _with_inputs(op: str, *names: str) -> Callable[..., Any]:
    """The function of an op whose inputs have other names than `x` and `y`."""

    def function(a: Any, *others: Any) -> Any:
        values = _alike([a, *others])
        return apply_op(op, **dict(zip(names, values, strict=True)))

    return function


_POINTWISE = {
    "arccos": "Acos", "arccosh": "Acosh", "arcsin": "Asin", "arcsinh": "Asinh", "arctan": "Atan",
    "arctanh": "Atanh", "cos": "Cos", "cosh": "Cosh", "exp": "Exp", "expm1": "Expm1", "log": "Log",
    "log1p": "Log1p", "reciprocal": "Reciprocal", "rint": "Rint", "sign": "Sign", "sin": "Sin", "sinh": "Sinh",
    "sqrt": "Sqrt", "square": "Square", "tan": "Tan", "tanh": "Tanh",
}  # fmt: skip
_OPERATORS = {
    "absolute": "abs", "add": "add", "bitwise_and": "and", "bitwise_or": "or", "bitwise_xor": "xor",
    "divide": "truediv", "floor_divide": "floordiv", "greater": "gt", "greater_equal": "ge",
    "invert": "invert", "less": "lt", "less_equal": "le", "multiply": "mul", "negative": "neg",
    "power": "pow", "remainder": "mod", "subtract": "sub",
}  # fmt: skip
_PAIRS = {
    "equal": "Equal", "left_shift": "LeftShift", "maximum": "Maximum",
    "minimum": "Minimum", "not_equal": "NotEqual", "right_shift": "RightShift",
}  # fmt: skip

_FUNCTIONS: dict[str, Callable[..., Any]] = {
    **{name: partial(_pointwise, name, op) for name, op in _POINTWISE.items()},
    **{name: partial(operate, operator) for name, operator in _OPERATORS.items()},
    **{name: partial(_pair, op) for name, op in _PAIRS.items()},
    **{f"logical_{name}": partial(_logical, f"Logical{name.title()}") for name in ("and", "or")},
    **{name: partial(_rounded, op) for name, op in (("ceil", "Ceil"), ("floor", "Floor"))},
    **{f"is{name}": partial(_test, f"Is{name.title()}") for name in ("finite", "inf", "nan")},
    **{
        name: partial(_reduced, name.removeprefix("a").title())
        for name in ("amax", "amin", "max", "min")
    },
    **{name: partial(_reduced, name.title()) for name in ("all", "any")},
    **{name: partial(_summed, name, name.title()) for name in ("mean", "prod", "sum")},
    **{f"cum{name}": partial(_running, name, f"Cum{name}") for name in ("prod", "sum")},
    **{name: partial(_round) for name in ("around", "round")},
    "arctan2": _with_inputs("Atan2", "y", "x"),
    "argmax": partial(_place, "ArgMax"),
    "argmin": partial(_place, "ArgMin"),
    "astype": lambda x, dtype: _cast(_tensor(x), as_dtype(dtype)),
    "broadcast_to": _broadcast,
    "clip": _clip,
    "concatenate": _concatenate,
    "conjugate": _conjugate,
    "copy": lambda a: apply_op("Identity", input=a),
    "dot": _dot,
    "einsum": _einsum,
    "expand_dims": _expand,
    "flip": _flip,
    "full_like": _filled,
    "imag": partial(_part, "Imag"),
    "linalg.cholesky": _with_inputs("Cholesky", "input"),
    "linalg.det": _with_inputs("MatrixDeterminant", "input"),
    "linalg.inv": _with_inputs("MatrixInverse", "input"),
    "linalg.norm": _norm,
    "linalg.solve": _with_inputs("MatrixSolve", "matrix", "rhs"),
    "logical_not": lambda x: apply_op("LogicalNot", x=_truth(x)),
    "matmul": _matmul,
    "moveaxis": _move_axis,
    "ndim": lambda a: _rank(a, "ndim"),
    "ones_like": partial(_filled, fill_value=1),
    "pad": _pad,
    "ravel": _ravel,
    "real": partial(_part, "Real"),
    "reshape": _reshape,
    "roll": _roll,
    "shape": _shape,
    "size": lambda a: math.prod(_shape(a)),
    "split": _split,
    "squeeze": _squeeze,
    "stack": _stack,
    "std": _deviation,
    "swapaxes": _swap_axes,
    "take": _take,
    "tile": _tile,
    "transpose": _transpose,
    "var": _variance,
    "where": _where,
    "zeros_like": partial(_filled, fill_value=0),
}
"""What to do for each function of NumPy, by its name below `numpy`."""
