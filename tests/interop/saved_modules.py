"""Modules to be saved, with what they compute."""

from typing import Any, NamedTuple

import numpy as np

import opkernel
from opkernel import Module, TensorSpec, Variable, optimizers, raw_ops

X = np.arange(6, dtype=np.float32).reshape(2, 3)


class Point(NamedTuple):
    x: Any
    y: Any


class Dense(Module):
    """`x @ kernel + bias`; the kernel is all ones at first, the bias zeros."""

    def __init__(self, inputs: int = 3, outputs: int = 2) -> None:
        self.kernel = Variable(np.ones((inputs, outputs), np.float32), name="kernel")
        self.bias = Variable(np.zeros(outputs, np.float32), name="bias")

    @opkernel.function(input_signature=[TensorSpec([None, 3], opkernel.float32, "x")])
    def __call__(self, x: Any) -> Any:
        return x @ self.kernel + self.bias


class Many(Module):
    """Functions with structures, keywords, several signatures, branches, loops, state."""

    def __init__(self) -> None:
        self.layers = [Dense(3, 3), Dense(3, 3)]
        self.layers[1].bias.assign([1, 2, 3])
        self.shared = {"kernel": self.layers[0].kernel, "layer": (self.layers[1],)}
        self.count = Variable(np.int64(0), trainable=False, name="count")
        self.words = Variable(["a", "bc"], name="words")
        self.empty = Variable(np.zeros((0, 3), np.int32), name="empty")
        self.functions = [opkernel.function(lambda x: x * 2, [TensorSpec([], opkernel.float32)])]

    @opkernel.function
    def call(self, x: Any, training: bool = False, *, scale: float = 1.0) -> Any:
        for layer in self.layers:
            x = layer(x)
        return {"y": x * scale, "parts": (x, [x + 1]), "training": opkernel.constant(training)}

    @opkernel.function
    def structure(self, given: Any) -> Any:
        return Point(given["a"] + given["b"][0], given["b"][1])

    @opkernel.function
    def control(self, x: Any, turns: Any) -> Any:
        first, second = self.layers
        x = opkernel.cond(
            raw_ops.Max(input=x, axis=[0, 1]) > 0, lambda: x @ first.kernel, lambda: x
        )
        return opkernel.while_loop(
            lambda i, y: i < turns, lambda i, y: (i + 1, y * 2 + second.bias), [0, x]
        )[1]

    @opkernel.function(input_signature=[])
    def step(self) -> Any:
        self.count.assign_add(np.int64(1))
        return self.count.value

    @opkernel.function(input_signature=[])
    def contents(self) -> Any:
        return self.words.value, self.empty.value

    def traced(self) -> "Many":
        """Itself, with its functions traced as `calls` needs them."""
        for name, args, kwargs in calls():
            getattr(self, name)(*args, **kwargs)
        self.count.assign(0)
        return self


def calls() -> list[tuple[str, tuple[Any, ...], dict[str, Any]]]:
    """Calls of the functions of Many."""
    row = X[:1]
    return [
        ("call", (X,), {}),
        ("call", (X, True), {}),
        ("call", (X,), {"training": True}),
        ("call", (X,), {"scale": 2.0}),
        ("call", (row,), {"training": True, "scale": 0.5}),
        ("structure", ({"a": X, "b": [X, row]},), {}),
        ("control", (X, np.int32(3)), {}),
        ("control", (-X, np.int32(0)), {}),
        ("contents", (), {}),
        ("step", (), {}),
    ]


class Trainer(Dense):
    """A module with a step of its training as a function."""

    def __init__(self) -> None:
        super().__init__()
        self.optimizer = optimizers.Adam(0.1)
        self.optimizer.build(self.trainable_variables[:2])

    def loss(self, x: Any) -> Any:
        y = self(x)
        return raw_ops.Sum(input=y * y, axis=[0, 1])

    @opkernel.function(input_signature=[TensorSpec([None, 3], opkernel.float32, "x")])
    def train(self, x: Any) -> Any:
        return self.optimizer.minimize(lambda: self.loss(x), [self.kernel, self.bias])
