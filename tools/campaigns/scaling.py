"""Ways to make a call want much: more elements, longer strings, larger numbers and attrs, more inputs.

A call is a GraphDef. The op that is called stands last; its constants and attrs are what grows.
"""

import random
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from opkernel.opdef import global_op_registry
from opkernel.proto import GraphDef, NodeDef
from opkernel.types import DataType, tensor_from_proto

__all__ = ["Arrays", "scale"]

Arrays = dict[str, Any]
"""The values of constants, by name."""

import os
MOST_BYTES = int((1 << 25) / float(os.environ.get("SCALE", "1")))
"""So many bytes all constants of a call may take together."""
_COUNTS = DataType.DT_INT32, DataType.DT_INT64
_Way = Callable[[NodeDef, Arrays, float, random.Random], None]


def scale(graph_def: GraphDef, rng: random.Random) -> Arrays:
    """Make the last node of a graph want much; gives the constants, whose nodes stay as they were."""
    node, arrays = graph_def.node[-1], _constants(graph_def)
    for _ in range(rng.choice([1, 1, 2, 3])):
        factor = 2.0 ** rng.triangular(2, 25, 25)
        rng.choice(_WAYS)(node, arrays, factor, rng)
    return arrays


def _constants(graph_def: GraphDef) -> Arrays:
    return {
        node.name: tensor_from_proto(node.attr["value"].tensor)
        for node in graph_def.node
        if node.op == "Const"
    }


def _size(array: Any) -> int:
    """The bytes of an array, with those of its strings."""
    if array.dtype == object:
        return sum(map(len, array.flat)) + 50 * int(array.size)
    return int(array.nbytes)


def _allowed(arrays: Arrays, names: list[str], factor: float) -> int:
    """How many times as large some arrays may become, at most `factor`."""
    size = sum(_size(arrays[name]) for name in names) or 1
    left = MOST_BYTES - sum(map(_size, arrays.values()))
    return int(min(factor, max(1 + left / size, 1)))


def _lengthen(node: NodeDef, arrays: Arrays, factor: float, rng: random.Random) -> None:
    """Make sizes that are equal larger by the same factor, in all constants or in one."""
    sizes = {size for array in arrays.values() for size in array.shape if size}
    if not sizes:
        return
    size = rng.choice(sorted(sizes))
    names = sorted(name for name, array in arrays.items() if size in array.shape)
    if rng.random() < 0.4:
        names = [rng.choice(names)]
    all_axes = rng.random() < 0.5
    axes = {name: _axes(arrays[name].shape, size, all_axes, rng) for name in names}
    most = max(map(len, axes.values()))
    times = int(_allowed(arrays, names, factor) ** (1 / most))
    arrange = rng.choice(_ARRANGEMENTS)
    for name in names:
        longer = arrays[name]
        for axis in axes[name]:
            longer = np.concatenate([longer] * min(times, 1 << 12), axis)
            longer = np.concatenate([longer] * max(times >> 12, 1), axis)
        arrays[name] = arrange(longer, rng)
    if rng.random() < 0.7:
        _count(arrays, size, size * times)


def _axes(shape: tuple[int, ...], size: int, all_axes: bool, rng: random.Random) -> list[int]:
    found = [axis for axis, one in enumerate(shape) if one == size]
    return found if all_axes else [rng.choice(found)]


def _count(arrays: Arrays, size: int, new_size: int) -> None:
    """Where small constants may tell a size, make them tell the new one."""
    for name, array in arrays.items():
        if array.dtype.kind == "i" and array.size < 16 and (array == size).any():
            top = np.iinfo(array.dtype).max
            arrays[name] = np.where(array == size, min(new_size, top), array).astype(array.dtype)


def _as_it_is(array: Any, rng: random.Random) -> Any:
    return array


def _sorted(array: Any, rng: random.Random) -> Any:
    flat = array.reshape(len(array), -1) if array.ndim else array
    return array if not flat.ndim or array.dtype.names else np.sort(array, 0)


def _drawn(array: Any, rng: random.Random) -> Any:
    """Numbers between the least and the largest."""
    if array.dtype.kind not in "iuf" or not array.size:
        return array
    generator = np.random.default_rng(rng.randrange(1 << 30))
    low, high = array.min(), array.max()
    if array.dtype.kind == "f":
        finite = np.isfinite([low, high]).all()
        return generator.uniform(low, high, array.shape).astype(array.dtype) if finite else array
    return generator.integers(low, high, array.shape, array.dtype, endpoint=True)


def _different(array: Any, rng: random.Random) -> Any:
    """Elements of which no two are equal."""
    order = np.arange(array.size).reshape(array.shape)
    if array.dtype == object:
        texts = [text + b"%d" % at for at, text in enumerate(array.flat)]
        return _strings(texts, array.shape)
    if array.dtype.kind not in "iuf":
        return array
    top = 2**24 if array.dtype.kind == "f" else np.iinfo(array.dtype).max
    return np.minimum(order, min(top, 2**62)).astype(array.dtype)


