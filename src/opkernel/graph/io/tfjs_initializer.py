"""The initializer of a TensorFlow.js model, the graph that fills its tables, as part of the model's graph.

The converter writes two forms. In the older one both graphs have the nodes of the tables, under the same names. In
the newer one the initializer has the tables: the graph has a placeholder for each, and a number tells which table it
stands for.

Source: TensorFlow.js tfjs-converter/src/executor/graph_model.ts (setResourceIdToCapturedInput).
"""

from __future__ import annotations

from collections.abc import Callable

from opkernel.graph.core.tensor_name import free_name
from opkernel.graph.io.signature_names import INIT_OP_SIGNATURE
from opkernel.proto import GraphDef, MetaGraphDef, NodeDef, SignatureDef
from opkernel.types import DataType

_SCOPE = "initializer"


def add_initializer(
    meta_graph: MetaGraphDef,
    signature: SignatureDef,
    initializer: GraphDef,
    resources: tuple[dict[str, str], dict[str, str]],
) -> None:
    """Add an initializer to the graph of a model, and the operation that runs it to its signatures.

    Args:
        meta_graph: The model; is changed.
        signature: Its signature, from which the inputs that are tables are taken.
        initializer: The initializer; is changed.
        resources: The names of the graph's placeholders of tables, and those of the initializer's tensors that
            give them, by the numbers of the tables.
    """
    placeholders, givers = resources
    nodes = meta_graph.graph_def.node
    taken = {node.name for node in nodes}
    if givers:
        scope = free_name(_SCOPE, {name.partition("/")[0] for name in taken})
        added = [*initializer.node]
        _rename(added, lambda name: f"{scope}/{name}")
        by_name = {node.name: node for node in added}
        tables = {
            _node_of(placeholders[number]): _table(f"{scope}/{giver}", by_name)
            for number, giver in givers.items()
            if number in placeholders
        }
        _replace_placeholders(meta_graph.graph_def, signature, tables)
    else:
        added = [node for node in initializer.node if node.name not in taken]
    read = {_node_of(text) for node in added for text in node.input}
    ends = [node.name for node in added if node.name not in read]
    name = free_name(f"{_SCOPE}/all", {*taken, *[node.name for node in added]})
    nodes.extend(added)
    nodes.add(name=name, op="NoOp", input=[f"^{end}" for end in ends])
    meta_graph.graph_def.library.MergeFrom(initializer.library)
    meta_graph.signature_def[INIT_OP_SIGNATURE].outputs[INIT_OP_SIGNATURE].name = name


def _rename(nodes: list[NodeDef], renamed: Callable[[str], str]) -> None:
    for node in nodes:
        node.name = renamed(node.name)
        for index, text in enumerate(node.input):
            is_control = text.startswith("^")
            node.input[index] = f"^{renamed(text[1:])}" if is_control else renamed(text)


def _table(tensor: str, nodes: dict[str, NodeDef]) -> str:
    """The tensor that Identity nodes pass on: those wait until the table is full, which no step needs again."""
    for _ in nodes:
        node = nodes.get(_node_of(tensor))
        if node is None or node.op != "Identity" or not node.input:
            break
        tensor = node.input[0]
    return tensor


def _replace_placeholders(
    graph_def: GraphDef, signature: SignatureDef, tables: dict[str, str]
) -> None:
    """Put the tables in the place of their placeholders."""
    for node in graph_def.node:
        if node.name in tables:
            table = NodeDef(name=node.name, op="Identity", input=[tables[node.name]])
            table.attr["T"].type = DataType.DT_RESOURCE
            node.CopyFrom(table)
    for key, info in [*signature.inputs.items()]:
        if _node_of(info.name) in tables:
            del signature.inputs[key]


def _node_of(tensor: str) -> str:
    return tensor.removeprefix("^").partition(":")[0]
