"""Graphs that are a little wrong: `mutations` of a GraphDef, each of one attr of one node."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from opkernel.proto import AttrValue, GraphDef, NodeDef
from opkernel.types import DataType, PartialTensorShape, tensor_from_proto, tensor_to_proto

__all__ = ["Mutation", "mutations"]


class Mutation(NamedTuple):
    """What is to be changed: an attr of a node, which gets a value or goes."""

    node: str
    attr: str
    value: AttrValue | None

    def apply(self, graph_def: GraphDef) -> GraphDef:
        """A copy of a graph with the change."""
        changed = GraphDef.FromString(graph_def.SerializeToString())
        node = next(node for node in changed.node if node.name == self.node)
        if self.value is None:
            del node.attr[self.attr]
        else:
            node.attr[self.attr].CopyFrom(self.value)
        return changed


def mutations(graph_def: GraphDef) -> list[Mutation]:
    """All of them; for each attr the values that such attrs may have, right or wrong."""
    return [
        Mutation(node.name, name, value)
        for node in graph_def.node
        for name in sorted(node.attr)
        if not name.startswith("_")
        for value in (*_values(node, name), None)
        if value is None or value != node.attr[name]
    ]


def _values(node: NodeDef, name: str) -> Iterator[AttrValue]:
    value = node.attr[name]
    kind = value.WhichOneof("value")
    if kind == "tensor":
        yield from map(_of_tensor, _tensors(value))
    elif kind == "shape":
        for shape in (None, [], [None], [None] * 2, [None] * 4, [2, 3], [0, 3], [-1, 2**40]):
            yield AttrValue(shape=PartialTensorShape(_sizes(shape)).to_proto())
    elif kind == "list":
        yield from _lists(value)
    elif kind is not None:
        yield from (AttrValue(**{kind: one}) for one in _SCALARS.get(kind, ()))


def _sizes(shape: Any) -> Any:
    return None if shape is None else [None if size == -1 else size for size in shape]


_SCALARS: dict[str, tuple[Any, ...]] = {
    "i": (-1, 0, 1, 2, 3, 7, 2**31, 2**62),
    "f": (0.0, -1.0, float("nan")),
    "b": (False, True),
    "s": (b"", b"NHWC", b"NCHW", b"SAME", b"VALID", b"EXPLICIT", b"SYMMETRIC", b"other"),
    "type": (
        DataType.DT_FLOAT,
        DataType.DT_DOUBLE,
        DataType.DT_INT32,
        DataType.DT_INT64,
        DataType.DT_BOOL,
        DataType.DT_STRING,
    ),
}


def _lists(value: AttrValue) -> Iterator[AttrValue]:
    """Shorter, longer, of other numbers."""
    numbers = list(value.list.i)
    if value.list.type or value.list.func or value.list.s:
        return
    for changed in (
        [],
        numbers[:-1],
        [*numbers, 1],
        [0] * len(numbers),
        [-1] * len(numbers),
        [2] * len(numbers),
        [1] * 4,
        [0, 0, 1, 0, 0, 1, 0, 0],
        [0, 0, 1, 0, 0, 1, 0],
        [1, 0, 0, 0, 0, 0, 0, 0],
        [0] * 10,
        [2**40] * len(numbers),
    ):
        new = AttrValue()
        new.list.i.extend(changed)
        new.list.SetInParent()
        yield new


def _of_tensor(value: np.ndarray[Any, Any]) -> AttrValue:
    return AttrValue(tensor=tensor_to_proto(value))


def _tensors(value: AttrValue) -> Iterator[np.ndarray[Any, Any]]:
    """Of other ranks, shapes, values and types."""
    array = np.asarray(tensor_from_proto(value.tensor))
    if array.dtype == object:
        return
    yield array.reshape(-1)
    yield array.reshape((1, *array.shape))
    yield array.reshape((*array.shape, 1))
    yield array.reshape((1, 1, 1, *array.shape))
    yield np.concatenate([array.reshape(-1), array.reshape(-1)])
    yield array.reshape(-1)[:-1]
    yield np.array(0, array.dtype)
    yield array.reshape(-1)[::-1].reshape(array.shape)
    yield np.zeros((*array.shape, 0), array.dtype)
    yield np.zeros((0, 2), array.dtype)
    for shape in ((), (1,), (2,), (3,), (2, 2), (3, 2), (4, 2), (1, 3), (2, 3), (2, 1)):
        for number in (0, 1):
            yield np.full(shape, number, array.dtype)
    most: Any = np.iinfo(array.dtype).max if array.dtype.kind in "iu" else np.nan
    for number in (-1, 2, 3, 7, most):
        if array.dtype.kind in "if":
            yield np.full(array.shape, number, array.dtype)
    for dtype in (np.float32, np.float64, np.int32, np.int64, np.bool_):
        if array.dtype != dtype:
            yield array.astype(dtype)
