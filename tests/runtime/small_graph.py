"""A graph of ops whose cost and size the data decides."""

from typing import Any

import numpy as np

import opkernel
import opkernel.types
from opkernel.graph import Graph
from opkernel.types import DataType

__all__ = ["small_graph"]


def small_graph() -> bytes:
    """The graph, with the placeholder `x`."""
    graph = Graph()
    x = graph.create_op(
        "Placeholder", [], name="x", attrs={"dtype": DataType.DT_FLOAT, "shape": [2, 3]}
    ).outputs[0]

    def constant(value: Any, name: str) -> opkernel.Tensor:
        attrs = {"dtype": opkernel.types.as_dtype(np.asarray(value).dtype), "value": value}
        return graph.create_op("Const", [], name=name, attrs=attrs).outputs[0]

    product = graph.create_op(
        "MatMul", [x, constant(np.ones((3, 4), np.float32), "w")], name="product"
    ).outputs[0]
    shape = graph.create_op("Shape", [product], name="shape").outputs[0]
    filled = graph.create_op(
        "Fill", [shape, constant(np.float32(2), "two")], name="filled"
    ).outputs[0]
    joined = graph.create_op(
        "ConcatV2", [[product, filled], constant(np.int32(1), "axis")], name="joined"
    ).outputs[0]
    tiled = graph.create_op(
        "Tile", [joined, constant(np.array([2, 1], np.int32), "multiples")], name="tiled"
    ).outputs[0]
    part = graph.create_op(
        "StridedSlice",
        [
            tiled,
            constant(np.array([0, 1], np.int32), "begin"),
            constant(np.array([4, 7], np.int32), "end"),
            constant(np.array([1, 2], np.int32), "strides"),
        ],
        name="part",
    ).outputs[0]
    flat = graph.create_op(
        "Reshape", [part, constant(np.array([-1], np.int32), "flat_shape")], name="flat"
    ).outputs[0]
    padded = graph.create_op(
        "Pad", [flat, constant(np.array([[1, 1]], np.int32), "paddings")], name="padded"
    ).outputs[0]
    graph.create_op("Sum", [padded, constant(np.array([0], np.int32), "sum_axis")], name="sum")
    return graph.as_graph_def().SerializeToString()
