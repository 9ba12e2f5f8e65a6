"""What the operators of tensors do: `x + 1`, `x @ w`, `x[:, 0]` add TensorFlow's ops to the graph.

Numbers, lists and arrays take the type of the tensor on the other side. `==` and `hash` go by
identity, so that tensors may be keys; `opkernel.raw_ops.Equal` compares elements. A `SlicePlan` is the key of `x[...]` as
the inputs and attrs of StridedSlice.

Source: TensorFlow python/ops/math_ops.py, python/ops/array_ops.py (_slice_helper).
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from functools import partial
from itertools import chain
from typing import Any

import numpy as np

from opkernel.graph.core.default_graph import graph_of_tensors
from opkernel.graph.core.graph import Graph
from opkernel.graph.core.tensor import Tensor
from opkernel.messages import short_repr
from opkernel.types import DataType

_INT_TYPES = (DataType.DT_INT32, DataType.DT_INT64)
_MASKS = ("begin_mask", "end_mask", "ellipsis_mask", "new_axis_mask", "shrink_axis_mask")


class SlicePlan:
    """The parts of a slice.

    Attributes:
        mask: the tensor or array of bools that chooses elements, where the key is one.
        masks: the attrs of StridedSlice.
        tensors: the tensors among the bounds.
    """

    def __init__(self, key: Any) -> None:
        """Read a key.

        Raises:
            TypeError: a part of the key is no index.
        """
        self.mask = key if _is_mask(key) else None
        self.masks = dict.fromkeys(_MASKS, 0)
        self._bounds: tuple[list[Any], list[Any], list[Any]] = ([], [], [])
        if self.mask is None:
            for part in key if isinstance(key, tuple) else (key,):
                self._add(part)
        bounds = [self.mask, *chain(*self._bounds)]
        self.tensors: list[Tensor] = [bound for bound in bounds if isinstance(bound, Tensor)]

    def bounds(self, graph: Graph) -> list[Any]:
        """`begin`, `end` and `strides`, for a graph in whose name scope they are packed."""
        wide = any(map(_is_wide, chain(*self._bounds)))
        wanted = DataType.DT_INT64 if wide else DataType.DT_INT32
        named = zip(("stack", "stack_1", "stack_2"), self._bounds, strict=True)
        return [_packed(graph, name, part, wanted) for name, part in named]

    def _add(self, part: Any) -> None:
        bit = 1 << len(self._bounds[0])
        begin, end, stride = 0, 0, 1
        if isinstance(part, slice):
            begin, end, stride = (
                default if bound is None else _index(bound)
                for bound, default in ((part.start, 0), (part.stop, 0), (part.step, 1))
            )
            self.masks["begin_mask"] |= bit * (part.start is None)
            self.masks["end_mask"] |= bit * (part.stop is None)
        elif part is Ellipsis:
            self.masks["ellipsis_mask"] |= bit
        elif part is None:
            self.masks["new_axis_mask"] |= bit
        else:
            begin = _index(part)
            end = begin + 1
            self.masks["shrink_axis_mask"] |= bit
        for bounds, bound in zip(self._bounds, (begin, end, stride), strict=True):
            bounds.append(bound)


def _is_mask(key: Any) -> bool:
    if isinstance(key, Tensor):
        return key.dtype.base == DataType.DT_BOOL
    return isinstance(key, np.ndarray) and key.dtype == np.bool_


def _index(value: Any) -> Any:
    """An index as a tensor or an int."""
    if isinstance(value, Tensor) and value.dtype.base in _INT_TYPES:
        return value
    if not isinstance(value, Tensor) and not isinstance(value, bool | np.bool_):
        try:
            return operator.index(value)
        except TypeError:
            pass
    raise TypeError(
        f"Only integers, slices (`:`), ellipsis (`...`), None, scalar int32 or int64 tensors and "
        f"masks are valid indices, got {short_repr(value)}; opkernel.raw_ops.GatherV2 takes lists of indices"
    )


def _is_wide(bound: Any) -> bool:
    if isinstance(bound, Tensor):
        return bound.dtype.base == DataType.DT_INT64
    return not -(2**31) <= bound < 2**31


def _packed(graph: Graph, name: str, bounds: list[Any], dtype: DataType) -> Any:
    """Bounds as one constant; bounds with tensors among them are packed."""
    if not any(isinstance(bound, Tensor) for bound in bounds):
        value = np.array(bounds, dtype.numpy_dtype)
        attrs = {"dtype": dtype, "value": value}
        return graph.create_op("Const", name=name, attrs=attrs).outputs[0]
    items = [_of_type(graph, bound, dtype) for bound in bounds]
    return graph.create_op("Pack", [items], name=name).outputs[0]


def _of_type(graph: Graph, bound: Any, dtype: DataType) -> Any:
    if not isinstance(bound, Tensor):
        return dtype.numpy_dtype.type(bound)
    if bound.dtype.base == dtype:
        return bound
    return graph.create_op("Cast", [bound], name="Cast", attrs={"DstT": dtype}).outputs[0]


def operate(name: str, *operands: Any) -> Tensor:
    """The result of an operator of `Tensor`, as a new operation.

    Args:
        name: the operator's name, as in Python's module `operator`.
        operands: left and right, one of them a tensor; or the operand and its key.
    """
    return _OPERATORS[name](*operands)


def _absolute(x: Tensor) -> Tensor:
    dtype = _dtype_of(x)
    if not dtype.is_complex:
        return _unary("Abs", x)
    parts = DataType.DT_FLOAT if dtype == DataType.DT_COMPLEX64 else DataType.DT_DOUBLE
    return _unary("ComplexAbs", x, "Abs", Tout=parts)


def _invert(x: Tensor) -> Tensor:
    return _unary("LogicalNot" if _dtype_of(x).is_bool else "Invert", x)


def _item(x: Tensor, key: Any) -> Tensor:

    plan = SlicePlan(key)
    graph = _graph_of(x, *plan.tensors)
    if plan.mask is not None:
        indices = _make(graph, "Where", [plan.mask], "boolean_mask/Where")
        return _make(graph, "GatherNd", [x, indices], "boolean_mask")
    with graph.name_scope("strided_slice") as scope:
        inputs = [x, *plan.bounds(graph)]
        return _make(graph, "StridedSlice", inputs, scope, **plan.masks)


def _add(x: Any, y: Any) -> Tensor:
    is_text = _dtype_of(x, y) == DataType.DT_STRING
    return _binary("Add" if is_text else "AddV2", "add", x, y)


def _divide(x: Any, y: Any) -> Tensor:
    dtype = _dtype_of(x, y)
    if not (dtype.is_integer and dtype.is_numeric):
        return _binary("RealDiv", "truediv", x, y)
    quotient = DataType.DT_FLOAT if dtype.size <= 2 else DataType.DT_DOUBLE
    graph = _graph_of(x, y)
    with graph.name_scope("truediv") as scope:
        parts = [
            _make(graph, "Cast", [operand], "Cast", SrcT=dtype, DstT=quotient)
            for operand in _alike(x, y)
        ]
        return _make(graph, "RealDiv", parts, scope)


def _multiply_matrices(x: Any, y: Any) -> Tensor:
    """MatMul where both are known to be matrices."""
    are_matrices = all(_rank_of(operand) in (0, 1, 2) for operand in (x, y))
    return _binary("MatMul" if are_matrices else "BatchMatMulV2", "matmul", x, y)


def _logical(op: str, name: str, x: Any, y: Any) -> Tensor:
    if _dtype_of(x, y).is_bool:
        return _binary(f"Logical{op}", name, x, y)
    return _binary(f"Bitwise{op}", f"{name}/Bitwise{op}", x, y)


def _exclusive_or(x: Any, y: Any) -> Tensor:
    if not _dtype_of(x, y).is_bool:
        return _logical("Xor", "xor", x, y)
    graph = _graph_of(x, y)
    operands = _alike(x, y)
    with graph.name_scope("xor") as scope:
        either = _make(graph, "LogicalOr", operands)
        both = _make(graph, "LogicalAnd", operands)
        return _make(graph, "LogicalAnd", [either, _make(graph, "LogicalNot", [both])], scope)


def _unary(op: str, x: Any, name: str | None = None, **attrs: Any) -> Tensor:
    return _make(_graph_of(x), op, [x], name, **attrs)


def _binary(op: str, name: str, x: Any, y: Any) -> Tensor:
    return _make(_graph_of(x, y), op, _alike(x, y), name)


def _make(
    graph: Graph, op: str, inputs: list[Any], name: str | None = None, **attrs: Any
) -> Tensor:
    return graph.create_op(op, inputs, name=name, attrs=attrs).outputs[0]


def _graph_of(*operands: Any) -> Graph:
    return graph_of_tensors(operand for operand in operands if isinstance(operand, Tensor))


def _dtype_of(*operands: Any) -> DataType:
    """The type of the first tensor among operands."""
    return next(operand.dtype.base for operand in operands if isinstance(operand, Tensor))


def _alike(x: Any, y: Any) -> list[Any]:
    """Both operands; an array as one of the tensor's type."""
    # graphs that are built in Python
    from opkernel.graph.building.constructors import array_like_tensor

    dtype = _dtype_of(x, y)
    return [
        value if isinstance(value, Tensor) else array_like_tensor(value, dtype) for value in (x, y)
    ]


def _rank_of(operand: Any) -> int | None:
    return operand.shape.rank if isinstance(operand, Tensor) else np.ndim(operand)


_OPERATORS: dict[str, Callable[..., Tensor]] = {
    "abs": _absolute,
    "add": _add,
    "and": partial(_logical, "And", "and"),
    "floordiv": partial(_binary, "FloorDiv", "floordiv"),
    "ge": partial(_binary, "GreaterEqual", "GreaterEqual"),
    "getitem": _item,
    "gt": partial(_binary, "Greater", "Greater"),
    "invert": _invert,
    "le": partial(_binary, "LessEqual", "LessEqual"),
    "lt": partial(_binary, "Less", "Less"),
    "matmul": _multiply_matrices,
    "mod": partial(_binary, "FloorMod", "mod"),
    "mul": partial(_binary, "Mul", "mul"),
    "neg": partial(_unary, "Neg"),
    "or": partial(_logical, "Or", "or"),
    "pow": partial(_binary, "Pow", "pow"),
    "sub": partial(_binary, "Sub", "sub"),
    "truediv": _divide,
    "xor": _exclusive_or,
}
