"""Write `recorded_shapes.jsonl.xz`: what TensorFlow's shape functions say of the calls in `recorded_calls.jsonl.xz`.

    pip install tensorflow-cpu==2.21.0
    PYTHONPATH=src:. python tests/data/make_recorded_shapes.py

A line of the file is of the call on the same line: the shapes of its outputs where its inputs are constants, then where
these are placeholders of the same shapes. A shape is a list with null for what is not known; `"error"` is a refusal,
and null instead of both a crash of TensorFlow.
"""

import functools
import json
import lzma
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"

import tensorflow as tf
from tests.recorded_nodes import graph_of

FOLDER = Path(__file__).parent
CALLS, OUT = FOLDER / "recorded_calls.jsonl.xz", FOLDER / "recorded_shapes.jsonl.xz"


def main() -> None:
    lines: list[bytes] = []
    while len(lines) < len(calls()):
        child = [sys.executable, __file__, str(len(lines))]
        lines += subprocess.run(child, stdout=subprocess.PIPE, check=False).stdout.splitlines()
        if len(lines) < len(calls()):
            lines.append(b"null")
    OUT.write_bytes(lzma.compress(b"".join(line + b"\n" for line in lines), preset=9))


@functools.cache
def calls() -> list[str]:
    return lzma.decompress(CALLS.read_bytes()).decode().splitlines()


def ask(start: int) -> None:
    """Print the lines from a number on, until TensorFlow crashes."""
    for line in calls()[start:]:
        shapes = [shapes_of(json.loads(line), are_known=are_known) for are_known in (True, False)]
        print(json.dumps(shapes, separators=(",", ":")), flush=True)


def shapes_of(call: dict[str, Any], *, are_known: bool) -> Any:
    graph_def = tf.compat.v1.GraphDef.FromString(
        graph_of(call, are_known=are_known).SerializeToString()
    )
    with tf.Graph().as_default() as graph:
        try:
            tf.import_graph_def(graph_def, name="")
        except ValueError:
            return "error"
        outputs = graph.get_operation_by_name("call").outputs
        shapes = [tensor.shape for tensor in outputs]
        return [None if shape.rank is None else shape.as_list() for shape in shapes]


if __name__ == "__main__":
    ask(int(sys.argv[1])) if sys.argv[1:] else main()
