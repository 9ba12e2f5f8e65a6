"""Questions of gradient functions about tensors: gradients, shapes, values, zeros, ones.

Source: TensorFlow python/eager/backprop_util.py, python/ops/default_gradient.py.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from opkernel.gradients.node_methods import nodes
from opkernel.graph import Tensor, constant
from opkernel.opdef import ShapeAndType
from opkernel.types import DataType

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


def constant_value(tensor: Tensor) -> np.ndarray[Any, Any] | None:
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
    if dtype == DataType.DT_VARIANT:
        empty: Tensor = nodes.EmptyTensorList(-1, 0, element_dtype=DataType.DT_FLOAT)
        return empty
    value = "" if dtype == DataType.DT_STRING else np.zeros((), dtype.numpy_dtype)
    anything: Tensor = constant(value, dtype)
    return anything
