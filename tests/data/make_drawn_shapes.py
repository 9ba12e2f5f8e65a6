"""Write `drawn_shapes.pb.xz`: what TensorFlow's shape functions say of nodes with drawn shapes, values and attrs.

    pip install tensorflow-cpu==2.21.0
    PYTHONPATH=src:. python tests/data/make_drawn_shapes.py

Nodes are those of `op_calls.pb.xz` and `recorded_calls.jsonl.xz`, and for other ops drawn ones. Each is changed at random:
a size more, less or unknown, another rank, another value or none, another attr. Of each op this keeps nodes that together
run each step of its shape function and give different answers, where opkernel answers as TensorFlow does.

The file is a GraphDef: inputs (Const, Placeholder), then the node that has them, and so on. The node has the shapes
of its outputs in the attr `_output_shapes`, or `_refused` where TensorFlow refuses it.
"""

import contextlib
import json
import lzma
import os
import random
import sys
from collections import defaultdict
from multiprocessing import get_context
from pathlib import Path
from types import FrameType
from typing import Any

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"

import numpy as np
import tensorflow as tf
from tests.ops.test_drawn_shapes import answer_of, as_attr
from tests.ops.test_shape_functions_refuse import draw_node, draw_shape_proto, draw_tensor
from tests.recorded_nodes import graph_of

import opkernel
from opkernel.errors import OpError
from opkernel.opdef import global_op_registry, in_out_types_for_node, infer_attr_from_python
from opkernel.ops.loader import all_op_names
from opkernel.proto import AttrValue, GraphDef, NodeDef
from opkernel.types import DataType, tensor_from_proto, tensor_to_proto

FOLDER = Path(__file__).parent
OPS = str(Path(opkernel.__file__).parent / "ops")
FORK = get_context("fork")
MOST_SECONDS = 40
TRIED, DRAWN, OF_ONE_ANSWER, MOST = 70, 90, 2, 12
MAX_BYTES = 500
WORDS = [b"NHWC", b"NCHW", b"NDHWC", b"SAME", b"VALID", b"EXPLICIT", b"max", b"add"]
Call = list[NodeDef]
MATRIX, NUMBER = np.ones((2, 3), np.float32), np.float32(0)
INTS = {"Tindices": DataType.DT_INT32}
WRITTEN_OUT: list[tuple[str, list[Any], dict[str, Any]]] = [
    ("XlaPad", [MATRIX, NUMBER, *np.array([[1, 0], [0, 2], [0, 1]], np.int32)], INTS),
    ("XlaPad", [MATRIX, NUMBER, *np.array([[-1, 0], [2, 2], [2, 0]], np.int32)], INTS),
    ("XlaDynamicSlice", [MATRIX, *np.array([[0, 1], [1, 2]], np.int32)], INTS),
    ("XlaDynamicUpdateSlice", [MATRIX, MATRIX[:1], np.array([1, 0], np.int32)], INTS),
]


def main() -> None:
    seeds = known_calls()
    names = sorted(all_op_names())
    kept: list[bytes] = []
    for at in range(0, len(names), 2):
        kept += in_children(names[at : at + 2], seeds)
    out = GraphDef()
    for graph in kept:
        out.MergeFromString(graph)
    (FOLDER / "drawn_shapes.pb.xz").write_bytes(
        lzma.compress(out.SerializeToString(deterministic=True), preset=9)
    )


def in_children(names: list[str], seeds: dict[str, list[Call]]) -> list[bytes]:
    """The chosen graphs of ops; of none where TensorFlow crashes."""
    kept: list[bytes] = []
    started = []
    for name in names:
        receiver, sender = FORK.Pipe(duplex=False)
        process = FORK.Process(target=send_chosen, args=(sender, name, seeds[name]))
        process.start()
        sender.close()
        started.append((receiver, process))
    for receiver, process in started:
        if receiver.poll(MOST_SECONDS):
            with contextlib.suppress(EOFError):
                kept += receiver.recv()
        process.kill()
        process.join()
    return kept


def send_chosen(sender: Any, name: str, known: list[Call]) -> None:
    sender.send(chosen(name, known))


