"""What inferring the shapes of a graph costs, in thousands of nodes a second.

    python benchmarks/infer_shapes.py [--sizes 1000 10000 100000 1000000] [--kinds chain ...]

Kinds of graphs: `chain` of Const, AddV2 and Identity; `mix` of Reshape to a constant, AddV2 and
Identity; `sizes`, in which the sizes for each Reshape are taken from the Shape of its input, sliced
and packed; `loops`, each around a chain of 100 nodes
of which one dimension changes from turn to turn. Each is measured in a process of its own, once
with `graph.infer_shapes()` and once as tensors ask for their shapes. The rate must not fall with
the size; 50,000 nodes a second are the least for `chain` and `mix`.
"""

import argparse
import json
import resource
import subprocess
import sys
import time
from collections.abc import Callable

from import_graph import chain
from measure import clean_environment

from opkernel.graph import Graph, GraphImporter, ImportOptions
from opkernel.proto import GraphDef, NodeDef
from opkernel.types import DataType

SIZES = (1_000, 10_000, 100_000, 1_000_000)
_LOOP_BODY = 100


def _node(graph_def: GraphDef, op: str, *inputs: str, **types: DataType) -> NodeDef:
    node = graph_def.node.add(name=f"node_{len(graph_def.node)}", op=op, input=inputs)
    for name, dtype in types.items():
        node.attr[name].type = dtype
    return node


def _integers(graph_def: GraphDef, *values: int) -> str:
    node = _node(graph_def, "Const", dtype=DataType.DT_INT32)
    tensor = node.attr["value"].tensor
    tensor.dtype = DataType.DT_INT32
    tensor.tensor_shape.dim.add(size=len(values))
    tensor.int_val.extend(values)
    return node.name


def _placeholder(graph_def: GraphDef, *sizes: int) -> str:
    node = _node(graph_def, "Placeholder", dtype=DataType.DT_FLOAT)
    for size in sizes:
        node.attr["shape"].shape.dim.add(size=size)
    return node.name


def mix(size: int) -> GraphDef:
    """A chain in which every third node is a Reshape, an AddV2 or an Identity."""
    graph_def = GraphDef()
    graph_def.versions.producer = 1882
    floats = {"T": DataType.DT_FLOAT}
    last = _placeholder(graph_def, 8, 4)
    targets = [_integers(graph_def, 4, -1), _integers(graph_def, 8, -1)]
    while len(graph_def.node) < size:
        targets.reverse()
        last = _node(graph_def, "Reshape", last, targets[0], **floats).name
        last = _node(graph_def, "AddV2", last, last, **floats).name
        last = _node(graph_def, "Identity", last, **floats).name
    return graph_def


def sizes(size: int) -> GraphDef:
    """A chain in which every fifth node is a Reshape that keeps the first dimension."""
    graph_def = GraphDef()
    graph_def.versions.producer = 1882
    last = _placeholder(graph_def, -1, 8, 4)
    zero, one, rest = (_integers(graph_def, value) for value in (0, 1, 32))
    scalar = _node(graph_def, "Squeeze", rest, T=DataType.DT_INT32).name
    while len(graph_def.node) < size:
        floats, ints = {"T": DataType.DT_FLOAT}, {"T": DataType.DT_INT32}
        shape = _node(graph_def, "Shape", last, **floats).name
        batch = _node(graph_def, "StridedSlice", shape, zero, one, one, **ints)
        batch.attr["Index"].type = DataType.DT_INT32
        batch.attr["shrink_axis_mask"].i = 1
        packed = _node(graph_def, "Pack", batch.name, scalar, **ints)
        packed.attr["N"].i = 2
        last = _node(graph_def, "Reshape", last, packed.name, **floats).name
        last = _node(graph_def, "Relu", last, **floats).name
    return graph_def


def loops(size: int) -> GraphDef:
    """Loops one after the other, each of which grows its variable."""
    graph_def = GraphDef()
    graph_def.versions.producer = 1882
    floats = {"T": DataType.DT_FLOAT}
    last = _placeholder(graph_def, 2, 8)
    axis = _node(graph_def, "Squeeze", _integers(graph_def, 0), T=DataType.DT_INT32).name
    while len(graph_def.node) < size:
        enter = _node(graph_def, "Enter", last, **floats)
        enter.attr["frame_name"].s = enter.name.encode()
        head = _node(graph_def, "Merge", enter.name, **floats)
        head.attr["N"].i = 2
        inner = _node(graph_def, "Identity", head.name, **floats).name
        for _ in range(_LOOP_BODY):
            inner = _node(graph_def, "Relu", inner, **floats).name
        grown = _node(graph_def, "ConcatV2", inner, inner, axis, **floats)
        grown.attr["N"].i = 2
        head.input.append(_node(graph_def, "NextIteration", grown.name, **floats).name)
        last = _node(graph_def, "Exit", inner, **floats).name
    return graph_def


KINDS: dict[str, Callable[[int], GraphDef]] = {
    "chain": chain,
    "mix": mix,
    "sizes": sizes,
    "loops": loops,
}


def _load(graph_def: GraphDef) -> Graph:
    graph = Graph()
    importer = GraphImporter(graph, graph_def, ImportOptions())
    importer.prepare()
    importer.commit()
    return graph


def measure(kind: str, size: int) -> dict[str, float]:
    """Thousands of nodes a second for the whole graph and tensor by tensor; the peak memory."""
    graph = _load(KINDS[kind](size))
    nodes = len(graph.get_operations())
    start = time.perf_counter()
    graph.infer_shapes()
    whole = time.perf_counter() - start
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    start = time.perf_counter()
    for op in reversed(graph.get_operations()):
        if op.outputs:
            op.outputs[0].shape  # noqa: B018 - asking is what is measured
    asked = time.perf_counter() - start
    return {"whole": nodes / whole / 1000, "asked": nodes / asked / 1000, "bytes": peak / nodes}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sizes", type=int, nargs="+", default=SIZES)
    parser.add_argument("--kinds", nargs="+", choices=KINDS, default=list(KINDS))
    parser.add_argument("--measure", nargs=2, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.measure:
        kind, size = arguments.measure
        print(json.dumps(measure(kind, int(size))))
        return
    print(f"{'':10}{'nodes':>10}{'infer_shapes':>16}{'tensor.shape':>16}  (1,000 nodes/s)")
    for kind in arguments.kinds:
        for size in arguments.sizes:
            result = subprocess.run(
                [sys.executable, __file__, "--measure", kind, str(size)],
                env=clean_environment(),
                check=True,
                capture_output=True,
            )
            found = json.loads(result.stdout.splitlines()[-1])
            print(f"{kind:10}{size:10}{found['whole']:16.1f}{found['asked']:16.1f}")


if __name__ == "__main__":
    main()
