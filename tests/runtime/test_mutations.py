"""Damaged graphs: each gives an OpError or a correct run, quickly and in bounded memory.

Ten thousand seeded mutations of graphs: bytes flipped, cut off and inserted; nodes, inputs and attrs
exchanged, dropped and set to extreme values.
"""

import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import opkernel
import opkernel.proto
import opkernel.types
from opkernel.errors import OpError
from opkernel.graph import Graph, import_graph_def
from opkernel.proto import GraphDef, NodeDef
from opkernel.types import DataType

DATA = Path(__file__).parent.parent / "data"
ROUNDS = 100
MUTATIONS_A_ROUND = 100
EXTREMES = [-1, 0, 1, 2**31 - 1, -(2**31), 2**62, -(2**63), 2**63 - 1]


def small_graph() -> bytes:
    """A graph of ops whose cost and size the data decides."""
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
    rng.choice(nodes).name = rng.choice([rng.choice(nodes).name, "", "a b", "\n", "x;y", "é"])


def _change_attr(graph_def: GraphDef, rng: random.Random) -> None:
    node = rng.choice([node for node in _nodes(graph_def) if node.attr])
    value = node.attr[rng.choice(sorted(node.attr))]
    change = rng.randrange(5)
    if change == 0:
        value.Clear()
    elif change == 1:
        value.type = rng.choice([0, 1, 3, 7, 9, 21, 101, 9999])
    elif change == 2:
        value.i = rng.choice(EXTREMES)
    elif value.HasField("tensor"):
        dims = value.tensor.tensor_shape.dim
        dims.add(size=rng.choice(EXTREMES))
    else:
        value.s = b"\xff\x00'\"\n"


def _change_content(graph_def: GraphDef, rng: random.Random) -> None:
    node = rng.choice([node for node in _nodes(graph_def) if node.op == "Const"] or [None])
    if node is None:
        return
    tensor = node.attr["value"].tensor
    count = max(1, len(tensor.tensor_content) // 4)
    values = [rng.choice(EXTREMES[:5]) for _ in range(count)]
    tensor.tensor_content = np.array(values).astype(np.int32).tobytes()


NODE_CHANGES: list[Callable[[GraphDef, random.Random], None]] = [
    _rewire,
    _change_op,
    _rename,
    _change_attr,
    _change_content,
]
MUTATIONS = [flip_bits, cut_off, insert_bytes, break_nodes, break_nodes]


def load_and_run(data: bytes) -> None:
    """Import a GraphDef and run all that nothing else consumes, within limits."""
    try:
        graph_def = GraphDef.FromString(data)
    except opkernel.proto.DecodeError:
        return  # load_graph tells this as an OpError: tests/graph
    with Graph().as_default() as graph:
        import_graph_def(graph_def, name="", graph=graph)
        session = opkernel.Session(graph, memory_limit_bytes=1 << 24)
        options = opkernel.RunOptions(timeout_in_ms=2000)
        ends = [op for op in graph.get_operations() if not any(t.consumers() for t in op.outputs)]
        feeds = {t: _value(t) for op in graph.get_operations() for t in op.outputs if _is_input(op)}
        session.run(ends, feeds, options)


def _is_input(op: opkernel.Operation) -> bool:
    return op.type == "Placeholder"


def _value(tensor: opkernel.Tensor) -> Any:
    sizes = tensor.shape.as_list() if tensor.shape.rank is not None else []
    return np.zeros([2 if size is None else min(size, 64) for size in sizes])


@pytest.mark.parametrize("sample", ["small", "functions"])
@pytest.mark.parametrize("round_number", range(ROUNDS // 2))
def test_a_damaged_graph_gives_an_op_error_or_runs(sample: str, round_number: int) -> None:
    data = SAMPLES[sample]
    rng = random.Random(f"{sample} {round_number}")
    for number in range(MUTATIONS_A_ROUND):
        damaged = rng.choice(MUTATIONS)(data, rng)
        try:
            load_and_run(damaged)
        except OpError:
            continue
        except BaseException as error:  # the message must say which mutation it was
            raise AssertionError(f"mutation {number} of round {round_number}") from error


SAMPLES = {
    "small": small_graph(),
    "functions": (DATA / "graph_with_functions.pb").read_bytes(),
}


@pytest.mark.parametrize("sample", sorted(SAMPLES))
def test_the_undamaged_graph_runs(sample: str) -> None:
    load_and_run(SAMPLES[sample])
