"""The network of examples/digits as a module of opkernel, with its loss and a step of its training."""

from collections.abc import Mapping
from typing import Any

import numpy as np
from digits import Array, initial_weights

import opkernel
from opkernel import Graph, raw_ops


def logits(images: Any, weights: Mapping[str, Any]) -> Any:
    """The network: float32 images [batch, 8, 8, 1] with values 0 to 16 -> scores [batch, 10]."""
    x = images / 16
    for name in ("conv1", "conv2"):
        x = raw_ops.Conv2D(
            input=x, filter=weights[f"{name}/kernel"], strides=[1] * 4, padding="SAME"
        )
        x = raw_ops.Relu(features=raw_ops.BiasAdd(value=x, bias=weights[f"{name}/bias"]))
    x = raw_ops.MaxPool(input=x, ksize=[1, 2, 2, 1], strides=[1, 2, 2, 1], padding="VALID")
    x = raw_ops.Reshape(tensor=x, shape=[-1, 512])
    x = raw_ops.BiasAdd(value=x @ weights["dense/kernel"], bias=weights["dense/bias"])
    x = raw_ops.Relu(features=x)
    return raw_ops.BiasAdd(value=x @ weights["out/kernel"], bias=weights["out/bias"])


class Network(opkernel.Module):
    """The network, with its weights at their first values, and the optimiser that trains it."""

    def __init__(self) -> None:
        self.weights = {
            name: opkernel.Variable(first, name=name) for name, first in initial_weights().items()
        }
        self.optimizer = opkernel.optimizers.Adam(learning_rate=1e-3)

    def loss(self, images: Any, labels: Any) -> Any:
        """How far the scores are from the labels, int32 [batch]: a scalar."""
        losses = raw_ops.SparseSoftmaxCrossEntropyWithLogits(
            features=logits(images, self.weights), labels=labels
        ).loss
        return raw_ops.Mean(input=losses, axis=[0])

    def train(self, images: Array, labels: Array) -> float:
        """One step; the loss before it."""
        return float(self.optimizer.minimize(self.loss, self, images, labels))

    @opkernel.function
    def digits(self, images: Any) -> Any:
        """The digits that are recognised: int32 [batch]."""
        return raw_ops.ArgMax(
            input=logits(images, self.weights), dimension=1, output_type=opkernel.int32
        )

    def recognised(self, images: Array, labels: Array) -> int:
        """How many of the images are recognised."""
        return int(np.sum(self.digits(images) == labels))

    def frozen(self) -> Graph:
        """The graph for inference, the weights as constants in it."""
        with Graph().as_default() as graph:
            images = opkernel.placeholder(opkernel.float32, [None, 8, 8, 1], name="images")
            weights = {
                name: opkernel.constant(weight.numpy(), name=name)
                for name, weight in self.weights.items()
            }
            scores = logits(images, weights)
            raw_ops.Softmax(logits=scores, name="probabilities")
            raw_ops.ArgMax(input=scores, dimension=1, name="digit")
        return graph
