"""Write `recorded_gradients.jsonl.xz`: calls among `recorded_calls.jsonl.xz` with gradients that TensorFlow gives.

    pip install tensorflow-cpu==2.21.0
    PYTHONPATH=src:. python tests/data/make_recorded_gradients.py

Of each op this keeps a few calls that together run each step of its gradient and have each value of its attrs, where
opkernel answers as TensorFlow does. A line is a call with its gradients, to 6 digits.
"""

import json
import lzma
import os
import sys
from collections import Counter
from pathlib import Path
from types import FrameType
from typing import Any

os.environ |= {"TF_CPP_MIN_LOG_LEVEL": "3", "TF_ENABLE_ONEDNN_OPTS": "0"}

import tensorflow as tf
from tests.ops.gradients import test_recorded_gradients as ours
from tests.recorded_nodes import arrays, graph_of

import opkernel

FOLDER = Path(__file__).parent
OPS = str(Path(opkernel.__file__).parent / "ops")
MOST_OF_OP, MOST_BYTES = 6, 1500
tf1 = tf.compat.v1


def main() -> None:
    text = lzma.decompress((FOLDER / "recorded_calls.jsonl.xz").read_bytes()).decode()
    seen: set[Any] = set()
    of_op: Counter[str] = Counter()
    kept: list[str] = []
    for line in text.splitlines():
        call = json.loads(line)
        if len(line) > MOST_BYTES or of_op[call["op"]] == MOST_OF_OP or not is_fit(call):
            continue
        does = features(call)
        if does and not does <= seen:
            seen |= does
            of_op[call["op"]] += 1
            del call["outputs"]
            kept.append(json.dumps(call, separators=(",", ":"), sort_keys=True) + "\n")
    packed = lzma.compress("".join(kept).encode(), preset=9)
    (FOLDER / "recorded_gradients.jsonl.xz").write_bytes(packed)


def is_fit(call: Any) -> bool:
    """Whether inputs and outputs may have gradients, and some have elements."""
    for values in (call["inputs"], call.get("outputs", [])):
        found = [one for one in arrays(values) if one["dtype"] in ours.DIFFERENTIABLE]
        if not any(one.get("b64") for one in found):
            return False
    return True


def tensorflow_gradients(call: Any) -> ours.Gradients | None:
    """None where TensorFlow has no gradient."""
    graph_def = tf1.GraphDef.FromString(graph_of(call, are_known=True).SerializeToString())
    try:
        with tf.Graph().as_default() as graph:
            tf.import_graph_def(graph_def, name="")
            op = graph.get_operation_by_name("call")
            ys = [y for y in op.outputs if y.dtype.name in ours.DIFFERENTIABLE]
            xs = [x for x in op.inputs if x.dtype.name in ours.DIFFERENTIABLE]
            by = [tf.constant(ours.weights(y.shape.as_list()), y.dtype) for y in ys]
            found = [
                None if one is None else tf.convert_to_tensor(one)
                for one in tf1.gradients(ys, xs, by)
            ]
            values = iter(tf1.Session().run([one for one in found if one is not None]))
    except Exception:
        return None
    return [None if one is None else rounded(ours.numbers(next(values))) for one in found]


def rounded(values: list[float]) -> list[float]:
    return [float(f"{value:.6g}") for value in values]


def features(call: Any) -> set[Any] | None:
    """Steps of the code of ops and attrs; None where there is no gradient or opkernel's is another.

    Adds the gradients to the call.
    """
    expected = tensorflow_gradients(call)
    if expected is None:
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
        found = ours.gradients_of(call)
    except Exception as error:
        sys.settrace(None)
        print("FAILS", call["op"], repr(error)[:200], flush=True)
        return None
    finally:
        sys.settrace(None)
    try:
        ours.check_gradients(found, expected)
    except AssertionError:
        print("DIFFERS", call["op"], call["attrs"], found, expected, flush=True)
        return None
    call["gradients"] = expected
    return steps | {(call["op"], name, json.dumps(value)) for name, value in call["attrs"].items()}


if __name__ == "__main__":
    main()
