"""Calls made larger step by step, each step the same for all: what benchmarks measure.

A call is a GraphDef, as in `scaling`: the op that is called stands last, and its constants grow. A way to grow is kept as
long as the larger call is accepted.
"""

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np
from tools.campaigns.scaling import FEW, Arrays, repeated, size_in_bytes, strings_of, tell_size

from opkernel.proto import GraphDef, TensorShapeProto
from opkernel.types import DataType, tensor_from_proto, tensor_to_proto

__all__ = ["constants_of", "grown", "with_constants"]

FACTOR = 4
"""What grows in a step becomes so many times as large."""

_VARIABLES = ("VarHandleOp", "VariableV2")

Axes = dict[str, list[int]]
"""The axes of constants that grow together."""
Way = Callable[[Arrays], Arrays]


def grown(arrays: Arrays, accepts: Callable[[Arrays], bool], most_bytes: int) -> Iterator[Arrays]:
    """Ever larger constants of a call, up to `most_bytes`.

    Args:
        arrays: The constants of the recorded call.
        accepts: Whether a call with some constants is right, and larger than the one before.
        most_bytes: How many bytes the constants take at most.
    """
    ways = [*_ways(arrays)]
    while ways:
        kept = []
        for way in ways:
            larger = way(arrays)
            size = sum(map(size_in_bytes, larger.values()))
            if size <= most_bytes and accepts(larger):
                arrays = larger
                kept.append(way)
                yield arrays
        ways = kept


def _ways(arrays: Arrays) -> Iterator[Way]:
    """Ways to grow: numbers that may tell sizes, equal sizes together, axis by axis, the lengths of strings."""
    yield from (
        partial(_larger_numbers, name)
        for name, array in arrays.items()
        if array.dtype.kind == "i" and 0 < array.size < FEW
    )
    if any(map(_are_indices, arrays.values())):
        yield _more_rows
    seen: list[Axes] = []
    for axes in (*_equal_sizes(arrays), *_first_axes(arrays), *_single_axes(arrays)):
        if axes not in seen:
            seen.append(axes)
            yield partial(_longer, axes, True)
            yield partial(_longer, axes, False)
    yield from (
        partial(_longer_strings, name)
        for name, array in arrays.items()
        if array.dtype == object and array.size
    )


def _equal_sizes(arrays: Arrays) -> Iterator[Axes]:
    """For each size the axes that have it, an axis an array; then all of them."""
    sizes = dict.fromkeys(size for array in arrays.values() for size in array.shape if size)
    for size in sizes:
        found = {
            name: [axis for axis, one in enumerate(array.shape) if one == size]
            for name, array in arrays.items()
            if size in array.shape
        }
        yield {name: axes[:1] for name, axes in found.items()}
        yield found


def _first_axes(arrays: Arrays) -> Iterator[Axes]:
    yield {name: [0] for name, array in arrays.items() if array.ndim and array.size}


def _single_axes(arrays: Arrays) -> Iterator[Axes]:
    for name, array in arrays.items():
        yield from ({name: [axis]} for axis, size in enumerate(array.shape) if size)


def _longer(axes: Axes, tells: bool, arrays: Arrays) -> Arrays:
    """The constants with some axes longer, and small constants that tell a size telling the new one."""
    larger = {**arrays}
    for name, chosen in axes.items():
        larger[name] = repeated(arrays[name], chosen, FACTOR)
    if tells:
        for size in {arrays[name].shape[axis] for name, chosen in axes.items() for axis in chosen}:
            tell_size(larger, size, size * FACTOR)
    return larger


def _are_indices(array: Any) -> bool:
    return bool(array.dtype == np.int64 and array.ndim == 2 and array.size)


def _more_rows(arrays: Arrays) -> Arrays:
    """Sparse tensors with more rows: the indices go on where they end, in a larger first dimension."""
    larger = {**arrays}
    indices = {name: array for name, array in arrays.items() if _are_indices(array)}
    counts = {len(array) for array in indices.values()}
    height = 1 + max(int(array[:, 0].max()) for array in indices.values())
    shapes = [a for a in arrays.values() if a.dtype == np.int64 and a.ndim == 1 and a.size]
    columns = {array.shape[1] for array in indices.values()}
    height = max([height, *(int(shape[0]) for shape in shapes if shape.size in columns)])
    for name, array in arrays.items():
        if array.ndim and len(array) in counts:
            larger[name] = repeated(array, [0], FACTOR)
        elif array.dtype == np.int64 and array.ndim == 1 and array.size in columns:
            larger[name] = array * np.where(np.arange(array.size) == 0, FACTOR, 1)
    for name, array in indices.items():
        larger[name][:, 0] += np.repeat(np.arange(FACTOR), len(array)) * height
    return larger


def _larger_numbers(name: str, arrays: Arrays) -> Arrays:
    array = arrays[name]
    top = np.iinfo(array.dtype).max // FACTOR
    return arrays | {name: np.where((array > 0) & (array < top), array * FACTOR, array)}


def _longer_strings(name: str, arrays: Arrays) -> Arrays:
    array = arrays[name]
    return arrays | {name: strings_of([text * FACTOR for text in array.flat], array.shape)}


def constants_of(graph_def: GraphDef) -> Arrays:
    """The constants of a call, by name."""
    constants = [node for node in graph_def.node if node.op == "Const"]
    return {node.name: tensor_from_proto(node.attr["value"].tensor) for node in constants}


def with_constants(graph_def: GraphDef, arrays: Arrays) -> GraphDef:
    """The graph with other values of its constants, and variables of any shape."""
    changed = GraphDef()
    changed.CopyFrom(graph_def)
    for node in changed.node:
        if node.op in _VARIABLES:
            node.attr["shape"].shape.CopyFrom(TensorShapeProto(unknown_rank=True))
        if node.op == "Assign":
            node.attr["validate_shape"].b = False
        if node.name in arrays:
            dtype = DataType(node.attr["dtype"].type)
            node.attr["value"].tensor.CopyFrom(tensor_to_proto(arrays[node.name], dtype))
    return changed
