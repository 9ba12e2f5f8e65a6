"""The functions of a SavedModel that Python calls, as they are called: `encode(x: float32[?,3], training=False)`.

Source: TensorFlow core/protobuf/saved_object_graph.proto.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence
from typing import Any

from opkernel.errors import OpError
from opkernel.graph import TensorSpec
from opkernel.interop.saved_model.structured_value import decoded
from opkernel.messages import short_repr
from opkernel.proto import MetaGraphDef, SavedObject

_UNREADABLE = "(arguments that cannot be read)"


def saved_functions(meta_graph: MetaGraphDef) -> dict[str, list[str]]:
    """What each function takes, once for each signature that was saved, by the path from the model."""
    nodes = meta_graph.object_graph_def.nodes
    found = {}
    for path, node in _objects(nodes):
        if node.WhichOneof("kind") == "function" and node.function.concrete_functions:
            names, skipped = _parameters(node)
            found[path] = [
                _takes(meta_graph, one, names[skipped:]) for one in node.function.concrete_functions
            ]
    return found


def _objects(nodes: Sequence[SavedObject]) -> Iterator[tuple[str, SavedObject]]:
    """The objects with their paths from the root, the nearest first; those of signatures are left out."""
    waiting = deque([("", 0)] if nodes else [])
    seen = {0}
    while waiting:
        path, number = waiting.popleft()
        yield path, nodes[number]
        for child in nodes[number].children:
            is_new = child.node_id not in seen and 0 <= child.node_id < len(nodes)
            if is_new and not (number == 0 and child.local_name == "signatures"):
                seen.add(child.node_id)
                waiting.append((f"{path}.{child.local_name}".lstrip("."), child.node_id))


def _parameters(node: SavedObject) -> tuple[list[str], int]:
    """The names of the parameters, and how many of them the object itself takes."""
    spec = node.function.function_spec
    try:
        arguments = decoded(spec.fullargspec)
        return [str(name) for name in arguments.args], int(spec.is_method)
    except (OpError, AttributeError, TypeError):
        return [], 0


def _takes(meta_graph: MetaGraphDef, function: str, names: Sequence[str]) -> str:
    concrete = meta_graph.object_graph_def.concrete_functions
    if function not in concrete:
        return _UNREADABLE
    try:
        args, kwargs = decoded(concrete[function].canonicalized_input_signature)
        texts = [_text(names[i] if i < len(names) else "", one) for i, one in enumerate(args)]
        return f"({', '.join([*texts, *[_text(name, one) for name, one in kwargs.items()]])})"
    except (OpError, TypeError, ValueError, AttributeError):
        return _UNREADABLE


def _text(name: str, value: Any) -> str:
    if isinstance(value, TensorSpec):
        return f"{name or value.name or '_'}: {value}"
    if isinstance(value, list | tuple):
        inside = ", ".join(_text("", one).removeprefix("_: ") for one in value)
        return f"{name}: [{inside}]" if name else f"[{inside}]"
    if isinstance(value, dict):
        inside = ", ".join(_text(str(key), one) for key, one in value.items())
        return f"{name}: {{{inside}}}" if name else f"{{{inside}}}"
    return f"{name}={short_repr(value)}" if name else short_repr(value)
