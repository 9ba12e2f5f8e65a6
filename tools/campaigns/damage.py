"""Ways to damage a GraphDef: its bytes, its nodes, its constants."""

import random
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from opkernel.proto import AttrValue, GraphDef, NodeDef, TensorProto

__all__ = ["EXTREMES", "HOSTILE", "MUTATIONS", "NODE_CHANGES", "break_nodes"]

EXTREMES = [-1, 0, 1, 2**31 - 1, -(2**31), 2**62, -(2**63), 2**63 - 1]
HOSTILE = ["", "a b", "\n", "x;y", "é", "\x1b[2J", "'; import os; '", '"""', "</script>", "plan"]
"""Text that is no name of a node, or that a program, page or terminal would take for its own."""

_TYPES = [0, 1, 3, 4, 7, 9, 10, 14, 19, 20, 21, 101, 9999]
_FLOATS = [0.0, -0.0, 1.0, -1.5, 1e30, 1e-40, float("inf"), float("-inf"), float("nan")]
_INTS = [0, 1, -1, 2, 3, 5, 127, -128, 2**31 - 1, -(2**31)]

NodeChange = Callable[[GraphDef, random.Random], None]


def flip_bits(data: bytes, rng: random.Random) -> bytes:
    damaged = bytearray(data)
    for _ in range(rng.choice([1, 1, 2, 8])):
        damaged[rng.randrange(len(damaged))] ^= 1 << rng.randrange(8)
    return bytes(damaged)


def cut_off(data: bytes, rng: random.Random) -> bytes:
    return data[: rng.randrange(len(data))]


def insert_bytes(data: bytes, rng: random.Random) -> bytes:
    at = rng.randrange(len(data))
    return data[:at] + rng.randbytes(rng.choice([1, 2, 5])) + data[at:]


def break_nodes(data: bytes, rng: random.Random) -> bytes:
    graph_def = GraphDef.FromString(data)
    for _ in range(rng.choice([1, 1, 3])):
        if graph_def.node:
            rng.choice(NODE_CHANGES)(graph_def, rng)
    return graph_def.SerializeToString()


def _nodes(graph_def: GraphDef) -> list[NodeDef]:
    """The nodes of a graph and of the bodies of its functions."""
    bodies = [node for function in graph_def.library.function for node in function.node_def]
    return [*graph_def.node, *bodies]


def _rewire(graph_def: GraphDef, rng: random.Random) -> None:
    node = rng.choice(_nodes(graph_def))
    other = rng.choice(_nodes(graph_def)).name
    inputs = [other, f"{other}:{rng.choice([0, 1, 7])}", f"^{other}", "", ":", "nothing", "a:b:c"]
    if node.input and rng.random() < 0.7:
        node.input[rng.randrange(len(node.input))] = rng.choice(inputs)
    else:
        node.input.append(rng.choice(inputs))


def _change_op(graph_def: GraphDef, rng: random.Random) -> None:
    nodes = _nodes(graph_def)
    rng.choice(nodes).op = rng.choice([rng.choice(nodes).op, "NoSuchOp", "", "Merge", "_Arg"])


def _rename(graph_def: GraphDef, rng: random.Random) -> None:
    nodes = _nodes(graph_def)
    rng.choice(nodes).name = rng.choice([rng.choice(nodes).name, *HOSTILE])


def _drop(graph_def: GraphDef, rng: random.Random) -> None:
    del graph_def.node[rng.randrange(len(graph_def.node))]


def _place(graph_def: GraphDef, rng: random.Random) -> None:
    devices = ["/cpu:0", "/cpu:7", "/gpu:0", "/job:a/task:1", "/device:XLA_CPU:0", "nonsense", "/"]
    rng.choice(_nodes(graph_def)).device = rng.choice(devices)


def _change_attr(graph_def: GraphDef, rng: random.Random) -> None:
    with_attrs = [node for node in _nodes(graph_def) if node.attr]
    if not with_attrs:
        return
    node = rng.choice(with_attrs)
    name = rng.choice(sorted(node.attr))
    if rng.random() < 0.1:
        del node.attr[name]
    else:
        _change_value(node.attr[name], rng)