_ARRANGEMENTS = [_as_it_is, _as_it_is, _sorted, _drawn, _different]


def _strings(texts: list[bytes], shape: tuple[int, ...]) -> Any:
    array = np.empty(len(texts), object)
    array[:] = texts
    return array.reshape(shape)


def _longer_strings(node: NodeDef, arrays: Arrays, factor: float, rng: random.Random) -> None:
    """Repeat the content of strings, or a byte of it."""
    names = [name for name, array in arrays.items() if array.dtype == object and array.size]
    if not names:
        return
    name = rng.choice(names)
    texts = list(arrays[name].flat)
    times = int(min(factor, MOST_BYTES / (sum(map(len, texts)) + len(texts))))
    chosen = rng.choice([*range(len(texts)), None, None])
    make = rng.choice(_LONGER)
    texts = [make(t, times) if chosen in (None, at) else t for at, t in enumerate(texts)]
    arrays[name] = _strings(texts, arrays[name].shape)


_LONGER: list[Callable[[bytes, int], bytes]] = [
    lambda text, times: text * times,
    lambda text, times: text * times,
    lambda text, times: text[:1] * times + text,
    lambda text, times: text + text[-1:] * times,
    lambda text, times: b" " * times,
    lambda text, times: b"\xff" * times,
    lambda text, times: ("\u00e9" * (times // 2)).encode(),
]


def _larger_numbers(node: NodeDef, arrays: Arrays, factor: float, rng: random.Random) -> None:
    """Make integers larger that may be sizes, or numbers that take long."""
    names = [name for name, array in arrays.items() if array.dtype.kind in "iuf" and array.size]
    if not names:
        return
    few = [name for name in names if arrays[name].size < 16]
    name = rng.choice(few or names)
    array = arrays[name].copy()
    at = rng.choice([slice(None), rng.randrange(array.size)])
    top = 1e30 if array.dtype.kind == "f" else np.iinfo(array.dtype).max
    flat = array.reshape(-1)
    flat[at] = np.minimum(np.maximum(flat[at].astype(float), 1) * factor, top).astype(array.dtype)
    arrays[name] = array


def _larger_attrs(node: NodeDef, arrays: Arrays, factor: float, rng: random.Random) -> None:
    """Make an integer of the attrs larger, a size of a shape, or a string longer."""
    chosen = [
        attr
        for attr in node.attr
        if node.attr[attr].WhichOneof("value") in ("i", "list", "shape", "s")
    ]
    if not chosen:
        return
    value = node.attr[rng.choice(sorted(chosen))]
    kind = value.WhichOneof("value")
    if kind == "i":
        value.i = _larger(value.i, factor)
    elif kind == "s":
        value.s = (value.s or b"x") * int(min(factor, 1 << 20))
    elif kind == "shape" and value.shape.dim:
        dim = rng.choice(value.shape.dim)
        dim.size = _larger(dim.size, factor)
    elif kind == "list" and value.list.i:
        numbers = list(value.list.i)
        chosen_at = rng.choice([*range(len(numbers)), None])
        del value.list.i[:]
        value.list.i.extend(
            _larger(n, factor) if chosen_at in (None, at) else n for at, n in enumerate(numbers)
        )
    elif kind == "list" and value.list.shape:
        for dim in rng.choice(value.list.shape).dim:
            dim.size = _larger(dim.size, factor)


def _larger(number: int, factor: float) -> int:
    return min(int(max(number, 1) * factor), 2**63 - 1)


def _more_inputs(node: NodeDef, arrays: Arrays, factor: float, rng: random.Random) -> None:
    """Repeat the inputs of a list; without one, ask for more outputs."""
    times = int(min(factor, 1 << 16))
    op_def = global_op_registry().look_up_op_def(node.op)
    groups = list(_groups(node))
    attrs = {arg.number_attr for arg in (*op_def.input_arg, *op_def.output_arg)} - {""}
    if not attrs:
        return
    attr = rng.choice(sorted(attrs))
    inputs: list[str] = []
    for of, names in groups:
        inputs += names * times if of == attr else names
    del node.input[:]
    node.input.extend(inputs)
    node.attr[attr].i *= times


def _groups(node: NodeDef) -> Iterator[tuple[str, list[str]]]:
    """The inputs by argument, with the attr that says how many they are."""
    rest = [name for name in node.input if not name.startswith("^")]
    for arg in global_op_registry().look_up_op_def(node.op).input_arg:
        count = 1
        if arg.number_attr:
            count = node.attr[arg.number_attr].i
        elif arg.type_list_attr:
            count = len(node.attr[arg.type_list_attr].list.type)
        yield arg.number_attr, rest[:count]
        rest = rest[count:]
    yield "", [name for name in node.input if name.startswith("^")]


_WAYS: list[_Way] = [
    *[_lengthen] * 4,
    _longer_strings,
    _longer_strings,
    _larger_numbers,
    _larger_numbers,
    _larger_attrs,
    _more_inputs,
]
