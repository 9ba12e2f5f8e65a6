"""The operators of tensors: `x + 1`, `x @ w`, `x[:, 0]` add TensorFlow's ops to the graph.

Numbers, lists and arrays take the type of the tensor on the other side. `==` and `hash` go by
identity, so that tensors may be keys; `opkernel.raw_ops.Equal` compares elements.

Source: TensorFlow python/ops/math_ops.py, python/ops/array_ops.py.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from opkernel.graph.core.default_graph import graph_of_call
from opkernel.graph.core.tensor_base import TensorBase, is_tensor
from opkernel.types import DataType

if TYPE_CHECKING:
    from opkernel.graph.core.graph import Graph
    from opkernel.graph.core.tensor import Tensor

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


class TensorOperators(TensorBase):
    """The operators of `Tensor`."""

    __slots__ = ()
    __array_ufunc__ = None  # NumPy's arrays leave the operator to the tensor on the other side

    def __add__(self, other: Any) -> Tensor:
        return _add(self, other)

    def __radd__(self, other: Any) -> Tensor:
        return _add(other, self)

    def __sub__(self, other: Any) -> Tensor:
        return _binary("Sub", "sub", self, other)

    def __rsub__(self, other: Any) -> Tensor:
        return _binary("Sub", "sub", other, self)

    def __mul__(self, other: Any) -> Tensor:
        return _binary("Mul", "mul", self, other)

    def __rmul__(self, other: Any) -> Tensor:
        return _binary("Mul", "mul", other, self)

    def __truediv__(self, other: Any) -> Tensor:
        return _divide(self, other)

    def __rtruediv__(self, other: Any) -> Tensor:
        return _divide(other, self)

    def __floordiv__(self, other: Any) -> Tensor:
        return _binary("FloorDiv", "floordiv", self, other)

    def __rfloordiv__(self, other: Any) -> Tensor:
        return _binary("FloorDiv", "floordiv", other, self)

    def __mod__(self, other: Any) -> Tensor:
        return _binary("FloorMod", "mod", self, other)

    def __rmod__(self, other: Any) -> Tensor:
        return _binary("FloorMod", "mod", other, self)

    def __pow__(self, other: Any) -> Tensor:
        return _binary("Pow", "pow", self, other)

    def __rpow__(self, other: Any) -> Tensor:
        return _binary("Pow", "pow", other, self)

    def __matmul__(self, other: Any) -> Tensor:
        return _multiply_matrices(self, other)

    def __rmatmul__(self, other: Any) -> Tensor:
        return _multiply_matrices(other, self)

    def __and__(self, other: Any) -> Tensor:
        return _logical("And", "and", self, other)

    def __rand__(self, other: Any) -> Tensor:
        return _logical("And", "and", other, self)

    def __or__(self, other: Any) -> Tensor:
        return _logical("Or", "or", self, other)

    def __ror__(self, other: Any) -> Tensor:
        return _logical("Or", "or", other, self)

    def __xor__(self, other: Any) -> Tensor:
        return _exclusive_or(self, other)

    def __rxor__(self, other: Any) -> Tensor:
        return _exclusive_or(other, self)

    def __lt__(self, other: Any) -> Tensor:
        return _binary("Less", "Less", self, other)

    def __le__(self, other: Any) -> Tensor:
        return _binary("LessEqual", "LessEqual", self, other)

    def __gt__(self, other: Any) -> Tensor:
        return _binary("Greater", "Greater", self, other)

    def __ge__(self, other: Any) -> Tensor:
        return _binary("GreaterEqual", "GreaterEqual", self, other)

    def __neg__(self) -> Tensor:
        return _unary("Neg", self)

    def __abs__(self) -> Tensor:
        dtype = _dtype_of(self)
        if not dtype.is_complex:
            return _unary("Abs", self)
        parts = DataType.DT_FLOAT if dtype == DataType.DT_COMPLEX64 else DataType.DT_DOUBLE
        return _unary("ComplexAbs", self, "Abs", Tout=parts)

    def __invert__(self) -> Tensor:
        return _unary("LogicalNot" if _dtype_of(self).is_bool else "Invert", self)

    def __getitem__(self, key: Any) -> Tensor:
        from opkernel.graph.building.slicing import SlicePlan  # few tensors are cut

        plan = SlicePlan(key)
        graph = _graph_of(self, *plan.tensors)
        if plan.mask is not None:
            indices = _make(graph, "Where", [plan.mask], "boolean_mask/Where")
            return _make(graph, "GatherNd", [self, indices], "boolean_mask")
        with graph.name_scope("strided_slice") as scope:
            inputs = [self, *plan.bounds(graph)]
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
    graph = graph_of_call(operand for operand in operands if is_tensor(operand))
    assert graph is not None
    return graph


def _dtype_of(*operands: Any) -> DataType:
    """The type of the first tensor among operands."""
    return next(operand.dtype.base for operand in operands if is_tensor(operand))


def _alike(x: Any, y: Any) -> list[Any]:
    """Both operands; an array as one of the tensor's type."""
    # graphs that are built in Python
    from opkernel.graph.building.tensor_conversion import array_like_tensor

    dtype = _dtype_of(x, y)
    return [value if is_tensor(value) else array_like_tensor(value, dtype) for value in (x, y)]


def _rank_of(operand: Any) -> int | None:
    return operand.shape.rank if is_tensor(operand) else np.ndim(operand)
