"""ConstantValues: the values that shape functions ask for, as far as the graph alone tells them.

Two questions are answered: the value of a tensor that depends on constants alone, and the shape
that a tensor holds as its value, in which some sizes may be unknown. What follows from constants
and static shapes is worked out here; the rest is left to the runtime's evaluator.

Source: TensorFlow core/common_runtime/eval_const_tensor.cc, shape_refiner.cc (ConstantPartialShape).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from opkernel.errors import InvalidArgumentError
from opkernel.graph.runtime_hooks import evaluate_constant
from opkernel.opdef import DimensionHandle, ShapeHandle
from opkernel.types import DataType, tensor_from_proto

if TYPE_CHECKING:
    from opkernel.graph.operation import Operation
    from opkernel.graph.tensor import Tensor

__all__ = ["ConstantValues"]

_MAX_DEPTH = 32
_MAX_RANK = 254
_MAX_KEPT = 1024
_MAX_FOLDED = 100
_PLACEHOLDERS = frozenset({"Placeholder", "PlaceholderV2", "PlaceholderWithDefault"})
_CONTROL_FLOW = frozenset({"Enter", "Exit", "Merge", "NextIteration", "Switch"})
_NOT_CONSTANT = _PLACEHOLDERS | _CONTROL_FLOW | {f"Ref{name}" for name in _CONTROL_FLOW}
_TELL_SHAPES = frozenset({"Gather", "GatherV2", "Rank", "Shape", "ShapeN", "Size", "StridedSlice"})
_INTEGERS = (DataType.DT_INT32, DataType.DT_INT64)

Array = np.ndarray[Any, Any]


class ConstantValues:
    """Answers for the tensors of one graph; each is worked out once, unless it is large.

    `handle_of` gives the shape handle of a tensor.
    """

    def __init__(self, handle_of: Callable[[Tensor], ShapeHandle]) -> None:
        self._handle_of = handle_of
        self._values: dict[Tensor, Array | None] = {}
        self._partial: dict[Tensor, ShapeHandle | None] = {}

    def value_of(self, tensor: Tensor) -> Array | None:
        """The value of a tensor that depends on constants alone; None where it is not known."""
        if tensor not in self._values:
            value = self._fold(tensor)
            if value is None:
                value = self._evaluate(tensor)
            if value is not None and value.size > _MAX_KEPT:
                return value
            self._values[tensor] = value
        return self._values[tensor]

    def as_partial_shape(self, tensor: Tensor, depth: int = 0) -> ShapeHandle | None:
        """The shape that a tensor holds; None where nothing is known of it.

        Raises:
            InvalidArgumentError: the tensor cannot hold a shape.
        """
        if tensor not in self._partial:
            if depth > _MAX_DEPTH:
                return None
            self._partial[tensor] = self._work_out_shape(tensor, depth)
        return self._partial[tensor]

    def _work_out_shape(self, tensor: Tensor, depth: int) -> ShapeHandle | None:
        rule = _SHAPE_RULES.get(tensor.op.type)
        shape = None if rule is None or not tensor.op.inputs else rule(self, tensor, depth)
        if shape is not None:
            return shape
        value = self.value_of(tensor)
        if value is None or value.ndim > 1 or value.dtype.kind not in "iu":
            return _of_length(self._handle_of(tensor))
        return _shape_from_values(value)

    def _evaluate(self, tensor: Tensor) -> Array | None:
        """The value that a few foldable operations compute from constants and static shapes.

        The walk ends soon, so that asking of every node of a graph takes linear time.
        """
        known: dict[Tensor, Array] = {}
        seen = {tensor.op}
        waiting = [tensor.op]
        while waiting:
            op = waiting.pop()
            if not _is_foldable(op) or len(seen) > _MAX_FOLDED:
                return None
            for source in op.inputs:
                value = None if source in known else self._fold_by_shape(source)
                if value is not None:
                    known[source] = value
                elif source not in known and source.op not in seen:
                    seen.add(source.op)
                    waiting.append(source.op)
        return evaluate_constant(tensor, known)

    def _fold_by_shape(self, tensor: Tensor) -> Array | None:
        return self._fold(tensor) if tensor.op.type in _TELL_SHAPES else None

    def _fold(self, tensor: Tensor) -> Array | None:
        """The value as far as static shapes tell it; of constants, what they hold."""
        op = tensor.op
        if op.type == "Const" and "value" in op._node_def.attr:
            return np.asarray(tensor_from_proto(op.node_def.attr["value"].tensor))
        if not op.inputs:
            return None
        if op.type in ("StridedSlice", "Gather", "GatherV2"):
            return self._fold_one_size(tensor)
        dims = self._handle_of(op.inputs[tensor.value_index if op.type == "ShapeN" else 0]).dims
        if dims is None or tensor.dtype not in _INTEGERS:
            return None
        sizes = [dim.value for dim in dims]
        if op.type == "Rank":
            return np.asarray(len(sizes), np.int32)
        if op.type not in ("Shape", "ShapeN", "Size") or min(sizes, default=0) < 0:
            return None
        folded = int(np.prod(sizes, dtype=object)) if op.type == "Size" else sizes
        return _as_integers(folded, tensor.dtype)

    def _fold_one_size(self, tensor: Tensor) -> Array | None:
        """One element of a Shape's output, of which the other sizes may be unknown."""
        op = tensor.op
        source = op.inputs[0].op
        if source.type != "Shape" or not source.inputs:
            return None
        dims = self._handle_of(source.inputs[0]).dims
        index = self._slice_index(op) if op.type == "StridedSlice" else self._gather_index(op)
        if dims is None or index is None or not -len(dims) <= index < len(dims):
            return None
        size = dims[index].value
        return _as_integers(size, tensor.dtype) if size >= 0 else None

    def _slice_index(self, op: Operation) -> int | None:
        """The element that a StridedSlice takes out of a vector; None if it is not just one."""
        others = ("begin_mask", "end_mask", "ellipsis_mask", "new_axis_mask")
        if op.get_attr("shrink_axis_mask") != 1 or any(op.get_attr(mask) for mask in others):
            return None
        return self._integer(op.inputs[1]) if len(op.inputs) == 4 else None

    def _gather_index(self, op: Operation) -> int | None:
        """The element that a Gather takes out of a vector; None if it is not just one."""
        if self._handle_of(op.inputs[1]).dims != ():
            return None
        if op.type == "GatherV2" and self._integer(op.inputs[2]) != 0:
            return None
        return self._integer(op.inputs[1])

    def _integer(self, tensor: Tensor) -> int | None:
        """The value of a tensor of one integer; None where it is not known."""
        value = self.value_of(tensor)
        if value is None or value.size != 1 or value.dtype.kind not in "iu":
            return None
        return int(value.reshape(-1)[0])

    # The rules of the ops that shapes are computed with; None where an op tells nothing.

    def _of_cast(self, tensor: Tensor, depth: int) -> ShapeHandle | None:
        (source,) = tensor.op.inputs
        if source.dtype not in _INTEGERS or tensor.dtype not in _INTEGERS:
            return None
        return self.as_partial_shape(source, depth + 1)

    def _of_shape(self, tensor: Tensor, depth: int) -> ShapeHandle | None:
        shape = self._handle_of(tensor.op.inputs[tensor.value_index])
        return None if shape.dims is None else shape

    def _of_pack(self, tensor: Tensor, depth: int) -> ShapeHandle | None:
        inputs = tensor.op.inputs
        if len(inputs) > _MAX_RANK or any(self._handle_of(item).dims != () for item in inputs):
            return None
        sizes = [self._integer(item) for item in inputs]
        return ShapeHandle(tuple([_dim(-1 if size is None else size) for size in sizes]))

    def _of_concat(self, tensor: Tensor, depth: int) -> ShapeHandle | None:
        inputs = tensor.op.inputs
        parts = inputs[1:] if tensor.op.type == "Concat" else inputs[:-1]
        dims: list[DimensionHandle] = []
        for part in parts:
            shape = self.as_partial_shape(part, depth + 1)
            if shape is None or shape.dims is None or len(self._handle_of(part).dims or ()) != 1:
                return None
            dims += shape.dims
            if len(dims) > _MAX_RANK:
                return None
        return ShapeHandle(tuple(dims))

    def _of_slice(self, tensor: Tensor, depth: int) -> ShapeHandle | None:
        op = tensor.op
        inner = ("ellipsis_mask", "new_axis_mask", "shrink_axis_mask")
        if any(op.get_attr(mask) for mask in inner) or len(op.inputs) != 4:
            return None
        source = self.as_partial_shape(op.inputs[0], depth + 1)
        begin, end, stride = [self._integer(item) for item in op.inputs[1:]]
        begin_open, end_open = op.get_attr("begin_mask") & 1, op.get_attr("end_mask") & 1
        if source is None or source.dims is None or not stride:
            return None
        if (begin is None and not begin_open) or (end is None and not end_open):
            return None
        span = slice(None if begin_open else begin, None if end_open else end, stride)
        return ShapeHandle(source.dims[span])


