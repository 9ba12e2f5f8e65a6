"""Recorded calls of TensorFlow's ops as nodes of graphs."""

import base64
from collections.abc import Iterator
from typing import Any

import numpy as np

from opkernel.opdef import attr_from_python
from opkernel.proto import GraphDef, NodeDef
from opkernel.types import DataType, PartialTensorShape, tensor_to_proto


def graph_of(call: dict[str, Any], *, are_known: bool) -> GraphDef:
    """A graph of one call, `call`, on constants, or on placeholders of the inputs' shapes."""
    graph = GraphDef()
    add_call(graph, "call", call)
    if not are_known:
        for node in graph.node[:-1]:
            shape, dtype = node.attr["value"].tensor.tensor_shape, node.attr["dtype"].type
            node.CopyFrom(NodeDef(name=node.name, op="Placeholder"))
            node.attr["dtype"].type = dtype
            node.attr["shape"].shape.CopyFrom(shape)
    return graph


def add_call(graph: GraphDef, name: str, call: dict[str, Any]) -> None:
    """Add the node of a call, and a constant for each of its inputs."""
    node = NodeDef(name=name, op=call["op"])
    for key, value in call["attrs"].items():
        node.attr[key].CopyFrom(_attr_value(value))
    for number, value in enumerate(arrays(call["inputs"])):
        dtype = DataType.from_string(value["dtype"])
        name = f"{node.name}/input_{number}"
        node.input.append(add_constant(graph, name, _array(value), dtype))
    graph.node.append(node)


def arrays(values: list[Any]) -> Iterator[dict[str, Any]]:
    """The recorded arrays of arguments, some of which are lists."""
    for value in values:
        if isinstance(value, list):
            yield from arrays(value)
        else:
            yield value


def add_constant(graph: GraphDef, name: str, value: Any, dtype: DataType | None = None) -> str:
    """Add a Const; the result is its name."""
    tensor = tensor_to_proto(value, dtype)
    constant = graph.node.add(name=name, op="Const")
    constant.attr["dtype"].type = tensor.dtype
    constant.attr["value"].tensor.CopyFrom(tensor)
    return name


def _array(value: dict[str, Any]) -> Any:
    if value["dtype"] == "string":
        texts = [base64.b64decode(text) for text in value["values_b64"]]
        return np.array([*texts, None], object)[:-1].reshape(value["shape"])
    dtype = np.dtype(DataType.from_string(value["dtype"]).as_numpy_dtype)
    return np.frombuffer(base64.b64decode(value["b64"]), dtype).reshape(value["shape"])


def _attr_value(value: dict[str, Any]) -> Any:
    ((kind, recorded),) = value.items()
    if kind.startswith("list("):
        inner = kind.removeprefix("list(").removesuffix(")")
        return attr_from_python([_decoded(inner, item) for item in recorded], kind)
    return attr_from_python(_decoded(kind, recorded), kind)


def _decoded(kind: str, value: Any) -> Any:
    if kind == "type":
        return DataType.from_string(value)
    if kind == "string":
        return base64.b64decode(value)
    if kind == "shape" and value is not None:
        return PartialTensorShape([None if dim == -1 else dim for dim in value])
    return _array(value) if kind == "tensor" else value
