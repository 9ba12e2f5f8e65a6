"""Ways to make a call want much: more elements, longer strings, larger numbers and attrs, more inputs.

A call is a GraphDef: the op that is called stands last. Its constants and its attrs grow.
"""

import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from tools.campaigns.bombs import bomb

from opkernel.opdef import global_op_registry
from opkernel.proto import AttrValue, GraphDef, NodeDef
from opkernel.types import tensor_from_proto

__all__ = ["FEW", "Arrays", "repeated", "scale", "size_in_bytes", "strings_of", "tell_size"]

Arrays = dict[str, Any]
"""The values of constants, by name."""

FEW = 16
"""An array of fewer elements may tell sizes."""
_ATTR_BYTES, _BYTES_AN_INPUT = 1 << 20, 1 << 9
"""So long an attr becomes at most; so many bytes count as an input, or an output."""


@dataclass
class _Call:
    """A call that is made larger.

    Attributes:
        node: The op that is called.
        arrays: The constants.
        most_bytes: How many bytes these take at most.
        rng: Decides.
    """

    node: NodeDef
    arrays: Arrays
    most_bytes: int
    rng: random.Random

    def times(self, names: list[str], factor: float) -> int:
        """How many times as large some arrays may become, at most `factor`."""
        size = sum(size_in_bytes(self.arrays[name]) for name in names) or 1
        left = self.most_bytes - sum(map(size_in_bytes, self.arrays.values()))
        return int(min(factor, max(1 + left / size, 1)))


def scale(graph_def: GraphDef, most_bytes: int, rng: random.Random) -> Arrays:
    """Make the last node of a graph want much; gives the constants, whose nodes stay as they were."""
    constants = [node for node in graph_def.node if node.op == "Const"]
    arrays = {node.name: tensor_from_proto(node.attr["value"].tensor) for node in constants}
    call = _Call(graph_def.node[-1], arrays, most_bytes, rng)
    for _ in range(rng.choice([1, 1, 2, 3])):
        rng.choice(_WAYS)(call, 2.0 ** rng.triangular(2, 25, 25))
    return call.arrays


def size_in_bytes(array: Any) -> int:
    """The bytes of an array, with those of its strings."""
    if array.dtype != object:
        return int(array.nbytes)
    return sum(len(text) + 50 for text in array.flat if isinstance(text, bytes))


def _lengthen(call: _Call, factor: float) -> None:
    """Make sizes that are equal larger by the same factor, in all constants or in one."""
    arrays, rng = call.arrays, call.rng
    sizes = {size for array in arrays.values() for size in array.shape if size}
    if not sizes:
        return
    size = rng.choice(sorted(sizes))
    names = sorted(name for name, array in arrays.items() if size in array.shape)
    names = [rng.choice(names)] if rng.random() < 0.4 else names
    everywhere = rng.random() < 0.5
    axes = {name: _axes(arrays[name], size, everywhere, rng) for name in names}
    times = int(call.times(names, factor) ** (1 / max(map(len, axes.values()))))
    arrange = rng.choice(_ARRANGEMENTS)
    for name in names:
        arrays[name] = arrange(repeated(arrays[name], axes[name], times), rng)
    if rng.random() < 0.7:
        tell_size(arrays, size, size * times)


def repeated(array: Any, axes: list[int], times: int) -> Any:
    """An array repeated along some axes."""
    return np.tile(array, [times if axis in axes else 1 for axis in range(array.ndim)])


def _axes(array: Any, size: int, everywhere: bool, rng: random.Random) -> list[int]:
    found = [axis for axis, one in enumerate(array.shape) if one == size]
    return found if everywhere else [rng.choice(found)]


def tell_size(arrays: Arrays, size: int, new_size: int) -> None:
    """Where small constants may tell a size, make them tell the new one."""
    for name, array in arrays.items():
        if array.dtype.kind == "i" and array.size < FEW and (array == size).any():
            new = min(new_size, np.iinfo(array.dtype).max)
            arrays[name] = np.where(array == size, new, array).astype(array.dtype)


def _as_it_is(array: Any, rng: random.Random) -> Any:
    return array


def _sorted(array: Any, rng: random.Random) -> Any:
    return np.sort(array, 0) if array.ndim and not array.dtype.names else array


def _drawn(array: Any, rng: random.Random) -> Any:
    """Numbers between the least and the largest."""
    if array.dtype.kind not in "iuf" or not array.size:
        return array
    generator = np.random.default_rng(rng.randrange(1 << 30))
    low, high = array.min(), array.max()
    if array.dtype.kind == "f":
        are_finite = np.isfinite([low, high]).all()
        return (
            generator.uniform(low, high, array.shape).astype(array.dtype) if are_finite else array
        )
    return generator.integers(low, high, array.shape, array.dtype, endpoint=True)


def _different(array: Any, rng: random.Random) -> Any:
    """Elements of which no two are equal."""
    if array.dtype == object:
        return strings_of([text + b"%d" % at for at, text in enumerate(array.flat)], array.shape)
    if array.dtype.kind not in "iuf":
        return array
    top = 2**24 if array.dtype.kind == "f" else min(np.iinfo(array.dtype).max, 2**62)
    return np.minimum(np.arange(array.size), top).astype(array.dtype).reshape(array.shape)


