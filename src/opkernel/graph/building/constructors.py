"""`constant` and `placeholder`: the two nodes that graphs begin with.

Source: TensorFlow python/framework/constant_op.py, python/ops/array_ops.py.
"""

from typing import Any

import numpy as np

from opkernel.errors import InvalidArgumentError
from opkernel.graph.building.tensor_conversion import array_like_tensor
from opkernel.graph.core.default_graph import get_default_graph, innermost_default
from opkernel.graph.core.tensor import Tensor
from opkernel.types import as_dtype, tensor_from_proto, tensor_to_proto


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


def _shaped(array: np.ndarray[Any, Any], shape: Any) -> np.ndarray[Any, Any]:
    sizes = tuple(shape)
    if array.size == 1:
        return np.broadcast_to(array.reshape(()), sizes)
    if array.size != np.prod(sizes, dtype=int):
        raise InvalidArgumentError(
            f"A constant of {array.size} elements cannot have the shape {list(sizes)}"
        )
    return array.reshape(sizes)
