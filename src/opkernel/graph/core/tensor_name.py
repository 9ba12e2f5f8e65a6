"""The names of nodes and tensors: `scope/node`, `scope/node:1`, `^scope/node`.

Source: TensorFlow core/graph/tensor_id.cc, core/graph/graph_constructor.cc (IsValidNodeName).
"""

import re
from collections.abc import Container

CONTROL_SLOT = -1
"""The output index that stands for a control edge."""

_REST = r"[A-Za-z0-9_.\-/]*"
_FURTHER_PIECES = rf"(?:>[A-Za-z0-9.]{_REST})*"
_NODE_NAME = re.compile(rf"[A-Za-z0-9.]{_REST}{_FURTHER_PIECES}")


def is_valid_node_name(name: str, *, allow_internal: bool = False) -> bool:
    """Whether a node can have this name; internal names may also start with an underscore."""
    if allow_internal and name.startswith("_"):
        name = name.replace("_", ".", 1)
    return _NODE_NAME.fullmatch(name) is not None


def parse_tensor_name(text: str) -> tuple[str, int]:
    """The node and output index of a name as TensorFlow's ParseTensorName gives them.

    Of an index it keeps the lower 32 bits; one of more than 64 bits is part of the node's name.
    """
    node, index = parse_input(text)
    if index >= 1 << 64:
        return text, 0
    return node, (index + (1 << 31)) % (1 << 32) - (1 << 31)


def parse_input(text: str) -> tuple[str, int]:
    """The node and output index that the input of a node, a feed or a fetch names.

    `a` is output 0 of `a`, `a:1` its output 1, `^a` the control edge from it (CONTROL_SLOT).
    Any other text is taken as the name of a node, which does not exist. An index that is too large
    for TensorFlow is kept, and finds no tensor.
    """
    node, colon, index = text.rpartition(":")
    if colon and index.isascii() and index.isdigit():
        return node, int((index.lstrip("0") or "0")[:21])
    if text.startswith("^"):
        return text[1:], CONTROL_SLOT
    return text, 0


def free_name(wanted: str, taken: Container[str]) -> str:
    """The name, or the first `name_N` that is not taken."""
    name, number = wanted, 0
    while name in taken:
        number += 1
        name = f"{wanted}_{number}"
    return name


def format_input(node: str, index: int) -> str:
    """The shortest text for a node's input, as TensorFlow writes it into a NodeDef."""
    if index == CONTROL_SLOT:
        return f"^{node}"
    return node if index == 0 else f"{node}:{index}"
