"""A classifier of sets of items, most of whose weights are a table of vectors: the same ops in opkernel and in TensorFlow.

20 items of 200,000, whose vectors of 32 are averaged, and two layers; 10 classes. A step changes the rows of the table that it
has read, and no others.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]

ITEMS, LENGTH, WIDTH, HIDDEN, CLASSES = 200_000, 20, 32, 64, 10
OPTIMIZER, LEARNING_RATE = "Adagrad", 0.01


def batch(size: int) -> tuple[Array, Array]:
    """Items int64 [size, 20], some often and most seldom, and classes int32 [size]."""
    random = np.random.default_rng(0)
    items = (ITEMS * random.random((size, LENGTH)) ** 3).astype(np.int64)
    return items, random.integers(0, CLASSES, size, np.int32)


def initial_weights() -> dict[str, Array]:
    """The table and the matrices of the layers."""
    shapes = {"items": (ITEMS, WIDTH), "hidden": (WIDTH, HIDDEN), "classes": (HIDDEN, CLASSES)}
    random = np.random.default_rng(1)
    return {
        name: random.normal(0, shape[1] ** -0.5, shape).astype(np.float32)
        for name, shape in shapes.items()
    }


def loss(ops: Any, weights: Mapping[str, Any], items: Any, classes: Any) -> Any:
    """The mean cross entropy, a scalar; `ops` is `opkernel.raw_ops` or `tf.raw_ops`."""
    vectors = ops.GatherV2(params=weights["items"], indices=items, axis=0)
    hidden = ops.MatMul(a=ops.Mean(input=vectors, axis=[1]), b=weights["hidden"])
    scores = ops.MatMul(a=ops.Relu(features=hidden), b=weights["classes"])
    losses = ops.SparseSoftmaxCrossEntropyWithLogits(features=scores, labels=classes)
    return ops.Mean(input=losses.loss, axis=[0])
