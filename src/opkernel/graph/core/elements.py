"""Elements of graphs: tensors and operations, given as such or by name.

Source: TensorFlow python/framework/ops.py (Graph.as_graph_element).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from opkernel.errors import InvalidArgumentError, NotFoundError
from opkernel.graph.core.operation import Operation
from opkernel.graph.core.tensor import Tensor
from opkernel.graph.core.tensor_name import parse_input
from opkernel.messages import perhaps
from opkernel.opdef import not_registered

if TYPE_CHECKING:
    from opkernel.graph.core.graph import Graph


def find_element(
    graph: Graph, obj: Any, allow_tensor: bool, allow_operation: bool
) -> Tensor | Operation:
    """`Graph.as_graph_element`."""
    element = _converted(obj)
    if isinstance(element, str):
        return _element_by_name(graph, element, allow_tensor, allow_operation)
    if isinstance(element, Tensor) and allow_tensor:
        graph.check_own(element.op, "graph element")
        return element
    if isinstance(element, Operation) and allow_operation:
        graph.check_own(element, "graph element")
        return element
    wanted = " or ".join(["Tensor"] * allow_tensor + ["Operation"] * allow_operation)
    raise InvalidArgumentError(f"Can not convert a {type(obj).__name__} into a {wanted}.")


def as_operation(element: Any) -> Operation:
    """The operation itself, or the one that gives a tensor.

    Raises:
        InvalidArgumentError: it is neither.
    """
    element = _converted(element)
    if isinstance(element, Tensor):
        return element.op
    if not isinstance(element, Operation):
        raise InvalidArgumentError(
            f"Expected an Operation or a Tensor, not a {type(element).__name__}"
        )
    return element


def _converted(obj: Any) -> Any:
    convert = getattr(obj, "_as_graph_element", None)
    return obj if convert is None else convert()


def _element_by_name(
    graph: Graph, name: str, allow_tensor: bool, allow_operation: bool
) -> Tensor | Operation:
    if ":" in name and allow_tensor:
        return _tensor_by_name(graph, name)
    if ":" in name or not allow_operation:
        kind = "a Tensor, not an Operation" if ":" in name else "an Operation, not a Tensor"
        raise InvalidArgumentError(f"The name {name!r} refers to {kind}.{_form_hint(graph, name)}")
    op = graph.by_name.get(name)
    if op is None:
        raise NotFoundError(
            f"The name {name!r} refers to an Operation not in the graph"
            f"{perhaps(name, graph.by_name)}.",
            node=name,
        )
    return op


def _form_hint(graph: Graph, name: str) -> str:
    """A hint at the form of tensor names, for a name without an index."""
    if ":" in name:
        return ""
    meant = (
        f"; perhaps you mean {name}:0" if name in graph.by_name else perhaps(name, graph.by_name)
    )
    return f" Tensor names have the form '<op_name>:<output_index>'{meant}."


def _tensor_by_name(graph: Graph, name: str) -> Tensor:
    node, index = parse_input(name)
    op = graph.by_name.get(node)
    if op is not None and 0 <= index < len(op.outputs):
        return op.outputs[index]
    if op is not None and op.signature.registration is None and index >= 0:
        error = not_registered(op.type)  # nothing is known of its outputs
        error.add_context(f"In {{{{node {op.name}}}}}")
        raise error
    if op is None or index < 0:
        hint = perhaps(node, graph.by_name)
        fact = f"The operation, {node!r}, does not exist in the graph{hint}."
    else:
        fact = f"The operation, {node!r}, exists but only has {len(op.outputs)} outputs."
    raise NotFoundError(
        f"The name {name!r} refers to a Tensor which does not exist. {fact}", node=node
    )
