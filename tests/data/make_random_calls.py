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


def parameters() -> Any:
    """Gamma, Poisson, binomial, bounded normal and multinomial numbers."""
    for kind in (np.float16, np.float32, np.float64):
        rates = np.array([0.3, 1, 9.9, 40], kind)
        yield "RandomGamma", {"shape": i32(5), "alpha": rates}, SEEDS
        yield "RandomPoissonV2", {"shape": i32(5), "rate": rates}, SEEDS
        chances = {"counts": np.array([10, 1000], kind), "probs": np.array([0.3, 0.7], kind)}
        shape = {"shape": i32(9, 2), "seed": i32(1, 2)}
        yield "StatelessRandomBinomial", {**shape, **chances}, {}
        yield "StatelessRandomGammaV2", {**shape, "alpha": rates[:2]}, {}
        yield "StatelessRandomPoisson", {**shape, "lam": rates[2:]}, {"dtype": {"type": "int32"}}
        logits = np.array([[0, 1, 2, -np.inf], [5, 1, -1, 0]], kind)
        yield "Multinomial", {"logits": logits, "num_samples": np.int32(20)}, SEEDS
        for low, high in ((-2, 2), (-0.1, 0.1), (2, np.inf), (-np.inf, -1)):
            means, deviations = np.zeros(2, kind), np.ones((), kind)
            bounds = {"minvals": kind(low), "maxvals": kind(high)}
            given = {"shape": i32(2, 9), "means": means, "stdevs": deviations, **bounds}
            yield "ParameterizedTruncatedNormal", given, SEEDS
            given = {**shape, "means": means, "stddevs": deviations, **bounds}
            yield "StatelessParameterizedTruncatedNormal", given, {}


def orders() -> Any:
    """Shuffles, candidates, parts of images."""
    yield "RandomShuffle", {"value": np.arange(40)}, SEEDS
    yield "RandomShuffle", {"value": np.arange(40).reshape(20, 2)}, SEEDS
    indices = {"index": np.arange(8), "seed": i32(5, -1, 9), "max_index": np.int64(7)}
    yield "RandomIndexShuffle", indices, {"rounds": 4}
    true = {"true_classes": np.array([[0, 5], [2, 7], [1, 1]])}
    size = {"num_true": 2, "num_sampled": 6, **SEEDS}
    for unique in (True, False):
        attrs = {**size, "unique": unique}
        for name in ("Uniform", "LogUniform", "LearnedUnigram", "ThreadUnsafeUnigram"):
            yield f"{name}CandidateSampler", true, {**attrs, "range_max": 9}
        weights = {"unigrams": [0.1, 0.5, 3.0, 7.0, 0.2, 1.0, 1.0, 2.0], "num_reserved_ids": 1}
        given = {**attrs, **weights, "range_max": 9, "distortion": 0.75}
        yield "FixedUnigramCandidateSampler", true, given
    yield "AllCandidateSampler", true, {**size, "num_sampled": 8, "unique": True}
    image = {
        "image_size": i32(300, 400, 3),
        "bounding_boxes": np.array([[[0.1, 0.2, 0.5, 0.9]]], np.float32),
    }
    yield "SampleDistortedBoundingBox", image, {"min_object_covered": 0.5, **SEEDS}
    points = {"dim": np.int32(8), "num_results": np.int32(5), "skip": np.int32(3)}
    yield "SobolSample", points, {}


def generators() -> Any:
    """Numbers of a variable."""
    given = {"resource": "generator", "algorithm": np.int64(1), "shape": i32(5)}
    for op in ("StatefulUniform", "StatefulStandardNormalV2", "StatefulTruncatedNormal"):
        for dtype in FLOATS:
            yield op, given, {"dtype": {"type": dtype}}
    yield "StatefulUniformFullInt", given, {}
    yield "StatefulUniformInt", {**given, "minval": np.int64(-3), "maxval": np.int64(9)}, {}
    skip = {"resource": "generator", "alg": np.int32(1), "delta": np.uint64(7)}
    yield "RngReadAndSkip", skip, {}


FAMILIES = [fills, parameters, orders, generators]


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
