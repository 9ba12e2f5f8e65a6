"""Labels: the few short lines that stand in a box, and the full text that is told when it is pointed at."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator

from opkernel.drawing.nodes import Node
from opkernel.drawing.scopes import Item, Leaf, Scope
from opkernel.escaping import terminal_text
from opkernel.graph.core.structural_ops import INPUT_OPS, LOW_LEVEL_CONTROL_FLOW, STRUCTURAL_OPS
from opkernel.records import dataclass

_LONGEST = 30
_LONGEST_NAME = 500
_MOST_FOLDED = 2
_MOST_LISTED = 12
_CHARACTER = 6.4
_WIDE_CHARACTER = 11.5
_BOLD = 1.14


@dataclass(slots=True, frozen=True)
class Line:
    """A line in a box, and its kind: `name`, `op`, `shape` or `folded`."""

    kind: str
    text: str

    @property
    def width(self) -> float:
        """About how wide it is drawn."""
        return text_width(self.text, is_bold=self.kind == "name")


def text_width(text: str, *, is_bold: bool = False) -> float:
    """About how wide a text is drawn."""
    width = sum(_CHARACTER if character < "\u2e80" else _WIDE_CHARACTER for character in text)
    return width * _BOLD if is_bold else width


def shortened(text: str, longest: int = _LONGEST) -> str:
    """A text on one line, without its middle where it is long."""
    if len(text) > 4 * longest:
        text = f"{text[: 2 * longest]}{text[-2 * longest :]}"
    text = terminal_text(text, keep="")
    if len(text) <= longest:
        return text
    half = (longest - 1) // 2
    return f"{text[:half]}…{text[-half:]}"


def port_label(item: Item) -> str:
    """The label at the rim of a view for an item outside of it."""
    if isinstance(item, Leaf):
        return shortened(item.node.name)
    return shortened(item.label if item.is_part else f"{item.name}/")


def label_lines(item: Item) -> list[Line]:
    """The lines in the box of a node, or of a closed scope."""
    return list(_of_node(item) if isinstance(item, Leaf) else _of_scope(item))


def _of_node(leaf: Leaf) -> Iterator[Line]:
    node = leaf.node
    yield Line("name", shortened(leaf.label) or "''")
    if re.sub(r"_\d+$", "", leaf.label) != node.op:
        yield Line("op", shortened(node.op))
    if node.outputs:
        more = f" +{len(node.outputs) - 1}" if len(node.outputs) > 1 else ""
        yield Line("shape", f"{shortened(node.outputs[0])}{more}")
    shown = node.folded if len(node.folded) <= _MOST_FOLDED else node.folded[: _MOST_FOLDED - 1]
    for name, shape in shown:
        yield Line("folded", f"+ {shortened(_short_name(name, node.name), 20)} {shape}")
    if len(node.folded) > len(shown):
        yield Line("folded", f"+ {len(node.folded) - len(shown)} more constants")


def _short_name(name: str, taker: str) -> str:
    """The short name of a constant: its name in the scope of the node that takes it, or the name's end."""
    for scope in (f"{taker}/", f"{taker.rpartition('/')[0]}/"):
        if name.startswith(scope):
            return name.removeprefix(scope)
    return "/".join(name.split("/")[-2:])


def _of_scope(scope: Scope) -> Iterator[Line]:
    nodes = [leaf.node for leaf in scope.leaves()]
    if scope.is_part:
        first, _, last = scope.label.partition(" … ")
        yield Line("name", shortened(first))
        yield Line("name", f"… {shortened(last)}")
    else:
        yield Line("name", shortened(f"{scope.label}/"))
    yield Line("op", f"{len(nodes):,} nodes")
    common = Counter(node.op for node in nodes).most_common(2)
    yield Line("shape", shortened(", ".join(op for op, _ in common)))


def box_kind(node: Node) -> str:
    """The kind of a box, which says its colour."""
    if node.is_missing:
        return "missing"
    if node.is_port or node.op in INPUT_OPS or node.op in STRUCTURAL_OPS:
        return "input"
    if node.functions or node.op in LOW_LEVEL_CONTROL_FLOW:
        return "flow"
    return "state" if node.op == "Const" else node.kind


def full_text(item: Item) -> str:
    """All that is known of a node or closed scope, a line each."""
    if isinstance(item, Scope):
        return f"{item.name:.{_LONGEST_NAME}}\n{sum(1 for _ in item.leaves()):,} nodes"
    return "\n".join(_facts(item.node))


def _facts(node: Node) -> Iterator[str]:
    yield f"{node.name:.{_LONGEST_NAME}}"
    yield f"op: {node.op:.{_LONGEST_NAME}}"
    for text in node.outputs:
        yield f"gives: {text}"
    takes = [text for _, text in node.inputs]
    for text in takes[:_MOST_LISTED]:
        yield f"takes: {text:.{_LONGEST_NAME}}"
    if len(takes) > _MOST_LISTED:
        yield f"takes {len(takes) - _MOST_LISTED} more"
    yield from node.details
