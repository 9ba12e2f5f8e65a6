"""The network of examples/digits as a graph of opkernel, with its loss and a step of Adam."""

from collections.abc import Mapping
from typing import Any

import numpy as np
from digits import Array, initial_weights

import opkernel
from opkernel import Graph, Session, float32, int32, raw_ops

LEARNING_RATE, BETA1, BETA2, EPSILON = 1e-3, 0.9, 0.999, 1e-7


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


class Variable:
    """A variable with the assignment that gives it its first value."""

    def __init__(self, name: str, first: Any) -> None:
        first = np.asarray(first, np.float32)
        shape = opkernel.PartialTensorShape(first.shape)
        self.handle = raw_ops.VarHandleOp(dtype=float32, shape=shape, shared_name=name, name=name)
        self.start = raw_ops.AssignVariableOp(resource=self.handle, value=first)

    def read(self) -> Any:
        """What it has when this is computed."""
        return raw_ops.ReadVariableOp(resource=self.handle, dtype=float32)


def adam(
    graph: Graph, variables: Mapping[str, Variable], gradients: list[Any]
) -> tuple[Any, list[Variable]]:
    """An operation that takes a step with each variable, and the variables that it needs."""
    powers = [Variable("beta1_power", BETA1), Variable("beta2_power", BETA2)]
    beta1_power, beta2_power = (power.read() for power in powers)
    slots, steps = [], []
    for (name, variable), gradient in zip(variables.items(), gradients, strict=True):
        zeros = np.zeros(gradient.shape.as_list(), np.float32)
        m, v = Variable(f"{name}/m", zeros), Variable(f"{name}/v", zeros)
        slots += [m, v]
        steps.append(
            raw_ops.ResourceApplyAdam(
                var=variable.handle,
                m=m.handle,
                v=v.handle,
                beta1_power=beta1_power,
                beta2_power=beta2_power,
                lr=LEARNING_RATE,
                beta1=BETA1,
                beta2=BETA2,
                epsilon=EPSILON,
                grad=gradient,
            )
        )
    for power, value, beta in zip(powers, (beta1_power, beta2_power), (BETA1, BETA2), strict=True):
        steps.append(raw_ops.AssignVariableOp(resource=power.handle, value=value * beta))
    with graph.control_dependencies(steps):
        return raw_ops.NoOp(), [*powers, *slots]


class Network:
    """The graph, its variables at their first values in a session."""

    def __init__(self) -> None:
        with Graph().as_default() as graph:
            self.images = opkernel.placeholder(float32, [None, 8, 8, 1], name="images")
            self.labels = opkernel.placeholder(int32, [None], name="labels")
            variables = {name: Variable(name, first) for name, first in initial_weights().items()}
            self.weights = {name: variable.read() for name, variable in variables.items()}
            scores = logits(self.images, self.weights)
            self.digit = raw_ops.ArgMax(input=scores, dimension=1, output_type=int32)
            losses = raw_ops.SparseSoftmaxCrossEntropyWithLogits(
                features=scores, labels=self.labels
            ).loss
            self.loss = raw_ops.Mean(input=losses, axis=[0])
            gradients = opkernel.gradients(self.loss, [v.handle for v in variables.values()])
            self.step, slots = adam(graph, variables, gradients)
        self.session = Session(graph)
        self.session.run([v.start for v in (*variables.values(), *slots)])

    def train(self, images: Array, labels: Array) -> float:
        """One step; the loss before it."""
        feeds = {self.images: images, self.labels: labels}
        return float(self.session.run([self.loss, self.step], feeds)[0])

    def recognised(self, images: Array, labels: Array) -> int:
        """How many of the images are recognised."""
        digits = self.session.run(self.digit, {self.images: images})
        return int(np.sum(digits == labels))

    def frozen(self) -> Graph:
        """The graph for inference, the weights as constants in it."""
        values = self.session.run(self.weights)
        with Graph().as_default() as graph:
            images = opkernel.placeholder(float32, [None, 8, 8, 1], name="images")
            weights = {name: opkernel.constant(value, name=name) for name, value in values.items()}
            scores = logits(images, weights)
            raw_ops.Softmax(logits=scores, name="probabilities")
            raw_ops.ArgMax(input=scores, dimension=1, name="digit")
        return graph
