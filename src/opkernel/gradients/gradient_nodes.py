"""What gradient functions are written with: `nodes.MatMul(grad, b, transpose_b=True)`, zeros and ones, IndexedSlices.

Every op, and every function of the graph's library, is a method of `nodes`: inputs by position, attrs by
keyword. Other values become constants of the type that the op wants. Nodes go to the graph of their
inputs, else to the default graph, which is the operation's own while gradients are made.

IndexedSlices are the gradient of a tensor of which only some rows were used. TensorArrays have an array of
gradients for each call of `gradients`, told apart by its name: `gradient_source`.

Source: TensorFlow python/eager/backprop_util.py, python/ops/default_gradient.py, python/framework/indexed_slices.py,
SmartBroadcastGradientArgs of python/ops/math_grad.py.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from opkernel.graph import Graph, Operation, Tensor, apply_op, constant, get_default_graph
from opkernel.graph.building.constructors import add_node
from opkernel.graph.core.default_graph import graph_of_call
from opkernel.graph.core.tensor import tensors_in
from opkernel.interrupts import setting
from opkernel.opdef import ShapeAndType
from opkernel.types import Array, DataType, PartialTensorShape


class IndexedSlicesValue(NamedTuple):
    """The value of a fetched IndexedSlices.

    Attributes:
        values: the rows.
        indices: where each row belongs.
        dense_shape: the shape of the whole tensor, if it is known.
    """

    values: Any
    indices: Any
    dense_shape: Any


@dataclass(slots=True, eq=False)
class IndexedSlices:
    """Some rows of a tensor; all other rows are zero, and rows of equal index add up.

    Attributes:
        values: the rows: of shape `[n, ...]`.
        indices: where each row belongs: int32 or int64, of shape `[n]`.
        dense_shape: the shape of the whole tensor, if known: integers, of shape `[rank]`.
    """

    values: Tensor
    indices: Tensor
    dense_shape: Tensor | None = None
    _dense: Tensor | None = field(default=None, init=False, repr=False)

    @property
    def dtype(self) -> DataType:
        """The type of its elements."""
        return self.values.dtype

    @property
    def graph(self) -> Graph:
        """The graph that it belongs to."""
        return self.values.graph

    @property
    def op(self) -> Operation:
        """The operation that gives its values."""
        return self.values.op

    @property
    def name(self) -> str:
        """The name of its values."""
        return self.values.name

    @property
    def shape(self) -> PartialTensorShape:
        """The known part of the shape of the whole tensor."""
        rows = self.values.shape
        if rows.rank is None:
            return rows
        return PartialTensorShape([None, *rows.as_list()[1:]])

    def to_tensor(self) -> Tensor:
        """The whole tensor; the same one at every call.

        Raises:
            ValueError: the dense shape is not known.
        """
        if self._dense is None:
            if self.dense_shape is None:
                raise ValueError(
                    f"IndexedSlices of '{self.name}' cannot become a dense tensor: they lack dense_shape"
                )
            shape = self.dense_shape
            size = apply_op(
                "StridedSlice", input=shape, begin=[0], end=[1], strides=[1], shrink_axis_mask=1
            )
            self._dense = apply_op(
                "UnsortedSegmentSum",
                data=self.values,
                segment_ids=self.indices,
                num_segments=size,
            )
        return self._dense

    def _fetched_parts(self) -> IndexedSlicesValue:
        """The parts that a session fetches, in the form of the answer."""
        return IndexedSlicesValue(self.values, self.indices, self.dense_shape)


Gradient = Tensor | IndexedSlices
"""The forms of a gradient."""


def as_dense(value: Any) -> Any:
    """The dense tensor of IndexedSlices, also inside a list; every other value as it is."""
    if isinstance(value, IndexedSlices):
        return value.to_tensor()
    if isinstance(value, list | tuple):
        return [as_dense(item) for item in value]
    return value


def sum_of_slices(gradients: Sequence[IndexedSlices]) -> IndexedSlices:
    """IndexedSlices with the rows of all of them."""
    first = gradients[0]
    return IndexedSlices(
        _concat([slices.values for slices in gradients]),
        _concat(_of_one_type([slices.indices for slices in gradients])),
        first.dense_shape,
    )


def _of_one_type(indices: Sequence[Tensor]) -> list[Tensor]:
    """The indices as they are, or all as int64 where their types differ."""
    if len({tensor.dtype for tensor in indices}) == 1:
        return list(indices)
    wide = DataType.DT_INT64
    return [t if t.dtype == wide else apply_op("Cast", x=t, DstT=wide) for t in indices]


def _concat(tensors: list[Tensor]) -> Tensor:
    joined: Tensor = apply_op("ConcatV2", values=tensors, axis=0)
    return joined


if TYPE_CHECKING:
    from contextlib import AbstractContextManager


class Nodes:
    """Adds a node to a graph for each call; see the module."""

    def __getattr__(self, op_type: str) -> Callable[..., Any]:
        if op_type.startswith("__"):
            raise AttributeError(op_type)
        return functools.partial(_add_node, op_type)


def _add_node(op_type: str, *inputs: Any, name: str | None = None, **attrs: Any) -> Any:
    """Add a node; raises as `apply_op` does.

    Returns:
        The output tensor, a list for a list output, a named tuple of several of them; the
        Operation where the op has no outputs.
    """
    tensors = [as_dense(value) for value in inputs]
    graph = graph_of_call(tensors_in(tensors)) or get_default_graph()
    declared = graph.function_library.look_up(op_type).op_def.input_arg
    if len(tensors) != len(declared):
        raise TypeError(f"{op_type} takes {len(declared)} inputs, not {len(tensors)}")
    return add_node(graph, op_type, name, tensors, attrs)


nodes = Nodes()


def conj(tensor: Tensor) -> Tensor:
    """The complex conjugate; the tensor itself if it is real."""
    if not tensor.dtype.is_complex:
        return tensor
    conjugate: Tensor = nodes.Conj(tensor)
    return conjugate


def attrs_of(op: Operation, *names: str) -> dict[str, Any]:
    """Attrs of an operation, to be given to a node: `nodes.AvgPoolGrad(..., **attrs_of(op, "ksize"))`."""
    return {name: op.get_attr(name) for name in names}


_source: ContextVar[str] = ContextVar("gradient_source", default="gradients")


def as_source(scope: str) -> AbstractContextManager[None]:
    """Let the nodes made inside be those of the name scope of a call."""
    return setting({_source: scope.rstrip("/")})


def gradient_source() -> str:
    """The name of the innermost call."""
    return _source.get()


_TRAINABLE = frozenset(
    {
        DataType.DT_HALF,
        DataType.DT_BFLOAT16,
        DataType.DT_FLOAT,
        DataType.DT_DOUBLE,
        DataType.DT_COMPLEX64,
        DataType.DT_COMPLEX128,
        DataType.DT_RESOURCE,
        DataType.DT_VARIANT,
    }
)

_LOOPS = ("While", "StatelessWhile")


def is_trainable(tensor: Tensor) -> bool:
    """Whether a tensor may have a gradient; for a variant, whether its known contents may."""
    dtype = tensor.dtype.base
    if dtype == DataType.DT_VARIANT:
        held = {entry.dtype for entry in held_by(tensor)}
        if len(held) == 1 and (known := next(iter(held))):
            dtype = known
    return dtype in _TRAINABLE


def gradient_dtype(tensor: Tensor) -> DataType:
    """The type of a tensor's gradient: its own, or for a resource that of the variable."""
    dtype = tensor.dtype.base
    held = held_by(tensor) if dtype == DataType.DT_RESOURCE else ()
    return held[0].dtype if held else dtype


