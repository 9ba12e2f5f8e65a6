"""Functions as text that people can read.

    (x:float) -> (y:float) {
      a = Square[T=float](x)
      y = Add[T=float](a, a) @ n
    }

Source: TensorFlow core/framework/function.cc (Print, DebugString).
"""

from __future__ import annotations

from collections.abc import Iterable

from opkernel.graph.core.structural_ops import ARG_OPS, RETVAL_OPS
from opkernel.opdef import summarize_attr_value
from opkernel.proto import AttrValue, NodeDef
from opkernel.types import DataType


def print_instantiated(nodes: Iterable[NodeDef]) -> str:
    """The nodes of an instantiated function: arguments, results, and a line for each node."""
    nodes = list(nodes)
    arguments = _by_index(nodes, ARG_OPS)
    results = _by_index(nodes, RETVAL_OPS)
    body = [node for node in nodes if node.op not in ARG_OPS | RETVAL_OPS]
    takes = ", ".join(f"{node.name}:{_type(node)}" for node in arguments)
    gives = ", ".join(f"{node.input[0]}:{_type(node)}" for node in results)
    lines = "".join(f"  {print_node(node)}\n" for node in body)
    return f"\n({takes}) -> ({gives}) {{\n{lines}}}\n"


def print_node(node: NodeDef) -> str:
    """A node as an assignment: attrs in brackets, inputs in parentheses, control inputs after @."""
    attrs = ", ".join(f"{name}={print_attr_value(node.attr[name])}" for name in sorted(node.attr))
    inputs = ", ".join(text for text in node.input if not text.startswith("^"))
    controls = ", ".join(text[1:] for text in node.input if text.startswith("^"))
    bracketed = f"[{attrs}]" if attrs else ""
    return f"{node.name} = {node.op}{bracketed}({inputs})" + (f" @ {controls}" if controls else "")


def print_attr_value(value: AttrValue) -> str:
    """The value of an attr; types by their short names, functions with their attrs in brackets."""
    if value.HasField("type"):
        return DataType(value.type).string
    if value.HasField("list") and value.list.type:
        return "{" + ", ".join(DataType(number).string for number in value.list.type) + "}"
    if value.HasField("func"):
        attrs = value.func.attr
        parts = ", ".join(f"{name}={print_attr_value(attrs[name])}" for name in sorted(attrs))
        return f"{value.func.name}[{parts}]" if parts else value.func.name
    return summarize_attr_value(value)


def _by_index(nodes: list[NodeDef], op_types: frozenset[str]) -> list[NodeDef]:
    chosen = [node for node in nodes if node.op in op_types]
    return sorted(chosen, key=lambda node: node.attr["index"].i)


def _type(node: NodeDef) -> str:
    return DataType(node.attr["T"].type).string