def known_calls() -> dict[str, list[Call]]:
    found: dict[str, list[Call]] = defaultdict(list)
    graph = GraphDef.FromString(lzma.decompress((FOLDER / "op_calls.pb.xz").read_bytes()))
    nodes = {node.name: node for node in graph.node}
    for node in graph.node:
        inputs = [nodes[name] for name in node.input if name in nodes]
        if len(inputs) == len(node.input) and all(one.op == "Const" for one in inputs):
            found[node.op].append([*inputs, node])
    text = lzma.decompress((FOLDER / "recorded_calls.jsonl.xz").read_bytes()).decode()
    for line in text.splitlines():
        if len(line) < MAX_BYTES:
            call = json.loads(line)
            found[call["op"]].append([*graph_of(call, are_known=True).node])
    for op, values, attrs in WRITTEN_OUT:
        node = NodeDef(op=op)
        for key, value in attrs.items():
            node.attr[key].CopyFrom(infer_attr_from_python(value))
        node.attr["T"].type = DataType.DT_FLOAT
        found[op].append([*map(constant, values), node])
    return found


def constant(value: Any) -> NodeDef:
    node = NodeDef(op="Const")
    node.attr["value"].tensor.CopyFrom(tensor_to_proto(value))
    node.attr["dtype"].type = node.attr["value"].tensor.dtype
    return node


def chosen(name: str, known: list[Call]) -> list[bytes]:
    """Graphs of nodes of an op, each of which does something that those before do not."""
    print(name, file=sys.stderr, flush=True)
    rng = random.Random(name)
    calls = known or drawn(rng, name)
    kept: list[bytes] = []
    done: dict[Any, int] = defaultdict(int)
    for number in range(TRIED if calls else 0):
        if number == TRIED // 3 and len(done) < 3:
            break
        graph = changed(rng, rng.choice(calls), 0 if number < 2 else rng.choice([1, 1, 2]))
        does = features(graph)
        if does is not None and any(done[one] < most for one, most in does.items()):
            for one in does:
                done[one] += 1
            kept.append(graph.SerializeToString())
            if len(kept) == MOST:
                break
    return kept


def drawn(rng: random.Random, name: str) -> list[Call]:
    """Nodes of an op on placeholders and constants, first of all those that TensorFlow accepts."""
    op_def = global_op_registry().look_up_op_def(name)
    right: list[Call] = []
    wrong: list[Call] = []
    for _ in range(DRAWN):
        node = draw_node(rng, op_def)
        try:
            types, _ = in_out_types_for_node(node, op_def)
        except OpError:
            continue
        if len(types) > 40 or len(right) >= 8:
            continue
        inputs = [placeholder(rng, DataType(dtype)) for dtype in types]
        call = [*inputs, node]
        found = tensorflow_says(linked(call))
        if found is not None:
            (right if found != "error" else wrong).append(call)
    return right or wrong


def placeholder(rng: random.Random, dtype: DataType) -> NodeDef:
    value = None if rng.random() < 0.6 or dtype.is_ref else draw_tensor(rng, dtype)
    if value is not None and value.size < 9 and dtype.is_integer:
        node = NodeDef(op="Const")
        node.attr["value"].tensor.CopyFrom(tensor_to_proto(value, dtype))
    else:
        node = NodeDef(op="Placeholder")
        node.attr["shape"].shape.CopyFrom(draw_shape_proto(rng))
    node.attr["dtype"].type = dtype
    return node


def linked(call: Call) -> GraphDef:
    """A graph of a node and its inputs, with short names."""
    graph = GraphDef(node=call)
    for number, node in enumerate(graph.node[:-1]):
        node.name = f"i{number}"
    last = graph.node[-1]
    last.name = "n"
    last.input[:] = [node.name for node in graph.node[:-1]]
    return graph


def changed(rng: random.Random, call: Call, times: int) -> GraphDef:
    graph = linked(call)
    for node in graph.node[:-1]:
        if node.op == "Const" and (rng.random() < 0.5 or not is_small(node)):
            hide_value(node)
    for _ in range(times):
        node = rng.choice([*graph.node, graph.node[-1]])
        if node.op == "Placeholder" and len(graph.node) > 1 and node is not graph.node[-1]:
            change_shape(rng, node.attr["shape"].shape)
        elif node is not graph.node[-1]:
            change_value(rng, node)
        elif node.attr:
            change_attr(rng, node.attr[rng.choice(sorted(node.attr))])
    return graph


def is_small(node: NodeDef) -> bool:
    return node.attr["value"].tensor.ByteSize() < 60


