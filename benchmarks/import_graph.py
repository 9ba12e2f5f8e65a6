"""What importing a GraphDef costs: a chain of Const, AddV2 and Identity, in microseconds a node.

    python benchmarks/import_graph.py [--sizes 10000 100000 1000000] [--tensorflow PYTHON]

Each size runs in a process of its own, which also tells its peak memory. The time a node must not
grow with the size. With a Python that has TensorFlow, its import of the same file stands beside.
"""

import argparse
import json
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from measure import clean_environment

from opkernel.graph import Graph, GraphImporter, ImportOptions, load_graph_def
from opkernel.proto import GraphDef

SIZES = (10_000, 100_000, 1_000_000)
_TENSORFLOW = """
import json, sys, time
import tensorflow as tf
tf1 = tf.compat.v1
start = time.perf_counter()
graph_def = tf1.GraphDef.FromString(open(sys.argv[1], 'rb').read())
parsed = time.perf_counter()
with tf.Graph().as_default():
    tf1.import_graph_def(graph_def, name='')
print(json.dumps({'parse': parsed - start, 'import': time.perf_counter() - parsed}))
"""


def chain(size: int) -> GraphDef:
    """A chain in which every third node is a Const, an AddV2 or an Identity."""
    graph_def = GraphDef()
    graph_def.versions.producer = 1882
    last = ""
    for index in range(size):
        kind = ("Const", "AddV2", "Identity")[index % 3]
        node = graph_def.node.add(name=f"layer_{index // 100}/node_{index}", op=kind)
        if kind == "Const":
            node.attr["dtype"].type = 1
            value = node.attr["value"].tensor
            value.dtype = 1
            value.tensor_shape.SetInParent()
            value.float_val.append(float(index))
            last = last or node.name
            constant = node.name
            continue
        node.attr["T"].type = 1
        node.input.extend([last, constant] if kind == "AddV2" else [last])
        last = node.name
    return graph_def


def measure(path: str) -> dict[str, float]:
    """Seconds for parsing, importing, exporting and inferring shapes; peak memory in bytes."""
    start = time.perf_counter()
    graph_def = load_graph_def(path)
    parsed = time.perf_counter()
    graph = Graph()
    importer = GraphImporter(graph, graph_def, ImportOptions())
    importer.prepare()
    importer.commit()
    imported = time.perf_counter()
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    graph.as_graph_def()
    exported = time.perf_counter()
    last = next(op for op in reversed(graph.get_operations()) if op.inputs)
    last.outputs[0].shape.as_list()  # of all that it depends on: the whole chain
    inferred = time.perf_counter()
    return {
        "nodes": len(graph.get_operations()),
        "parse": parsed - start,
        "import": imported - parsed,
        "export": exported - imported,
        "shapes": inferred - exported,
        "peak": peak,
    }


def run(*command: str) -> dict[str, float]:
    """What a process prints as JSON."""
    result = subprocess.run(command, env=clean_environment(), check=True, capture_output=True)
    found: dict[str, float] = json.loads(result.stdout.splitlines()[-1])
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sizes", type=int, nargs="+", default=SIZES)
    parser.add_argument("--tensorflow", help="a Python that has TensorFlow")
    parser.add_argument("--measure", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.measure:
        print(json.dumps(measure(arguments.measure)))
        return
    parts = ("parse", "import", "export", "shapes")
    print(f"{'nodes':>10}" + "".join(f"{part + ' us/node':>16}" for part in parts) + "  bytes/node")
    for size in arguments.sizes:
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder, "chain.pb")
            path.write_bytes(chain(size).SerializeToString())
            found = run(sys.executable, __file__, "--measure", str(path))
            columns = "".join(f"{found[part] / size * 1e6:16.2f}" for part in parts)
            print(f"{size:10}{columns}{found['peak'] / size:12.0f}")
            if arguments.tensorflow:
                other = run(arguments.tensorflow, "-c", _TENSORFLOW, str(path))
                columns = "".join(f"{other[part] / size * 1e6:16.2f}" for part in parts[:2])
                print(f"{'TensorFlow':>10}{columns}")


if __name__ == "__main__":
    main()