def held_by(tensor: Tensor) -> list[ShapeAndType]:
    """The known content of a resource or variant."""
    refiner = tensor.graph.refiner
    refiner.add_node(tensor.op)
    held = refiner.held_by((tensor.op, tensor.value_index))
    if not held and tensor.op.type in _LOOPS:  # which give the resources that they take
        return held_by(tensor.op.inputs[tensor.value_index])
    return list(held or ())


def constant_value(tensor: Tensor) -> Array | None:
    """The value of a tensor that depends on constants alone; None where it is not known."""
    refiner = tensor.graph.refiner
    refiner.add_node(tensor.op)
    return refiner.values.value_of((tensor.op, tensor.value_index))


def shape_of(tensor: Tensor) -> Tensor:
    """The shape of a tensor as a tensor; of a resource, that of the variable. int32."""
    if tensor.dtype == DataType.DT_RESOURCE:
        shape: Tensor = nodes.VariableShape(tensor)
    elif (known := tensor.shape).is_fully_defined():
        shape = constant(known.as_list(), DataType.DT_INT32, name="Shape")
    else:
        shape = nodes.Shape(tensor)
    return shape


def zeros_like(tensor: Tensor, dtype: DataType | None = None) -> Tensor:
    """A gradient of zeros; `dtype` is the type for a resource whose contents are not known."""
    zeros: Tensor
    if tensor.dtype == DataType.DT_RESOURCE:
        zeros = nodes.Fill(shape_of(tensor), constant(0, dtype or gradient_dtype(tensor)))
    else:
        zeros = nodes.ZerosLike(tensor)
    return zeros


