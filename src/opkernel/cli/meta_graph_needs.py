"""Which parts of a MetaGraph need which nodes: its signatures, its initialisation, its Saver, calls from Python.

So it is known where unknown ops are used, and what a model would ask for when it runs: files, the network, Python.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from functools import cached_property
from typing import Any, NamedTuple

from opkernel.cli.model import Model
from opkernel.cli.output import abridged
from opkernel.cli.registered import find_op
from opkernel.cli.signature import ports_of, signature_names
from opkernel.graph.core.edges import reached
from opkernel.graph.functions.function_library import functions_named_by
from opkernel.graph.io.signature_names import init_op_names
from opkernel.opdef import UnregisteredOpError, global_op_registry
from opkernel.proto import FunctionDef, MetaGraphDef, NodeDef
from opkernel.types import DataType

INITIALIZATION, RESTORE, SAVE, PYTHON = "initialization", "restore", "save", "calls from Python"
_MAX_USES = 20
_REQUESTS = {
    "reads_files": "read files",
    "writes_files": "write files",
    "uses_network": "use the network",
    "runs_python": "run Python",
    "calls_host": "call the host program",
}
"""What the ops with a trait ask for; those of TensorFlow that opkernel has no kernels for, too."""
_MAX_STEPS = 100


class Use(NamedTuple):
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

    def ops(self) -> set[str]:
        """The ops of all nodes, in the graph and in its functions; calls of functions are none."""
        nodes = [self._nodes.values(), *(one.node_def for one in self._functions.values())]
        return {node.op for some in nodes for node in some} - self._functions.keys()

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

    def beside(self, signature: str | None) -> dict[str, int]:
        """How many nodes there are, in the graph and its functions, besides those that a signature needs.

        Returns:
            `others` are the nodes that other signatures and calls from Python need. `plumbing` is the rest, which
            saves, restores and initialises the model, or which nothing needs; of a model that nobody calls by name,
            only what saves, restores and initialises it.
        """
        about_model = [INITIALIZATION, RESTORE, SAVE]
        called = self._size(*[part for part in self._parts if part not in about_model])
        mine = 0 if signature is None else self._size(signature)
        rest = (
            len(self._nodes) + sum(len(one.node_def) for one in self._functions.values()) - called
        )
        return {
            "others": called - mine,
            "plumbing": rest if called else self._size(*about_model),
        }

    def _size(self, *names: str) -> int:
        """How many nodes some parts have together, in the graph and its functions."""
        parts = [self._parts[name] for name in names if name in self._parts]
        nodes = frozenset[str]().union(*[some for some, _ in parts])
        functions = frozenset[str]().union(*[some for _, some in parts])
        return len(nodes) + sum(len(self._functions[name].node_def) for name in functions)

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
        roots[INITIALIZATION] = init_op_names(self._meta_graph)
        roots[RESTORE] = [saver.restore_op_name] if saver.restore_op_name else []
        roots[SAVE] = [saver.save_tensor_name] if saver.save_tensor_name else []
        return roots

    def _closure(self, roots: Iterable[str]) -> tuple[frozenset[str], frozenset[str]]:
        """What some tensors and operations need: nodes, and functions."""

        def known(tensors: Iterable[str]) -> list[str]:
            return [name for name in map(_node_name, tensors) if name in self._nodes]

        found = reached(known(roots), lambda name: known(self._nodes[name].input))
        called = {one for name in found for one in self._calls(self._nodes[name])}
        return frozenset(found), self._reached(called)

    def _reached(self, names: Iterable[str]) -> frozenset[str]:
        """Functions, and those that they call."""
        known = [name for name in names if name in self._functions]
        return frozenset(reached(known, self._called.__getitem__))

    @cached_property
    def _called(self) -> dict[str, list[str]]:
        """The functions that each function calls."""
        return {
            name: [one for node in definition.node_def for one in self._calls(node)]
            for name, definition in self._functions.items()
        }

    def _calls(self, node: NodeDef) -> list[str]:
        """The functions that a node names."""
        return [name for name in functions_named_by(node) if name in self._functions]


def _node_name(tensor: str) -> str:
    """The node of a tensor, or of a control input."""
    return tensor.removeprefix("^").partition(":")[0]


def model_requests(needs: MetaGraphNeeds) -> list[dict[str, Any]]:
    """What the nodes of a MetaGraph ask for when it runs: files to read and write, the network, Python.

    What only the Saver needs is left out: a model may read its own variables, and nobody asks it to save.
    So is what reads an asset of the model.

    Returns:
        For each op: `what` it asks for; its `nodes`, as FUNCTION/NODE in functions; the names of `files` that
        stand in the model; and `needed_by`, the parts of the model that need them.
    """
    found: dict[str, dict[str, Any]] = {}
    for use in needs.uses({op for op in needs.ops() if _what(op)}):
        files = _files(use)
        if files is None or (use.needed_by and {RESTORE, SAVE}.issuperset(use.needed_by)):
            continue
        op = use.node.op
        request = found.setdefault(
            op, {"what": _what(op), "op": op, "nodes": [], "files": [], "needed_by": []}
        )
        request["nodes"].append(use.place)
        for what, names in (("files", files), ("needed_by", use.needed_by)):
            request[what] += [one for one in names if one not in request[what]]
    order = [*_REQUESTS.values()]
    return sorted(found.values(), key=lambda one: (order.index(one["what"]), one["op"]))


def _what(op: str) -> str:
    """What an op asks for; empty for most ops."""
    traits = global_op_registry().traits(op)
    return next((what for name, what in _REQUESTS.items() if getattr(traits, name)), "")


def _files(use: Use) -> list[str] | None:
    """The names in the model of the files that a node opens; None where it opens none but assets of the model."""
    traits = global_op_registry().traits(use.node.op)
    if traits.file_attr:
        value = use.node.attr[traits.file_attr]
        return _texts([one for one in (value.s, *value.list.s) if one]) or None
    if not (traits.reads_files or traits.writes_files):
        return []
    source = _source(use)
    if source in use.assets:
        return None
    node = use.nodes.get(source)
    return _texts(node.attr["value"].tensor.string_val) if node and node.op == "Const" else []


def _source(use: Use) -> str:
    """The node or argument that gives a node its first text, the name of its file; empty where none does."""
    op_def = find_op(use.node.op)
    args = zip(op_def.input_arg if op_def else (), use.node.input, strict=False)
    texts = (name for arg, name in args if arg.type == DataType.DT_STRING and not arg.is_ref)
    name = _node_name(next(texts, ""))
    for _ in range(_MAX_STEPS):
        node = use.nodes.get(name)
        if node is None or node.op != "Identity" or not node.input:
            break
        name = _node_name(node.input[0])
    return name


def _texts(texts: Iterable[bytes]) -> list[str]:
    return [text.decode("utf-8", "backslashreplace") for text in texts]


def name_uses(error: UnregisteredOpError, model: Model) -> None:
    """Have an error say where the SavedModel uses the ops that are not registered."""
    needs = MetaGraphNeeds(model.meta_graph)
    told = []
    for op in sorted(op for op in needs.ops() if find_op(op) is None):
        uses = [*needs.uses({op})]
        parts = dict.fromkeys(part for use in uses for part in use.needed_by)
        needed = abridged(parts) or "nothing"
        told.append(
            f"The model uses {op!r} in {abridged(use.place for use in uses)} (needed by {needed})"
        )
    error.message = f"{error.message.rstrip('.')}. {abridged(told)}"
