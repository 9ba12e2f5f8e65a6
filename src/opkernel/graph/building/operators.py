"""What the operators of tensors do: `x + 1`, `x @ w`, `x[:, 0]` add TensorFlow's ops to the graph.

Numbers, lists and arrays take the type of the tensor on the other side. `==` and `hash` go by
identity, so that tensors may be keys; `opkernel.raw_ops.Equal` compares elements.

Source: TensorFlow python/ops/math_ops.py, python/ops/array_ops.py.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from opkernel.graph.core.default_graph import graph_of_call
from opkernel.graph.core.graph import Graph
from opkernel.graph.core.tensor import Tensor
from opkernel.types import DataType

_QUOTIENT_TYPES = {
    DataType.DT_INT8: DataType.DT_FLOAT,
    DataType.DT_UINT8: DataType.DT_FLOAT,
    DataType.DT_INT16: DataType.DT_FLOAT,
    DataType.DT_UINT16: DataType.DT_FLOAT,
    DataType.DT_INT32: DataType.DT_DOUBLE,
    DataType.DT_UINT32: DataType.DT_DOUBLE,
    DataType.DT_INT64: DataType.DT_DOUBLE,
    DataType.DT_UINT64: DataType.DT_DOUBLE,
}
"""The type that integers are divided in."""


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
    from opkernel.graph.building.slicing import SlicePlan  # few tensors are cut

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
    dtype = _QUOTIENT_TYPES.get(_dtype_of(x, y))
    if dtype is None:
        return _binary("RealDiv", "truediv", x, y)
    graph = _graph_of(x, y)
    with graph.name_scope("truediv") as scope:
        parts = [
            _make(graph, "Cast", [operand], "Cast", SrcT=_dtype_of(x, y), DstT=dtype)
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
    graph = graph_of_call(operand for operand in operands if isinstance(operand, Tensor))
    assert graph is not None
    return graph


def _dtype_of(*operands: Any) -> DataType:
    """The type of the first tensor among operands."""
    return next(operand.dtype.base for operand in operands if isinstance(operand, Tensor))


def _alike(x: Any, y: Any) -> list[Any]:
    """Both operands; an array as one of the tensor's type."""
    # graphs that are built in Python
    from opkernel.graph.building.tensor_conversion import array_like_tensor

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
