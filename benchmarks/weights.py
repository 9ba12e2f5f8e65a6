"""What layers take whose weights come from variables, beside the same with constants.

    python benchmarks/weights.py

A step computes one layer with its bias and Relu. Bound: 1.1 x the time with constants: while a variable keeps its value,
its step runs a plan with that value as a constant. `assigned` assigns a variable of its own in each step, which so
runs the general plan.
"""

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from measure import interleaved, report, rerun_in_clean_environment

import opkernel
from opkernel import raw_ops

Array = np.ndarray[Any, Any]
Layer = Callable[[Any, Any], Any]


def dense(x: Any, weights: Any) -> Any:
    """A fully connected layer."""
    return raw_ops.MatMul(a=x, b=weights)


def convolution(x: Any, weights: Any) -> Any:
    """A convolution that keeps the size of its images."""
    return raw_ops.Conv2D(input=x, filter=weights, strides=[1, 1, 1, 1], padding="SAME")


LAYERS: dict[str, tuple[Layer, tuple[int, ...], tuple[int, ...]]] = {
    "dense, 8 x 768 to 3,072": (dense, (8, 768), (768, 3072)),
    "dense, 128 x 768 to 768": (dense, (128, 768), (768, 768)),
    "convolution, 3 x 3, 28 x 28 x 128": (convolution, (1, 28, 28, 128), (3, 3, 128, 128)),
    "convolution, 1 x 1, 14 x 14 x 256 to 1,024": (
        convolution,
        (1, 14, 14, 256),
        (1, 1, 256, 1024),
    ),
}


def steps(layer: Layer, x: Array, weights: Array) -> dict[str, Callable[[], object]]:
    """A step with constants, with a variable, and with one that is assigned each time."""
    with opkernel.Graph().as_default() as graph:
        fed = raw_ops.Placeholder(dtype=opkernel.float32, shape=x.shape)
        new = raw_ops.Const(value=weights, dtype=opkernel.float32)
        handle, other = (
            raw_ops.VarHandleOp(dtype=opkernel.float32, shape=weights.shape, shared_name=name)
            for name in ("kept", "assigned")
        )
        assign = [raw_ops.AssignVariableOp(resource=one, value=new) for one in (handle, other)]
        read = raw_ops.ReadVariableOp(resource=handle, dtype=opkernel.float32)
        with graph.control_dependencies(assign[1:]):
            assigned = raw_ops.ReadVariableOp(resource=other, dtype=opkernel.float32)
        bias = np.ones(weights.shape[-1], np.float32)
        results = {
            name: raw_ops.Relu(features=raw_ops.BiasAdd(value=layer(fed, one), bias=bias))
            for name, one in (("constants", new), ("variable", read), ("assigned", assigned))
        }
    session = opkernel.Session(graph)
    session.run(assign)
    calls = {name: session.make_callable(y, [fed]) for name, y in results.items()}
    return {name: partial(call, x) for name, call in calls.items()}


def main() -> None:
    rerun_in_clean_environment()
    random = np.random.default_rng(0)
    for name, (layer, of_x, of_weights) in LAYERS.items():
        x, weights = (random.random(shape, np.float32) for shape in (of_x, of_weights))
        report(name, interleaved(steps(layer, x, weights)), "constants")


if __name__ == "__main__":
    main()
