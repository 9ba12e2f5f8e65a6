"""Python functions traced into the bodies of one node: the branches of an If, cond and body of a While.

All bodies of a node take the same inputs: tensors from outside that one of them uses are inputs of
all.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from opkernel.graph.core.graph import Graph
from opkernel.graph.core.operation import Operation
from opkernel.graph.core.tensor import Tensor
from opkernel.graph.tracing.func_graph import FuncGraph, function_name
from opkernel.graph.tracing.tensor_spec import TensorSpec
from opkernel.proto import AttrValue


def traced_body(
    graph: Graph, name: str, function: Callable[..., Any], specs: Sequence[TensorSpec] = ()
) -> FuncGraph:
    """A function of tensors, traced inside a graph; more can be captured until it is closed."""
    body = FuncGraph(name=function_name(name), outer_graph=graph)
    arguments = [body.add_input(spec, spec.name or "x") for spec in specs]
    body.trace(function, *arguments)
    return body


def check_scalar(tensor: Tensor, what: str) -> None:
    """Raise ValueError where what decides is known to be no scalar.

    The ops take any array that has elements for true.
    """
    if tensor.shape.rank not in (None, 0):
        raise ValueError(f"{what} must be a scalar, but has the shape {tensor.shape}")


def let_bodies_take_same(
    bodies: list[FuncGraph], count: int
) -> tuple[list[Tensor], list[Operation]]:
    """Let all bodies take what any of them captures, after `count` arguments; what that is."""
    captures = dict.fromkeys(tensor for body in bodies for tensor in body.captures)
    for body in bodies:
        inside = [body.capture(tensor) for tensor in captures]
        body.inputs[count:] = inside
        body.close()
    controls = dict.fromkeys(op for body in bodies for op in body.control_captures)
    return list(captures), list(controls)


def references_of(graph: Graph, bodies: list[FuncGraph]) -> list[AttrValue]:
    """The values of attrs that name the functions, which the graph knows then."""
    for body in bodies:
        body.add_to(graph)
    return [body.reference for body in bodies]
