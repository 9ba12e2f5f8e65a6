"""An LSTM that tells classes of texts: the same ops in opkernel and in TensorFlow.

32 words of 5,000, each a vector of 64, read one after the other by an LSTM of 128 units; 10 classes.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]

LENGTH, WORDS, WIDTH, UNITS, CLASSES = 32, 5000, 64, 128, 10
OPTIMIZER, LEARNING_RATE = "Adam", 1e-3


def batch(size: int) -> tuple[Array, Array]:
    """Words int32 [size, 32] and classes int32 [size]."""
    random = np.random.default_rng(0)
    words = random.integers(0, WORDS, (size, LENGTH), np.int32)
    return words, random.integers(0, CLASSES, size, np.int32)


def initial_weights() -> dict[str, Array]:
    """The vectors of the words, the matrices and the bias of the LSTM, and the classifier's matrix."""
    shapes = {
        "words": (WORDS, WIDTH),
        "of_words": (WIDTH, 4 * UNITS),
        "of_state": (UNITS, 4 * UNITS),
        "classes": (UNITS, CLASSES),
    }
    random = np.random.default_rng(1)
    weights = {
        name: random.normal(0, shape[0] ** -0.5, shape).astype(np.float32)
        for name, shape in shapes.items()
    }
    return weights | {"bias": np.zeros(4 * UNITS, np.float32)}


def loss(ops: Any, weights: Mapping[str, Any], words: Any, classes: Any) -> Any:
    """The mean cross entropy, a scalar; `ops` is `opkernel.raw_ops` or `tf.raw_ops`."""
    vectors = ops.GatherV2(params=weights["words"], indices=words, axis=0)
    inputs = ops.BatchMatMulV2(x=vectors, y=weights["of_words"])
    state = memory = None
    for gates in ops.Unpack(value=inputs, num=LENGTH, axis=1):
        if state is not None:
            gates = gates + ops.MatMul(a=state, b=weights["of_state"])
        gates = ops.BiasAdd(value=gates, bias=weights["bias"])
        new, enter, keep, show = ops.Split(axis=1, value=gates, num_split=4)
        entering = ops.Sigmoid(x=enter) * ops.Tanh(x=new)
        memory = entering if memory is None else entering + ops.Sigmoid(x=keep) * memory
        state = ops.Sigmoid(x=show) * ops.Tanh(x=memory)
    scores = ops.MatMul(a=state, b=weights["classes"])
    losses = ops.SparseSoftmaxCrossEntropyWithLogits(features=scores, labels=classes)
    return ops.Mean(input=losses.loss, axis=[0])
