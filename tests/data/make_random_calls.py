"""Write `random_calls.json.xz`: what TensorFlow's random ops give, several steps of one session each.

    pip install tensorflow-cpu==2.21.0
    python tests/data/make_random_calls.py

A call is `{"op", "inputs", "attrs", "steps"}`: inputs and outputs are `[dtype, shape, values]`, where
values are numbers, floats as text in hexadecimal; a type attr is `{"type": NAME}`; each step is a list of
outputs. An input `"generator"` is the handle of a variable that holds the state [1, 2, 3].
"""

import json
import lzma
import os
from pathlib import Path
from typing import Any

os.environ |= {"TF_CPP_MIN_LOG_LEVEL": "3", "TF_ENABLE_ONEDNN_OPTS": "0"}

import numpy as np
import tensorflow as tf

tf1 = tf.compat.v1

STEPS = 3
FLOATS = ("float16", "bfloat16", "float32", "float64")
SEEDS = {"seed": 7, "seed2": -5}


def i32(*values: int) -> Any:
    return np.array(values, np.int32)


def fills() -> Any:
    """Uniform, normal and truncated numbers, integers."""
    for dtype in FLOATS:
        for op in ("RandomUniform", "RandomStandardNormal", "TruncatedNormal"):
            yield op, {"shape": i32(3, 5)}, {"dtype": {"type": dtype}, **SEEDS}
        for op in ("StatelessRandomUniform", "StatelessRandomNormal", "StatelessTruncatedNormal"):
            yield op, {"shape": i32(7), "seed": np.array([5, -6])}, {"dtype": {"type": dtype}}
    for kind in (np.int32, np.int64):
        bounds = {"minval": kind(-7), "maxval": kind(300)}
        yield "RandomUniformInt", {"shape": i32(9), **bounds}, SEEDS


FAMILIES = [fills]


def encoded(array: Any) -> Any:
    array = np.asarray(array)
    flat = array.reshape(-1)
    if array.dtype.kind in "fV":
        return [str(array.dtype), array.shape, [float(x).hex() for x in flat.astype(np.float64)]]
    return [str(array.dtype), array.shape, flat.tolist()]


def recorded(op: str, inputs: dict[str, Any], attrs: dict[str, Any]) -> dict[str, Any]:
    with tf.Graph().as_default() as graph:
        given = {name: tensor_of(value) for name, value in inputs.items()}
        types = {k: tf.as_dtype(v["type"]) if isinstance(v, dict) else v for k, v in attrs.items()}
        result = getattr(tf.raw_ops, op)(**given, **types)
        outputs = [*result] if isinstance(result, tuple | list) else [result]
        with tf1.Session(graph=graph) as session:
            session.run(tf1.global_variables_initializer())
            steps = [[encoded(x) for x in session.run(outputs)] for _ in range(STEPS)]
    stored = {k: v if isinstance(v, str) else encoded(v) for k, v in inputs.items()}
    return {"op": op, "inputs": stored, "attrs": attrs, "steps": steps}


def tensor_of(value: Any) -> Any:
    if isinstance(value, str):
        return tf.Variable([1, 2, 3], dtype=tf.int64).handle
    return tf.constant(value)


if __name__ == "__main__":
    calls = [recorded(*call) for family in FAMILIES for call in family()]
    text = json.dumps(calls, separators=(",", ":")).encode()
    Path(__file__).with_name("random_calls.json.xz").write_bytes(lzma.compress(text))
