"""What interrupted uses are made of; nothing of opkernel is imported before one of them begins."""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

__all__ = ["Use", "dense_module", "image", "network"]


class Use(NamedTuple):
    """A use.

    Attributes:
        prepare: Makes what `do` gets: a graph with a session, say.
        do: Does it and gives its answer.
    """

    prepare: Callable[[], Any]
    do: Callable[[Any], Any]


def image() -> Any:
    """A batch of images."""
    return np.linspace(0, 1, 2 * 6 * 6 * 2, dtype=np.float32).reshape(2, 6, 6, 2)


def network() -> Any:
    """A small network of images; its reshape asks for a shape."""
    import opkernel
    from opkernel import raw_ops

    with opkernel.Graph().as_default() as graph:
        x = opkernel.placeholder(opkernel.float32, [None, 6, 6, 2], name="x")
        filters = np.linspace(-1, 1, 3 * 3 * 2 * 4, dtype=np.float32).reshape(3, 3, 2, 4)
        y = raw_ops.Conv2D(input=x, filter=filters, strides=[1, 1, 1, 1], padding="SAME")
        y = raw_ops.Relu(features=raw_ops.BiasAdd(value=y, bias=np.ones(4, np.float32)))
        y = raw_ops.MaxPool(input=y, ksize=[1, 2, 2, 1], strides=[1, 2, 2, 1], padding="VALID")
        flat = raw_ops.Reshape(tensor=y, shape=raw_ops.Pack(values=[raw_ops.Shape(input=y)[0], 36]))
        weights = np.linspace(-1, 1, 36 * 3, dtype=np.float32).reshape(36, 3)
        raw_ops.Softmax(logits=raw_ops.MatMul(a=flat, b=weights), name="y")
    return graph


def dense_module() -> Any:
    """The class of a module with two variables."""
    import opkernel

    class Dense(opkernel.Module):
        def __init__(self) -> None:
            self.kernel = opkernel.Variable(np.full((2, 1), 0.5, np.float32))
            self.bias = opkernel.Variable(np.zeros(1, np.float32))

        @opkernel.function(input_signature=[opkernel.TensorSpec([None, 2], opkernel.float32, "x")])
        def __call__(self, x: Any) -> Any:
            return x @ self.kernel + self.bias

    return Dense
