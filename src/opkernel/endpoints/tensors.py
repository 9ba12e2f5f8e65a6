"""What endpoints ask of their arguments: tensors of a graph, arrays, or values that become one of both.

An endpoint runs at once on arrays, and adds nodes where a function is traced, inside `with graph.as_default():` and where
an argument is a tensor of a graph. Shapes and values are known for arrays, and for tensors as far as inference knows them.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Sequence
from typing import Any, ParamSpec, TypeAlias, TypeVar

import numpy as np
import numpy.typing as npt

from opkernel import raw_ops
from opkernel.errors import InvalidArgumentError
from opkernel.gradients.gradient_nodes import constant_value
from opkernel.graph import Tensor, constant
from opkernel.graph.core.default_graph import graph_of_call, innermost_default
from opkernel.graph.core.node import graph_element
from opkernel.graph.core.tensor import tensors_in
from opkernel.types import DataType, PartialTensorShape, TensorShape, as_dtype, dtype_of_array

TensorLike: TypeAlias = npt.ArrayLike | Tensor
DTypeLike: TypeAlias = DataType | npt.DTypeLike
ShapeLike: TypeAlias = (
    TensorShape | PartialTensorShape | Sequence[int | Tensor | None] | npt.ArrayLike | Tensor
)

_P = ParamSpec("_P")
_R = TypeVar("_R")


def composed(function: Callable[_P, _R]) -> Callable[_P, _R]:
    """Make a function an endpoint: in a graph, its nodes stand in a scope called `name` or as the function is.

    The function itself ignores its parameter `name`.
    """
    signature = inspect.signature(function)

    @functools.wraps(function)
    def endpoint(*args: _P.args, **kwargs: _P.kwargs) -> _R:
        graph = graph_of_call(tensors_in([*args, *kwargs.values()]))
        if graph is None:
            with np.errstate(all="ignore"):
                return function(*args, **kwargs)
        name = signature.bind(*args, **kwargs).arguments.get("name")
        with graph.name_scope(name or function.__name__):
            return function(*args, **kwargs)

    return endpoint


def convert(value: Any, dtype: DTypeLike | None = None) -> Any:
    """A value as an array; in a graph, as a tensor.

    Raises:
        InvalidArgumentError: the value makes no tensor, or its type is not `dtype`.
    """
    element = graph_element(value)
    if not isinstance(element, Tensor):
        if next(tensors_in([value]), None) is not None:
            element = raw_ops.Pack(values=[convert(item, dtype) for item in value])
        elif _is_variable(value):
            element = raw_ops.Identity(input=value)
        elif not _is_array(value) or innermost_default() is not None:
            is_typed = isinstance(value, np.ndarray | np.generic)
            element = constant(value, None if is_typed else dtype)
    if dtype is not None and dtype_of(element) != as_dtype(dtype):
        raise InvalidArgumentError(
            f"A tensor of {as_dtype(dtype).tf_name} is wanted, and {dtype_of(element).tf_name} given; "
            "opkernel.cast converts it"
        )
    return element


def _is_array(value: Any) -> bool:
    return isinstance(value, np.ndarray | np.generic) and value.dtype.kind not in "SU"


def _is_variable(value: Any) -> bool:
    return hasattr(value, "captured_spec")


def is_symbolic(*values: Any) -> bool:
    """Whether a value is, or has, a tensor of a graph."""
    return next(tensors_in([*values]), None) is not None


def dtype_of(x: Any) -> DataType:
    """The type of an array or tensor."""
    found = x.dtype.base if isinstance(x, Tensor) else dtype_of_array(x)
    assert found is not None
    return found


def static_shape(x: Any) -> list[int | None] | None:
    """The sizes of an array or tensor, None for unknown ones; None where the rank is unknown."""
    if isinstance(x, Tensor):
        return None if x.shape.rank is None else x.shape.as_list()
    return list(np.shape(x))


def static_rank(x: Any) -> int | None:
    """The rank of an array or tensor where it is known."""
    return x.shape.rank if isinstance(x, Tensor) else np.ndim(x)


def known_rank(x: Any, what: str) -> int:
    """The rank of an array or tensor.

    Raises:
        InvalidArgumentError: it is unknown.
    """
    rank = static_rank(x)
    if rank is None:
        raise InvalidArgumentError(f"{what} needs a tensor of known rank; set_shape tells the rank")
    return rank


def static_value(x: Any) -> Any:
    """The value of a tensor that is a constant, of an array or of a Python value; None where it is unknown."""
    element = graph_element(x)
    if isinstance(element, Tensor):
        return constant_value(element)
    if is_symbolic(x):
        return None
    return np.asarray(x)


def known_number(value: Any, what: str) -> int:
    """A scalar as a number of Python.

    Raises:
        InvalidArgumentError: it is not known before the graph runs, or is no scalar.
    """
    found = static_value(value)
    if found is None or found.ndim:
        raise InvalidArgumentError(f"{what} is a number that is known before the graph runs")
    return int(found)


def shape_of(x: Any, dtype: DataType = DataType.DT_INT32) -> Any:
    """The shape as an array of `dtype`; where it is not known, as a tensor that computes it."""
    sizes = static_shape(x)
    if sizes is None or None in sizes:
        return raw_ops.Shape(input=x, out_type=dtype)
    return np.array(sizes, dtype.numpy_dtype)


def rank_of(x: Any) -> Any:
    """The rank as a Python int; where it is not known, as a tensor that computes it."""
    rank = static_rank(x)
    return raw_ops.Rank(input=x) if rank is None else rank


def all_axes(x: Any) -> Any:
    """All axes of an array or tensor, for reductions."""
    rank = static_rank(x)
    if rank is None:
        return raw_ops.Range(start=0, limit=raw_ops.Rank(input=x), delta=1)
    return np.arange(rank, dtype=np.int32)


def cast_to(x: Any, dtype: DTypeLike) -> Any:
    """A tensor with the elements of another type."""
    wanted = as_dtype(dtype)
    x = convert(x)
    return x if dtype_of(x) == wanted else raw_ops.Cast(x=x, DstT=wanted)


def shape_vector(shape: Any) -> Any:
    """A shape as a vector of integers: an array, or a tensor where a size is one.

    Raises:
        InvalidArgumentError: a size is unknown.
    """
    if isinstance(shape, PartialTensorShape):
        shape = shape.as_list()
    elif isinstance(shape, TensorShape):
        shape = list(shape)
    if is_symbolic(shape):
        return convert(shape)
    found = np.asarray(shape if np.size(np.asarray(shape, object)) else np.zeros(np.shape(shape)))
    if found.dtype.kind == "O":
        raise InvalidArgumentError(f"A shape with known sizes is wanted, got {shape!r}")
    if found.dtype.kind not in "iu":
        if found.size:
            raise InvalidArgumentError(f"The sizes of a shape are integers, got {shape!r}")
        return found.astype(np.int32)
    is_wide = found.size and not -(2**31) <= int(found.max()) < 2**31
    if isinstance(shape, np.ndarray | np.generic):
        return found
    return found.astype(np.int64 if is_wide else np.int32)


def pair(x: Any, y: Any) -> tuple[Any, Any]:
    """Two operands; a Python value takes the type of the other one."""
    if isinstance(x, bool | int | float | complex | list | tuple):
        y = convert(y)
        return like(x, dtype_of(y)), y
    x = convert(x)
    return x, like(y, dtype_of(x))


def like(value: Any, dtype: DataType) -> Any:
    """A value beside tensors of a type: Python's numbers and lists become one, tensors keep their type."""
    return convert(value, None if hasattr(value, "dtype") else dtype)


def number_like(x: Any, value: float) -> Any:
    """A number as a scalar of the type of a tensor."""
    return np.array(value, dtype_of(x).numpy_dtype)


def on_last_axis(x: Any, axis: int | None, function: Callable[[Any], Any]) -> Any:
    """Apply a function of the last axis, which may give several tensors, to another one.

    Raises:
        InvalidArgumentError: the tensor has no such axis.
    """
    if axis is None or axis == -1:
        return function(x)
    rank = known_rank(x, f"Axis {axis}")
    if not -rank <= axis < rank:
        raise InvalidArgumentError(
            f"axis {axis} is not in the range from {-rank} to {rank - 1} of a tensor of rank {rank}"
        )
    order = [*range(rank)]
    order[axis % rank], order[-1] = order[-1], order[axis % rank]
    permutation = np.array(order, np.int32)
    found = function(raw_ops.Transpose(x=x, perm=permutation))
    if isinstance(found, tuple):
        return tuple(raw_ops.Transpose(x=part, perm=permutation) for part in found)
    return raw_ops.Transpose(x=found, perm=permutation)