def _change_value(value: AttrValue, rng: random.Random) -> None:
    """Another value, mostly of the same kind."""
    kind = value.WhichOneof("value") if rng.random() < 0.8 else None
    if kind == "type":
        value.type = rng.choice(_TYPES)
    elif kind == "i":
        value.i = rng.choice(EXTREMES + _INTS)
    elif kind == "f":
        value.f = rng.choice(_FLOATS)
    elif kind == "b":
        value.b = not value.b
    elif kind == "s":
        value.s = rng.choice([*HOSTILE, "SAME", "VALID", "EXPLICIT", "NCHW"]).encode()
    elif kind == "shape":
        value.shape.dim.add(size=rng.choice(EXTREMES))
    elif kind == "tensor":
        _change_tensor(value.tensor, rng)
    elif kind == "func":
        value.func.name = rng.choice(["", "nothing", "AddV2", value.func.name + "x"])
    elif kind == "list":
        _change_list(value, rng)
    else:
        value.CopyFrom(_any_value(rng))


def _any_value(rng: random.Random) -> AttrValue:
    values = [AttrValue(), AttrValue(i=rng.choice(EXTREMES)), AttrValue(s=b"\xff\x00'\"\n")]
    values += [
        AttrValue(type=rng.choice(_TYPES)),
        AttrValue(f=rng.choice(_FLOATS)),
        AttrValue(b=True),
    ]
    return rng.choice(values)


def _change_list(value: AttrValue, rng: random.Random) -> None:
    items = value.list
    if items.i and rng.random() < 0.7:
        items.i[rng.randrange(len(items.i))] = rng.choice(EXTREMES + _INTS)
    elif items.type and rng.random() < 0.7:
        items.type[rng.randrange(len(items.type))] = rng.choice(_TYPES)
    elif items.i:
        del items.i[-1]
    elif items.type:
        items.type.append(rng.choice(_TYPES))
    else:
        items.i.append(rng.choice(EXTREMES))


def _change_content(graph_def: GraphDef, rng: random.Random) -> None:
    constants = [node for node in _nodes(graph_def) if node.op == "Const"]
    if constants:
        _change_tensor(rng.choice(constants).attr["value"].tensor, rng)


def _change_tensor(tensor: TensorProto, rng: random.Random) -> None:
    """Other values, another shape, or both, of the same type where that is a number's."""
    if rng.random() < 0.2:
        tensor.tensor_shape.dim.add(size=rng.choice(EXTREMES))
        return
    shape: Sequence[int] = [dim.size for dim in tensor.tensor_shape.dim]
    if rng.random() < 0.5 or not all(0 <= size < 1000 for size in shape):
        shape = rng.choice([[], [0], [1], [2], [3], [2, 3], [0, 2], [1, 4, 1], [2, 2, 2, 2]])
    for field in ("tensor_content", "float_val", "int_val", "int64_val", "double_val", "bool_val"):
        tensor.ClearField(field)
    del tensor.tensor_shape.dim[:]
    for size in shape:
        tensor.tensor_shape.dim.add(size=size)
    _fill(tensor, int(np.prod(shape)), rng)


def _change_to_ties(graph_def: GraphDef, rng: random.Random) -> None:
    """Few different floats in each constant: ops that sort or select show their order among equals."""
    for node in _nodes(graph_def):
        tensor = node.attr["value"].tensor
        count = int(np.prod([dim.size for dim in tensor.tensor_shape.dim]))
        if node.op != "Const" or tensor.dtype not in (1, 2) or not 1 < count < 10_000:
            continue
        few = rng.choices([-1.0, 0.0, 0.5, 1.0, 2.0], k=rng.randint(1, 3))
        for field in ("tensor_content", "float_val", "double_val"):
            tensor.ClearField(field)
        (tensor.float_val if tensor.dtype == 1 else tensor.double_val).extend(
            rng.choices(few, k=count)
        )


def _fill(tensor: TensorProto, count: int, rng: random.Random) -> None:
    """Values for the number of elements, or for fewer: the last one stands for the rest."""
    count = min(count, rng.choice([1, count, count]))
    kinds: dict[int, Any] = {
        1: tensor.float_val,
        2: tensor.double_val,
        3: tensor.int_val,
        9: tensor.int64_val,
    }
    field = kinds.get(tensor.dtype, tensor.int_val)
    field.extend(rng.choice(_FLOATS if tensor.dtype in (1, 2) else _INTS) for _ in range(count))


NODE_CHANGES: list[NodeChange] = [
    _rewire, _change_op, _rename, _drop, _place, _change_attr, _change_attr, _change_content,
    _change_content, _change_to_ties,
]  # fmt: skip
MUTATIONS = [flip_bits, cut_off, insert_bytes, *[break_nodes] * 5]