def hide_value(node: NodeDef) -> None:
    shape = node.attr["value"].tensor.tensor_shape
    node.op = "Placeholder"
    node.attr["shape"].shape.CopyFrom(shape)
    del node.attr["value"]


def change_shape(rng: random.Random, shape: Any) -> None:
    way = rng.random()
    if way < 0.15:
        del shape.dim[:]
        shape.unknown_rank = True
    elif way < 0.25 and not shape.unknown_rank:
        shape.dim.add(size=rng.choice([1, 2, -1]))
    elif shape.dim and way < 0.35:
        del shape.dim[rng.randrange(len(shape.dim))]
    elif shape.dim:
        dim = rng.choice(shape.dim)
        dim.size = rng.choice([-1, -1, dim.size + 1, max(0, dim.size - 1), dim.size * 2])
        dim.size = max(dim.size, -1)


def change_value(rng: random.Random, node: NodeDef) -> None:
    dtype = DataType(node.attr["dtype"].type)
    value = tensor_from_proto(node.attr["value"].tensor)
    if dtype not in (DataType.DT_INT32, DataType.DT_INT64) or not value.size:
        hide_value(node)
        return
    value = value.copy()
    place = rng.randrange(value.size)
    value.reshape(-1)[place] = max(
        -(2**31), min(2**31 - 1, int(value.reshape(-1)[place]) + rng.choice([-1, 1, 1, 3]))
    )
    if value.ndim == 1 and rng.random() < 0.2:
        value = value[:-1]
    node.attr["value"].tensor.CopyFrom(tensor_to_proto(value, dtype))


def change_attr(rng: random.Random, attr: AttrValue) -> None:
    kind = attr.WhichOneof("value")
    if kind == "i":
        attr.i = max(-(2**40), min(2**40, attr.i + rng.choice([-1, 1, 1, 2])))
    elif kind == "b":
        attr.b = not attr.b
    elif kind == "s" and attr.s in WORDS:
        attr.s = rng.choice(WORDS)
    elif kind == "shape":
        change_shape(rng, attr.shape)
    elif kind == "list" and attr.list.i:
        place = rng.randrange(len(attr.list.i))
        attr.list.i[place] = max(
            -(2**40), min(2**40, attr.list.i[place] + rng.choice([-1, 1, 1, 2]))
        )
        if rng.random() < 0.1:
            del attr.list.i[-1]
    elif kind == "list" and attr.list.shape:
        change_shape(rng, rng.choice(attr.list.shape))


def tensorflow_says(graph: GraphDef) -> Any:
    """The shapes of a node, `"error"`, or None where the node is of no use."""
    try:
        graph_def = tf.compat.v1.GraphDef.FromString(graph.SerializeToString())
        with tf.Graph().as_default() as built:
            tf.import_graph_def(graph_def, name="")
            shapes = [tensor.shape for tensor in built.get_operation_by_name("n").outputs]
    except ValueError as error:
        return None if "NodeDef" in str(error) and "attr" in str(error) else "error"
    except Exception:
        return None
    return [None if shape.rank is None else shape.as_list() for shape in shapes]


def features(graph: GraphDef) -> dict[Any, int] | None:
    """What a node's shape function does and says, and of how many nodes that is worth keeping.

    None where opkernel says something else than TensorFlow. Adds TensorFlow's answer to the node.
    """
    expected = tensorflow_says(graph)
    if expected is None or graph.ByteSize() > MAX_BYTES * 2:
        return None
    steps: set[Any] = set()

    def trace(frame: FrameType, event: str, arg: Any) -> Any:
        code = frame.f_code
        if not code.co_filename.startswith(OPS):
            return None
        last = -1

        def local(frame: FrameType, event: str, arg: Any) -> Any:
            nonlocal last
            steps.add((code.co_filename, last, frame.f_lineno))
            last = frame.f_lineno
            return local

        return local(frame, event, arg)

    sys.settrace(trace)
    try:
        answer = answer_of(graph)
    except Exception as error:
        answer = repr(error)
    finally:
        sys.settrace(None)
    if answer != expected:
        print(
            "DIFFERS",
            graph.node[-1].op,
            expected,
            answer,
            str(graph).replace("\n", " ")[:1500],
            file=sys.stderr,
        )
        return None
    graph.node[-1].MergeFrom(as_attr(expected))
    return dict.fromkeys(steps, 1) | {
        json.dumps(expected): OF_ONE_ANSWER if expected != "error" else 1
    }


if __name__ == "__main__":
    main()
