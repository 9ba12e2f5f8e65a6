"""A small transformer that tells classes of token sequences: the same ops in opkernel and in TensorFlow.

64 tokens of 1,000, 2 layers of width 64 with 4 heads, 10 classes; trained by Adam.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]

TOKENS, WORDS, WIDTH, HEADS, HIDDEN, LAYERS, CLASSES = 64, 1000, 64, 4, 256, 2, 10
OPTIMIZER, LEARNING_RATE = "Adam", 1e-3


def batch(size: int) -> tuple[Array, Array]:
    """Tokens int32 [size, 64] and classes int32 [size]."""
    random = np.random.default_rng(0)
    tokens = random.integers(0, WORDS, (size, TOKENS), np.int32)
    return tokens, random.integers(0, CLASSES, size, np.int32)


def initial_weights() -> dict[str, Array]:
    """The embedding, the layers' and the classifier's matrices; no biases but those of the normalisations."""
    shapes = {"words": (WORDS, WIDTH), "classes": (WIDTH, CLASSES)}
    for layer in range(LAYERS):
        shapes |= {
            f"{layer}/{name}": (WIDTH, WIDTH) for name in ("query", "key", "value", "joined")
        }
        shapes |= {f"{layer}/wide": (WIDTH, HIDDEN), f"{layer}/narrow": (HIDDEN, WIDTH)}
    random = np.random.default_rng(1)
    weights = {
        name: random.normal(0, shape[0] ** -0.5, shape).astype(np.float32)
        for name, shape in shapes.items()
    }
    for name in (f"{layer}/{place}" for layer in range(LAYERS) for place in ("first", "second")):
        weights |= {f"{name}/scale": np.ones(WIDTH, np.float32)}
        weights |= {f"{name}/offset": np.zeros(WIDTH, np.float32)}
    return weights


def loss(ops: Any, weights: Mapping[str, Any], tokens: Any, classes: Any) -> Any:
    """The mean cross entropy, a scalar; `ops` is `opkernel.raw_ops` or `tf.raw_ops`."""
    x = ops.GatherV2(params=weights["words"], indices=tokens, axis=0)
    for layer in range(LAYERS):
        of_layer = {
            name.partition("/")[2]: w for name, w in weights.items() if name[0] == str(layer)
        }
        x = _normal(ops, x + _attention(ops, x, of_layer), of_layer, "first")
        wide = ops.Relu(features=_dense(ops, x, of_layer["wide"]))
        x = _normal(ops, x + _dense(ops, wide, of_layer["narrow"]), of_layer, "second")
    scores = ops.MatMul(a=ops.Mean(input=x, axis=[1]), b=weights["classes"])
    losses = ops.SparseSoftmaxCrossEntropyWithLogits(features=scores, labels=classes)
    return ops.Mean(input=losses.loss, axis=[0])


def _dense(ops: Any, x: Any, kernel: Any) -> Any:
    return ops.BatchMatMulV2(x=x, y=kernel)


def _attention(ops: Any, x: Any, weights: Mapping[str, Any]) -> Any:
    def of_heads(name: str) -> Any:
        split = ops.Reshape(
            tensor=_dense(ops, x, weights[name]), shape=[-1, TOKENS, HEADS, WIDTH // HEADS]
        )
        return ops.Transpose(x=split, perm=[0, 2, 1, 3])

    query, key, value = map(of_heads, ("query", "key", "value"))
    scores = ops.BatchMatMulV2(x=query, y=key, adj_y=True) * (WIDTH // HEADS) ** -0.5
    heads = ops.BatchMatMulV2(x=ops.Softmax(logits=scores), y=value)
    joined = ops.Reshape(
        tensor=ops.Transpose(x=heads, perm=[0, 2, 1, 3]), shape=[-1, TOKENS, WIDTH]
    )
    return _dense(ops, joined, weights["joined"])


def _normal(ops: Any, x: Any, weights: Mapping[str, Any], place: str) -> Any:
    difference = x - ops.Mean(input=x, axis=[2], keep_dims=True)
    variance = ops.Mean(input=ops.Square(x=difference), axis=[2], keep_dims=True)
    normal = difference * ops.Rsqrt(x=variance + 1e-6)
    return normal * weights[f"{place}/scale"] + weights[f"{place}/offset"]
