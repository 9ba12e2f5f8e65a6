"""Which parts of a MetaGraph need which nodes: its signatures, its initialisation, its Saver, calls from Python."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from functools import cached_property
from typing import Any

from opkernel.cli.signature_ports import ports_of, signature_names
from opkernel.proto import FunctionDef, MetaGraphDef, NodeDef
from opkernel.records import dataclass

INITIALIZATION, RESTORE, SAVE, PYTHON = "initialization", "restore", "save", "calls from Python"
_MAX_USES = 20
_INIT_OP = "__saved_model_init_op"
_INIT_OP_COLLECTIONS = ("saved_model_main_op", "legacy_init_op")


@dataclass(frozen=True)
class Use:
    """A node of a graph or of a function.

    Attributes:
        place: its name; FUNCTION/NODE in a function.
        node: the node.
        needed_by: the parts of the MetaGraph that need it.
        nodes: the nodes of its graph or function, by name.
        assets: the nodes and arguments of its graph or function that are assets of the model.
    """

    place: str
    node: NodeDef
    needed_by: list[str]
    nodes: Mapping[str, NodeDef]
    assets: frozenset[str]


class MetaGraphNeeds:
    """Finds the nodes of ops, and which parts of a MetaGraph need them.

    Messages are followed, not graphs: also where the nodes make no graph.
    """

    def __init__(self, meta_graph: MetaGraphDef) -> None:
        self._meta_graph = meta_graph
        self._nodes = {node.name: node for node in meta_graph.graph_def.node}
        self._functions = {one.signature.name: one for one in meta_graph.graph_def.library.function}
        self._called: dict[str, frozenset[str]] = {}

    def ops(self) -> set[str]:
        """The ops of all nodes, in the graph and in its functions."""
        nodes = [self._nodes.values(), *(one.node_def for one in self._functions.values())]
        return {node.op for some in nodes for node in some}

    def uses(self, ops: Collection[str]) -> Iterator[Use]:
        """The nodes of some ops, in the graph and in its functions."""
        for name, node in self._nodes.items():
            if node.op in ops:
                needed_by = [part for part, (nodes, _) in self._parts.items() if name in nodes]
                yield Use(name, node, needed_by, self._nodes, self._assets)
        for function, definition in self._functions.items():
            found = [node for node in definition.node_def if node.op in ops]
            if found:
                needed_by = [part for part, (_, some) in self._parts.items() if function in some]
                nodes = {node.name: node for node in definition.node_def}
                assets = self._assets_taken(definition)
                for node in found:
                    yield Use(f"{function}/{node.name}", node, needed_by, nodes, assets)

    def uses_in_short(self, op: str) -> dict[str, Any]:
        """The first nodes of an op, their number, and the parts of the MetaGraph that need them."""
        uses = [*self.uses({op})]
        return {
            "nodes": [use.place for use in uses[:_MAX_USES]],
            "count": len(uses),
            "needed_by": [*dict.fromkeys(part for use in uses for part in use.needed_by)],
        }

    @cached_property
    def _assets(self) -> frozenset[str]:
        """The nodes of the graph that give the paths of assets."""
        listed = self._meta_graph.asset_file_def
        return frozenset(_node_name(asset.tensor_info.name) for asset in listed)

    def _assets_taken(self, function: FunctionDef) -> frozenset[str]:
        """The arguments of a function that its object takes from assets."""
        objects = self._meta_graph.object_graph_def
        name, arguments = function.signature.name, function.signature.input_arg
        if name not in objects.concrete_functions:
            return frozenset()
        bound = objects.concrete_functions[name].bound_inputs
        taken = zip(reversed(arguments), reversed(bound), strict=False)
        count = len(objects.nodes)
        return frozenset(
            argument.name
            for argument, number in taken
            if 0 <= number < count and objects.nodes[number].WhichOneof("kind") == "asset"
        )

    @cached_property
    def _parts(self) -> dict[str, tuple[frozenset[str], frozenset[str]]]:
        """The nodes and functions that each part needs."""
        parts = {name: self._closure(roots) for name, roots in self._roots().items() if roots}
        concrete = self._meta_graph.object_graph_def.concrete_functions
        by_name = frozenset[str]().union(*[functions for _, functions in parts.values()])
        parts[PYTHON] = frozenset(), self._reached(concrete) - by_name
        return parts

    def _roots(self) -> dict[str, list[str]]:
        signatures, saver = self._meta_graph.signature_def, self._meta_graph.saver_def
        roots = {
            name: [port.tensor for port in ports_of(signatures[name].outputs)]
            for name in signature_names(self._meta_graph)
        }
        roots[INITIALIZATION] = [*self._initial()]
        roots[RESTORE] = [saver.restore_op_name] if saver.restore_op_name else []
        roots[SAVE] = [saver.save_tensor_name] if saver.save_tensor_name else []
        return roots

    def _initial(self) -> Iterable[str]:
        if _INIT_OP in self._meta_graph.signature_def:
            definition = self._meta_graph.signature_def[_INIT_OP]
            return [info.name for info in definition.outputs.values()]
        for collection in _INIT_OP_COLLECTIONS:
            if collection in self._meta_graph.collection_def:
                return self._meta_graph.collection_def[collection].node_list.value
        return []

    def _closure(self, roots: Iterable[str]) -> tuple[frozenset[str], frozenset[str]]:
        """What some tensors and operations need: nodes, and functions."""
        found: dict[str, NodeDef] = {}
        waiting = [*map(_node_name, roots)]
        while waiting:
            name = waiting.pop()
            if name in self._nodes and name not in found:
                found[name] = self._nodes[name]
                waiting += map(_node_name, found[name].input)
        called = {one for node in found.values() for one in self._calls(node)}
        return frozenset(found), self._reached(called)

    def _reached(self, names: Iterable[str]) -> frozenset[str]:
        """Functions, and those that they call."""
        found: set[str] = set()
        waiting = [name for name in names if name in self._functions]
        while waiting:
            name = waiting.pop()
            if name not in found:
                found.add(name)
                waiting += self._called_by(name)
        return frozenset(found)

    def _called_by(self, function: str) -> frozenset[str]:
        if function not in self._called:
            definition: FunctionDef = self._functions[function]
            calls = [one for node in definition.node_def for one in self._calls(node)]
            self._called[function] = frozenset(calls)
        return self._called[function]

    def _calls(self, node: NodeDef) -> Iterator[str]:
        """The functions that a node names."""
        if node.op in self._functions:
            yield node.op
        for value in node.attr.values():
            kind = value.WhichOneof("value")
            named = [value.func] if kind == "func" else value.list.func if kind == "list" else ()
            yield from (one.name for one in named if one.name in self._functions)


def _node_name(tensor: str) -> str:
    """The node of a tensor, or of a control input."""
    return tensor.removeprefix("^").partition(":")[0]
