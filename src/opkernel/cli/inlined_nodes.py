"""The nodes of a program whose calls were inlined, as people know them: without the traces of inlining."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

from opkernel.drawing.nodes import Node
from opkernel.graph import Tensor
from opkernel.graph.edit.inline_function import is_seam


class CallPaths:
    """The scopes in which the nodes of inlined functions are drawn: the names of calls are left out.

    Args:
        calls: the names of the functions, by the names of the calls; outer calls first.
        labels: what people call the functions.
    """

    def __init__(self, calls: Mapping[str, str], labels: Mapping[str, str]) -> None:
        self._scopes: dict[str, str] = {}
        siblings = Counter(name.rpartition("/")[0] for name in calls)
        for name, function in calls.items():
            scope = self.path(name).rpartition("/")[0]
            if siblings[name.rpartition("/")[0]] > 1:
                label = labels.get(function, function).replace("/", ".")
                scope = f"{scope}/{label}".lstrip("/")
            self._scopes[name] = scope

    def path(self, name: str) -> str:
        """The name of a node without the calls that it stands in."""
        at = len(name)
        while (at := name.rfind("/", 0, at)) > 0:
            scope = self._scopes.get(name[:at])
            if scope is not None:
                return f"{scope}/{name[at + 1 :]}".lstrip("/")
        return name


def with_outputs(
    nodes: Sequence[Node], ends: Mapping[str, Tensor], types: Mapping[str, str]
) -> list[Node]:
    """Nodes and the outputs of a signature.

    Args:
        nodes: the nodes.
        ends: the tensors that the outputs give, by the names of the outputs.
        types: the ops of the nodes of these tensors; a node of another op stands in the place of a call.
    """
    by_name = {node.name: node for node in nodes}
    made, gone = [], set()
    for name, end in ends.items():
        node, source = by_name[end.op.name], (end.op.name, end.name)
        if node.op != types[node.name]:
            source = [one for one in node.inputs if not one[1].startswith("^")][end.value_index]
            gone.add(node.name)
        shapes = node.outputs[end.value_index : end.value_index + 1]
        made.append(Node(f"{name} (output)", "output", [source], shapes, path=name, is_port=True))
    kept = [node for node in nodes if node.name not in gone]
    used = {source for node in kept for source, _ in node.inputs}
    return [*(node for node in nodes if node.name not in gone - used), *made]


def renamed(nodes: Sequence[Node], names: Mapping[str, str]) -> Sequence[Node]:
    """Nodes under other names, where these are free."""
    taken = {node.name for node in nodes}
    new: dict[str, str] = {}
    for old, name in names.items():
        if name not in taken:
            new[old] = name
            taken.add(name)
    for node in nodes:
        if node.name in new:
            node.name = node.path = new[node.name]
        if any(source in new for source, _ in node.inputs):
            node.inputs = [
                (new[source], text.replace(source, new[source], 1))
                if source in new
                else (source, text)
                for source, text in node.inputs
            ]
    return nodes


_RESULT = re.compile(r"(?:Identity|NoOp)(_\d+)?")


def without_joints(nodes: Sequence[Node], calls: Mapping[str, str]) -> list[Node]:
    """The nodes without those that only join a body to its place: inputs lead to what they passed on."""
    joints = {node.name: node for node in nodes if _is_joint(node, calls)}
    kept = [node for node in nodes if node.name not in joints]
    for node in kept:
        if any(source in joints for source, _ in node.inputs):
            passed = [*_passed(node.inputs, joints)]
            data = [one for one in passed if not one[1].startswith("^")]
            node.inputs = [*data, *dict.fromkeys(one for one in passed if one[1].startswith("^"))]
    return kept


def _is_joint(node: Node, calls: Mapping[str, str]) -> bool:
    call, _, name = node.name.rpartition("/")
    if node.op in ("Identity", "NoOp") and call in calls and _RESULT.fullmatch(name):
        return True
    return node.op in ("Identity", "NoOp") and is_seam(node.name)


def _passed(
    inputs: Sequence[tuple[str, str]], joints: Mapping[str, Node]
) -> Iterator[tuple[str, str]]:
    """Inputs, those from joints replaced by what the joints take."""
    stack = [*reversed(inputs)]
    seen: set[str] = set()
    while stack:
        source, text = stack.pop()
        if source not in joints:
            yield source, text
        elif not text.startswith("^"):
            # The control inputs of a joint are already those of the nodes in the body.
            stack += [one for one in joints[source].inputs if not one[1].startswith("^")]
        elif source not in seen:
            seen.add(source)
            stack += [(name, f"^{name}") for name, _ in joints[source].inputs]