_ARRANGEMENTS = [_as_it_is, _as_it_is, _sorted, _drawn, _different]


def strings_of(texts: list[bytes], shape: tuple[int, ...]) -> Any:
    """An array of strings."""
    array = np.empty(len(texts), object)
    array[:] = texts
    return array.reshape(shape)


def _longer_strings(call: _Call, factor: float) -> None:
    """Repeat the content of strings, or a byte of it; of some files, what is in them."""
    arrays, rng = call.arrays, call.rng
    names = [name for name, array in arrays.items() if array.dtype == object and array.size]
    if not names:
        return
    name = rng.choice(names)
    texts = list(arrays[name].flat)
    times = int(min(factor, call.most_bytes / (sum(map(len, texts)) + len(texts))))
    chosen, make = rng.choice([*range(min(len(texts), FEW)), None]), rng.choice(_LONGER)
    texts = [make(text, times) if chosen in (None, at) else text for at, text in enumerate(texts)]
    arrays[name] = strings_of(texts, arrays[name].shape)


_LONGER: list[Callable[[bytes, int], bytes]] = [
    lambda text, times: text * times,
    lambda text, times: text[:1] * times + text,
    lambda text, times: text + text[-1:] * times,
    lambda text, times: b" " * times,
    lambda text, times: b"\xff" * times,
    lambda text, times: "\u00e9".encode() * (times // 2),
    *[lambda text, times: bomb(text, len(text) * times)] * 3,
]


def _larger_numbers(call: _Call, factor: float) -> None:
    """Make numbers larger that may be sizes, or take long."""
    numbers = {n: a for n, a in call.arrays.items() if a.dtype.kind in "iuf" and a.size}
    if not numbers:
        return
    few = [name for name, array in numbers.items() if array.size < FEW]
    name = call.rng.choice(few or [*numbers])
    array = numbers[name].copy()
    top = 1e30 if array.dtype.kind == "f" else np.iinfo(array.dtype).max
    flat, at = array.reshape(-1), call.rng.choice([slice(None), call.rng.randrange(array.size)])
    larger = np.maximum(flat[at].astype(np.float64), 1) * factor
    flat[at] = np.minimum(larger, top * 0.99).astype(array.dtype)
    call.arrays[name] = array


def _larger_attrs(call: _Call, factor: float) -> None:
    """Make an integer of the attrs larger, a size of a shape, or a string longer."""
    attrs = call.node.attr
    kinds = {name: attrs[name].WhichOneof("value") for name in sorted(attrs)}
    names = [name for name, kind in kinds.items() if kind in ("i", "list", "shape", "s")]
    if names:
        name = call.rng.choice(names)
        _grow(attrs[name], kinds[name], factor, call.rng)


def _grow(value: AttrValue, kind: str | None, factor: float, rng: random.Random) -> None:
    dims = [*value.shape.dim, *(dim for shape in value.list.shape for dim in shape.dim)]
    if kind == "i":
        value.i = _larger(value.i, factor)
    elif kind == "s":
        value.s = (value.s or b"x") * int(min(factor, _ATTR_BYTES / (len(value.s) + 1)))
    elif value.list.i:
        chosen = rng.choice([*range(len(value.list.i)), None])
        for at, number in enumerate(value.list.i):
            value.list.i[at] = _larger(number, factor) if chosen in (None, at) else number
    elif dims:
        dim = rng.choice(dims)
        dim.size = _larger(dim.size, factor)


def _larger(number: int, factor: float) -> int:
    return min(int(max(number, 1) * factor), 2**63 - 1)


def _more_inputs(call: _Call, factor: float) -> None:
    """Repeat the inputs of a list; without one, ask for more outputs."""
    node, op_def = call.node, global_op_registry().look_up_op_def(call.node.op)
    attrs = {arg.number_attr for arg in (*op_def.input_arg, *op_def.output_arg)} - {""}
    if not attrs:
        return
    attr = call.rng.choice(sorted(attrs))
    most = call.most_bytes / _BYTES_AN_INPUT / max(node.attr[attr].i, 1)
    times = int(min(factor, max(most, 1)))
    inputs: list[str] = []
    for of, names in _groups(node):
        inputs += names * (times if of == attr else 1)
    node.input[:] = inputs
    node.attr[attr].i *= times


def _groups(node: NodeDef) -> Iterator[tuple[str, list[str]]]:
    """The inputs by argument, with the attr that says how many they are."""
    rest = [name for name in node.input if not name.startswith("^")]
    for arg in global_op_registry().look_up_op_def(node.op).input_arg:
        count = len(node.attr[arg.type_list_attr].list.type) if arg.type_list_attr else 1
        count = node.attr[arg.number_attr].i if arg.number_attr else count
        yield arg.number_attr, rest[:count]
        rest = rest[count:]
    yield "", [name for name in node.input if name.startswith("^")]


_WAYS: list[Callable[[_Call, float], None]] = [
    *[_lengthen] * 4,
    *[_longer_strings] * 2,
    *[_larger_numbers] * 2,
    _larger_attrs,
    _more_inputs,
]
