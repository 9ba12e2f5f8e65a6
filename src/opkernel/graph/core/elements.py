"""Elements of graphs, given as such or by name.

Source: TensorFlow python/framework/ops.py (Graph.as_graph_element).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from opkernel.errors import InvalidArgumentError, NotFoundError
from opkernel.graph.core.node import AnyNode
from opkernel.graph.core.tensor_name import parse_input
from opkernel.messages import did_you_mean
from opkernel.opdef import not_registered


def graph_element(obj: Any) -> Any:
    """The element that an object stands for, by its method `_as_graph_element`, or the object."""
    convert = getattr(obj, "_as_graph_element", None)
    return obj if convert is None else convert()


def node_named(by_name: Mapping[str, AnyNode], name: str) -> AnyNode:
    """The node that a name refers to.

    Raises:
        InvalidArgumentError: the name is a tensor's.
        NotFoundError: there is none.
    """
    if ":" in name:
        raise _wrong_kind(name, "a Tensor, not an Operation", "")
    node = by_name.get(name)
    if node is None:
        raise NotFoundError(
            f"The name {name!r} refers to an Operation not in the graph{did_you_mean(name, by_name)}.",
            node=name,
        )
    return node


def output_named(by_name: Mapping[str, AnyNode], name: str) -> tuple[AnyNode, int]:
    """The node and the output that the name of a tensor refers to.

    Raises:
        InvalidArgumentError: the name is a node's.
        NotFoundError: there is none.
    """
    if ":" not in name:
        meant = f"; perhaps you mean {name}:0" if name in by_name else did_you_mean(name, by_name)
        form = f" Tensor names have the form '<op_name>:<output_index>'{meant}."
        raise _wrong_kind(name, "an Operation, not a Tensor", form)
    node_name, index = parse_input(name)
    node = by_name.get(node_name)
    if node is not None and 0 <= index < len(node.output_types):
        return node, index
    if node is not None and node.signature.registration is None and index >= 0:
        error = not_registered(node.type)  # nothing is known of its outputs
        error.add_context(f"In {{{{node {node.name}}}}}")
        raise error
    if node is None or index < 0:
        hint = did_you_mean(node_name, by_name)
        fact = f"The operation, {node_name!r}, does not exist in the graph{hint}."
    else:
        fact = (
            f"The operation, {node_name!r}, exists but only has {len(node.output_types)} outputs."
        )
    raise NotFoundError(
        f"The name {name!r} refers to a Tensor which does not exist. {fact}", node=node_name
    )


def _wrong_kind(name: str, kind: str, hint: str) -> InvalidArgumentError:
    return InvalidArgumentError(f"The name {name!r} refers to {kind}.{hint}")
