"""Ways to make nodes: `apply_op("MatMul", a=x, b=y, transpose_a=True)`, `constant` and `placeholder`.

Python values and arrays take the place of a tensor whose type is known (`array_like_tensor`).

Source: TensorFlow python/framework/op_def_library.py, constant_op.py, tensor_conversion.py, python/ops/array_ops.py.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from opkernel.errors import InvalidArgumentError
from opkernel.graph.core.create_op import op_named
from opkernel.graph.core.default_graph import get_default_graph, graph_of_call, innermost_default
from opkernel.graph.core.graph import Graph
from opkernel.graph.core.node import NodeRequest
from opkernel.graph.core.tensor import Tensor, tensors_in
from opkernel.messages import short_repr
from opkernel.opdef import (
    bind_call,
    call_parameters,
    call_result,
    check_op_deprecation,
    is_list_arg,
    name_ranges_for_node,
)
from opkernel.types import Array, DataType, as_dtype, tensor_from_proto, tensor_to_proto


def array_like_tensor(value: Any, dtype: DataType) -> Any:
    """The value; an array of another type as one of `dtype`, where that loses no more than digits.

    Raises:
        InvalidArgumentError: a float is wanted as an integer, or an integer is out of range.
    """
    wanted = dtype.numpy_dtype
    if not isinstance(value, np.ndarray | np.generic) or value.dtype == wanted:
        return value
    if "O" in (value.dtype.kind, wanted.kind) or value.dtype.kind in "SU" or dtype.is_quantized:
        return value
    source = as_dtype(value.dtype)
    if not _may_become(source, dtype):
        raise InvalidArgumentError(
            f"An array of {source.tf_name} cannot take the place of a tensor of {dtype.tf_name}"
        )
    converted = value.astype(wanted)
    if dtype.is_integer and not np.array_equal(converted, value):
        raise InvalidArgumentError(f"{short_repr(value)} does not fit {dtype.tf_name}")
    return converted


def _may_become(source: DataType, wanted: DataType) -> bool:
    if source.is_bool or wanted.is_bool:
        return False
    if source.is_complex:
        return wanted.is_complex
    return source.is_integer or not wanted.is_integer


def constant(value: Any, dtype: Any = None, shape: Any = None, name: str = "Const") -> Any:
    """A tensor that holds a value; outside of all graphs, an array.

    Args:
        value: a number, text, a list of such, or an array. Floats become float32 and ints int32
            where `dtype` does not say otherwise; arrays keep their type.
        dtype: the type wanted.
        shape: the shape wanted; one element fills it.
        name: the name of the node.

    Raises:
        InvalidArgumentError: the value makes no such tensor.
    """
    wanted = None if dtype is None else as_dtype(dtype)
    if wanted is not None:
        value = array_like_tensor(value, wanted)
    proto = tensor_to_proto(value, wanted)
    if shape is not None:
        proto = tensor_to_proto(_shaped(np.asarray(tensor_from_proto(proto)), shape), wanted)
    graph = innermost_default()
    if graph is None:
        return tensor_from_proto(proto).copy()
    attrs = {"dtype": as_dtype(proto.dtype), "value": tensor_from_proto(proto)}
    return graph.create_op("Const", name=name, attrs=attrs).outputs[0]


def placeholder(dtype: Any, shape: Any = None, name: str = "Placeholder") -> Tensor:
    """A tensor of the default graph whose value is fed.

    Args:
        dtype: its type.
        shape: its shape, with None for unknown sizes; None where nothing is known of it.
        name: the name of the node.
    """
    attrs = {"dtype": as_dtype(dtype), "shape": shape}
    return get_default_graph().create_op("Placeholder", name=name, attrs=attrs).outputs[0]


def _shaped(array: Array, shape: Any) -> Array:
    sizes = tuple(shape)
    if array.size == 1:
        return np.broadcast_to(array.reshape(()), sizes)
    if array.size != np.prod(sizes, dtype=int):
        raise InvalidArgumentError(
            f"A constant of {array.size} elements cannot have the shape {list(sizes)}"
        )
    return array.reshape(sizes)


def apply_op(op_type_name: str, name: str | None = None, **keywords: Any) -> Any:
    """Add a node to the graph of its inputs, else to the default graph.

    While a function is being traced the node belongs to the function, and inputs from graphs around
    it become inputs of the function.

    Inputs are tensors or values. A value becomes a constant under the node's name. The op, the other
    inputs or the default of the attr decide its type; otherwise the value keeps its own. Lists with
    tensors in them are packed. The node is colocated with the producers of its reference inputs.

    Args:
        op_type_name: an op, or a function of the graph's library.
        name: the name of the node, made unique; the op's name if there is none.
        keywords: the inputs and attrs by their names in the OpDef, with a `_` behind words of
            Python. Attrs that inputs determine are not given; an attr with a default may be left
            out or be None.

    Returns:
        The output tensor, a list for a list output, a named tuple of several of them; the
        Operation where the op has no outputs.

    Raises:
        NotFoundError: there is no such op.
        TypeError: an argument is missing, or is none that the op takes.
        InvalidArgumentError: a value, type or length breaks a rule of the op, or the inputs are
            of several graphs.
        UnimplementedError: the op is deprecated for graphs of this version.
    """
    graph = graph_of_call(tensors_in([*keywords.values()])) or get_default_graph()
    op_def = op_named(graph, op_type_name).op_def
    check_op_deprecation(op_def, graph.graph_def_versions.producer)
    inputs, attrs = bind_call(op_def, call_parameters(op_def), keywords)
    return add_node(graph, op_type_name, name, inputs, attrs)


def add_node(
    graph: Graph,
    op_type_name: str,
    name: str | None,
    inputs: list[Any] | dict[str, Any],
    attrs: dict[str, Any],
) -> Any:
    """`apply_op` where the graph is known, inputs are told from attrs, and nothing is left out.

    Args:
        graph: the graph.
        op_type_name: the op.
        name: the name of the node, or None.
        inputs: one for each argument of the op, by name or in their order.
        attrs: the attrs that inputs do not determine; those with a default may be missing.
    """
    request = NodeRequest(op_type_name, inputs, attrs, beside_refs=True)
    op = graph.create_node(name or op_type_name, request)
    op_def = op.op_def
    if not op_def.output_arg:
        return op
    _, ranges = name_ranges_for_node(op.node_def, op_def)
    outputs: list[Any] = []
    for arg in op_def.output_arg:
        tensors = op.outputs[slice(*ranges[arg.name])]
        outputs.append(list(tensors) if is_list_arg(arg) else tensors[0])
    return call_result(op_def, outputs)
