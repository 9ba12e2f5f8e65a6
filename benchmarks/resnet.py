"""A ResNet-18 for images of 32 x 32: the same ops in opkernel and in TensorFlow.

A convolution of 3 x 3 and 8 blocks of two with 64 to 512 channels, each normalised over the batch; 10 classes. Source: He et
al., Deep residual learning for image recognition (2015), with the first layers of their network for CIFAR.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]

SIDE, CLASSES, BLOCKS = 32, 10, [64, 64, 128, 128, 256, 256, 512, 512]
OPTIMIZER, LEARNING_RATE = "Adam", 1e-3


def batch(size: int) -> tuple[Array, Array]:
    """Images float32 [size, 32, 32, 3] and classes int32 [size]."""
    random = np.random.default_rng(0)
    images = random.normal(size=(size, SIDE, SIDE, 3)).astype(np.float32)
    return images, random.integers(0, CLASSES, size, np.int32)


def initial_weights() -> dict[str, Array]:
    """Filters, the scales and offsets of normalisations, and the classifier's matrix."""
    filters = {"first": (3, 3, 3, BLOCKS[0])}
    channels = BLOCKS[0]
    for block, wider in enumerate(BLOCKS):
        filters |= {f"{block}/a": (3, 3, channels, wider), f"{block}/b": (3, 3, wider, wider)}
        if wider > channels:
            filters[f"{block}/shortcut"] = (1, 1, channels, wider)
        channels = wider
    random = np.random.default_rng(1)
    weights = {}
    for name, shape in filters.items():
        drawn = random.normal(0, np.prod(shape[:3]) ** -0.5, shape)
        weights[name] = drawn.astype(np.float32)
        weights[f"{name}/scale"] = np.ones(shape[3], np.float32)
        weights[f"{name}/offset"] = np.zeros(shape[3], np.float32)
    drawn = random.normal(0, channels**-0.5, (channels, CLASSES))
    return weights | {"classes": drawn.astype(np.float32)}


def loss(ops: Any, weights: Mapping[str, Any], images: Any, classes: Any) -> Any:
    """The mean cross entropy, a scalar; `ops` is `opkernel.raw_ops` or `tf.raw_ops`."""
    x, channels = ops.Relu(features=_layer(ops, weights, "first", images, 1)), BLOCKS[0]
    for block, wider in enumerate(BLOCKS):
        stride = 1 if wider == channels else 2
        inner = ops.Relu(features=_layer(ops, weights, f"{block}/a", x, stride))
        shortcut = x if stride == 1 else _layer(ops, weights, f"{block}/shortcut", x, stride)
        x = ops.Relu(features=_layer(ops, weights, f"{block}/b", inner, 1) + shortcut)
        channels = wider
    scores = ops.MatMul(a=ops.Mean(input=x, axis=[1, 2]), b=weights["classes"])
    losses = ops.SparseSoftmaxCrossEntropyWithLogits(features=scores, labels=classes)
    return ops.Mean(input=losses.loss, axis=[0])


def _layer(ops: Any, weights: Mapping[str, Any], name: str, x: Any, stride: int) -> Any:
    x = ops.Conv2D(input=x, filter=weights[name], strides=[1, stride, stride, 1], padding="SAME")
    return ops.FusedBatchNormV3(
        x=x,
        scale=weights[f"{name}/scale"],
        offset=weights[f"{name}/offset"],
        mean=np.empty(0, np.float32),
        variance=np.empty(0, np.float32),
        epsilon=1e-3,
    ).y