def ones_like(tensor: Tensor, name: str | None = None) -> Tensor:
    """A gradient of ones."""
    ones: Tensor = nodes.Fill(shape_of(tensor), constant(1, gradient_dtype(tensor)), name=name)
    return ones


def is_zeros(gradient: Tensor | None) -> bool:
    """Whether a gradient is missing, or known to be zeros by how it was made."""
    return gradient is None or gradient.op.type == "ZerosLike"


def any_value(dtype: DataType) -> Tensor:
    """Any tensor of a type, for places where nothing reads it."""
    anything: Tensor
    if dtype == DataType.DT_VARIANT:
        anything = nodes.EmptyTensorList(-1, 0, element_dtype=DataType.DT_FLOAT)
    else:
        value = "" if dtype == DataType.DT_STRING else np.zeros((), dtype.numpy_dtype)
        anything = constant(value, dtype)
    return anything


def sum_to_operands(
    x: Tensor, y: Tensor, grad_x: Gradient | None, grad_y: Gradient | None
) -> tuple[Gradient | None, Gradient | None]:
    """The gradients of two operands, from gradients of the shape that they broadcast to.

    Args:
        x: the one operand.
        y: the other.
        grad_x: the gradient of `x` before summing; None stays None.
        grad_y: that of `y`.
    """
    axes = _reduced_axes(x, y)
    if axes is not None:
        return _summed_along(axes[0], grad_x, x, y), _summed_along(axes[1], grad_y, y, x)
    shapes = shape_of(x), shape_of(y)
    over_x, over_y = nodes.BroadcastGradientArgs(*shapes)
    return _summed_over(grad_x, over_x, shapes[0]), _summed_over(grad_y, over_y, shapes[1])


def _summed_over(gradient: Gradient | None, axes: Tensor, shape: Tensor) -> Gradient | None:
    return (
        None
        if gradient is None
        else nodes.Reshape(nodes.Sum(gradient, axes, keep_dims=True), shape)
    )


def _summed_along(
    axes: list[int], gradient: Gradient | None, operand: Tensor, other: Tensor
) -> Gradient | None:
    """As `_summed`, for axes that are known: first those that the operand lacks."""
    if gradient is None or not axes:
        return gradient
    lacking = max(0, len(other.shape) - len(operand.shape))
    if lacking == len(axes):
        total: Gradient = nodes.Sum(gradient, axes)
        return total
    total = nodes.Sum(gradient, axes, keep_dims=True)
    return nodes.Reshape(total, shape_of(operand)) if lacking else total


def _reduced_axes(x: Tensor, y: Tensor) -> tuple[list[int], list[int]] | None:
    """The axes along which each operand was repeated; None where only the values will tell.

    An axis of size 1 may be among them if nothing is known of the other operand: the sum along it
    changes nothing.
    """
    x_dims, y_dims = x.shape.dims, y.shape.dims
    if x_dims is None or y_dims is None:
        return None
    rank = max(len(x_dims), len(y_dims))
    x_sizes, y_sizes = _padded(x_dims, rank), _padded(y_dims, rank)
    pairs = list(zip(x_sizes, y_sizes, strict=True))
    if any(None in pair and 1 not in pair for pair in pairs):
        return None
    return (
        [i for i, (a, b) in enumerate(pairs) if i < rank - len(x_dims) or a == 1 != b],
        [i for i, (a, b) in enumerate(pairs) if i < rank - len(y_dims) or b == 1 != a],
    )


def _padded(dims: tuple[int | None, ...], rank: int) -> tuple[int | None, ...]:
    """The sizes of a shape that is given further axes in front."""
    return (1,) * (rank - len(dims)) + dims
