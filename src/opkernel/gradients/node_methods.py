"""Nodes as gradient functions write them: `nodes.MatMul(grad, b, transpose_b=True)`.

Every op, and every function of the graph's library, is a method: inputs by position, attrs by
keyword. Other values become constants of the type that the op wants. Nodes go to the graph of their
inputs, else to the default graph, which is the operation's own while gradients are made.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from opkernel.gradients.indexed_slices import as_dense
from opkernel.graph import Operation, Tensor, get_default_graph
from opkernel.graph.building.op_def_library import add_node
from opkernel.graph.core.default_graph import graph_of_call
from opkernel.graph.core.tensor import tensors_in


class Nodes:
    """Adds a node to a graph for each call; see the module."""

    def __getattr__(self, op_type: str) -> Callable[..., Any]:
        if op_type.startswith("__"):
            raise AttributeError(op_type)
        return functools.partial(_add_node, op_type)


def _add_node(op_type: str, *inputs: Any, name: str | None = None, **attrs: Any) -> Any:
    """Add a node; raises as `apply_op` does.

    Returns:
        The output tensor, a list for a list output, a named tuple of several of them; the
        Operation where the op has no outputs.
    """
    tensors = [as_dense(value) for value in inputs]
    graph = graph_of_call(tensors_in(tensors)) or get_default_graph()
    declared = graph.function_library.look_up(op_type).op_def.input_arg
    if len(tensors) != len(declared):
        raise TypeError(f"{op_type} takes {len(declared)} inputs, not {len(tensors)}")
    return add_node(graph, op_type, name, tensors, attrs)


nodes = Nodes()


def conj(tensor: Tensor) -> Tensor:
    """The complex conjugate; the tensor itself if it is real."""
    if not tensor.dtype.is_complex:
        return tensor
    conjugate: Tensor = nodes.Conj(tensor)
    return conjugate


def attrs_of(op: Operation, *names: str) -> dict[str, Any]:
    """Attrs of an operation, to be given to a node: `nodes.AvgPoolGrad(..., **attrs_of(op, "ksize"))`."""
    return {name: op.get_attr(name) for name in names}