_SHAPE_RULES: dict[str, Callable[[ConstantValues, Tensor, int], ShapeHandle | None]] = {
    "Cast": ConstantValues._of_cast,
    "Concat": ConstantValues._of_concat,
    "ConcatV2": ConstantValues._of_concat,
    "Pack": ConstantValues._of_pack,
    "Shape": ConstantValues._of_shape,
    "ShapeN": ConstantValues._of_shape,
    "StridedSlice": ConstantValues._of_slice,
}


def _is_foldable(op: Operation) -> bool:
    """Whether an operation always gives the same for the same inputs."""
    registration = op._signature.registration
    return (
        registration is not None
        and not registration.op_def.is_stateful
        and op.type not in _NOT_CONSTANT
    )


def _dim(size: int) -> DimensionHandle:
    return DimensionHandle(size if size >= 0 else -1)


def _of_length(vector: ShapeHandle) -> ShapeHandle | None:
    """What the static shape of a vector tells of the shape that it holds: its rank."""
    if vector.dims is None or len(vector.dims) != 1 or not 0 <= vector.dims[0].value <= _MAX_RANK:
        return None
    return ShapeHandle(tuple([DimensionHandle() for _ in range(vector.dims[0].value)]))


def _shape_from_values(value: Array) -> ShapeHandle:
    sizes = value.tolist()
    if value.ndim == 0:
        if sizes != -1:
            raise InvalidArgumentError(f"Received value in scalar tensor should be -1, got {sizes}")
        return ShapeHandle()
    if len(sizes) > _MAX_RANK or min(sizes, default=0) < -1:
        raise InvalidArgumentError(f"Not a valid shape: {sizes[: _MAX_RANK + 1]}")
    return ShapeHandle(tuple([_dim(size) for size in sizes]))


def _as_integers(value: int | list[int], dtype: DataType) -> Array | None:
    """The array, unless the value is too large for its type."""
    limit = np.iinfo(dtype.numpy_dtype).max
    if max([value] if isinstance(value, int) else value, default=0) > limit:
        return None
    return np.asarray(value, dtype.numpy_dtype)
