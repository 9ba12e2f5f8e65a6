"""Graphs by way of GraphDefs: import_graph_def, copies of graphs, and graphs in pickles.

What a GraphDef does not say goes beside it in a copy: the ops of the registry, collections, whether the graph is
finalized. Shapes that were set by hand and the places of definitions stay behind. A GraphDef may have attrs that its
producer knew and this consumer does not; they are removed where they have their defaults.

Source: TensorFlow python/framework/importer.py, core/framework/graph_def_util.cc.
"""

from __future__ import annotations

import copy
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import nullcontext
from typing import Any

from google.protobuf.message import EncodeError

from opkernel.device.permissions import Permissions, mark_of, without_origins
from opkernel.errors import InvalidArgumentError
from opkernel.graph.core.create_op import as_tensor
from opkernel.graph.core.default_graph import get_default_graph
from opkernel.graph.core.graph import Graph
from opkernel.graph.core.operation import Operation, as_operation
from opkernel.graph.core.tensor import Tensor
from opkernel.graph.core.tensor_name import CONTROL_SLOT, parse_input
from opkernel.graph.functions.function_library import known_op
from opkernel.graph.io.graph_files import serialized_graph_def
from opkernel.graph.io.importer import GraphImporter, ImportOptions, Source
from opkernel.messages import short_repr
from opkernel.opdef import (
    OpRegistrationData,
    OpRegistry,
    are_attr_values_equal,
    global_op_registry,
    remove_descriptions_from_op_list,
)
from opkernel.proto import DecodeError, GraphDef, NodeDef, OpList


def remove_new_default_attrs(
    graph_def: GraphDef,
    producer_ops: OpList,
    look_up: Callable[[str], OpRegistrationData],
) -> set[tuple[str, str]]:
    """Drop attrs that ops here do not have, where they have the default of the producer.

    Attrs whose names start with an underscore belong to no op and stay. What is left with another
    value makes the node invalid when it is imported.

    Args:
        graph_def: is changed, its functions included.
        producer_ops: the ops as the producer knew them.
        look_up: gives the ops as they are here.

    Returns:
        The (op, attr) pairs that were dropped.
    """
    defaults = {
        op.name: {attr.name: attr for attr in op.attr if attr.HasField("default_value")}
        for op in producer_ops.op
    }
    removed = set()
    for node in _all_nodes(graph_def):
        op_def = known_op(look_up, node.op)
        known = None if op_def is None else {attr.name for attr in op_def.attr}
        of_producer = defaults.get(node.op, {})
        for name in [n for n in node.attr if n in of_producer and not n.startswith("_")]:
            if known is None or name in known:
                continue
            if are_attr_values_equal(node.attr[name], of_producer[name].default_value):
                del node.attr[name]
                removed.add((node.op, name))
    return removed


def ops_used_by_graph(graph_def: GraphDef) -> Counter[str]:
    """How many nodes of a graph and of its functions are of which op; calls are not counted."""
    functions = {function.signature.name for function in graph_def.library.function}
    return Counter(node.op for node in _all_nodes(graph_def) if node.op not in functions)


def stripped_op_list_for_graph(
    graph_def: GraphDef, look_up: Callable[[str], OpRegistrationData]
) -> OpList:
    """The ops that a graph and its functions use, ordered by name; ops not registered are left out."""
    names = sorted(ops_used_by_graph(graph_def))
    ops = OpList(op=filter(None, [known_op(look_up, name) for name in names]))
    remove_descriptions_from_op_list(ops)
    return ops


def _all_nodes(graph_def: GraphDef) -> Iterator[NodeDef]:
    yield from graph_def.node
    for function in graph_def.library.function:
        yield from function.node_def


def import_graph_def(
    graph_def: GraphDef,
    *,
    input_map: Mapping[str, Any] | None = None,
    return_elements: Sequence[str] | None = None,
    name: str | None = "import",
    graph: Graph | None = None,
    producer_op_list: OpList | None = None,
    validate_colocation_constraints: bool = True,
    allow_unregistered: bool = False,
    permissions: Permissions | None = None,
) -> list[Tensor | Operation] | None:
    """Add the nodes and functions of a GraphDef to a graph, in time linear in its size.

    Shapes are inferred when they are first asked for. On an error the graph stays as it was.

    Args:
        graph_def: the message; it is not changed.
        input_map: what to connect inputs to instead: names in the GraphDef (`x:0`, or `^x` for
            control inputs) to tensors, operations or values.
        return_elements: the tensors (`x:0`) and operations (`x`) to return.
        name: stands before the names of the nodes, made unique; "" leaves names as they are, but
            for those that are taken.
        graph: the graph to add to; the default graph if there is none.
        producer_op_list: the ops that the producer knew; attrs that ops here do not have are
            dropped where they have the producer's default.
        validate_colocation_constraints: refuse colocation with nodes that do not exist.
        allow_unregistered: keep nodes whose op is not registered, with unknown types. They can be
            looked at, and not run.
        permissions: which files its nodes may read and write, wherever they run. Without it they may what a
            Session allows its graph, and nothing where Python calls the function that is being traced.

    Returns:
        The elements asked for, in their order; None if none were asked for.

    Raises:
        InvalidArgumentError: a node, an edge, an attr or a version breaks a rule.
        NotFoundError: an op is not registered.
        UnimplementedError: an op was removed before the version of the GraphDef.
        FailedPreconditionError: the graph is finalized.
    """
    graph = get_default_graph() if graph is None else graph
    owned = _owned(graph_def, producer_op_list, graph)
    scope = nullcontext("") if name == "" else graph.name_scope(name or "import")
    with graph.lock, scope as prefix:
        options = ImportOptions(
            prefix=prefix.removesuffix("/"),
            uniquify_names=True,
            input_map=_sources(graph, input_map or {}),
            validate_colocation=validate_colocation_constraints,
            allow_unregistered=allow_unregistered,
            fill_empty_attrs=True,
            origin=b"" if permissions is None else mark_of(permissions),
        )
        importer = GraphImporter(graph, owned, options)
        importer.prepare()
        _check_all_used(importer, options.input_map)
        returned = [_element(importer, options.input_map, one) for one in return_elements or ()]
        importer.commit()
    return None if return_elements is None else returned


def _owned(graph_def: GraphDef, producer_ops: OpList | None, graph: Graph) -> GraphDef:
    """A GraphDef of our own, from one of any library's, without the attrs that only its producer knows.

    The way over bytes is also the fastest.
    """
    if not hasattr(graph_def, "SerializeToString"):
        raise TypeError(
            f"graph_def must be a GraphDef, not {short_repr(graph_def)}; opkernel.load_graph reads files"
        )
    try:
        owned = GraphDef.FromString(graph_def.SerializeToString())
    except (DecodeError, EncodeError, ValueError) as error:
        raise InvalidArgumentError(f"The GraphDef cannot be read: {error}") from error
    if producer_ops is not None:
        remove_new_default_attrs(owned, producer_ops, graph.function_library.look_up)
    return owned


def _sources(graph: Graph, input_map: Mapping[str, Any]) -> dict[tuple[str, int], Source]:
    """The sources by the inputs for which they are given."""
    sources = {}
    for key, value in input_map.items():
        if not isinstance(key, str):
            raise InvalidArgumentError(f"A key of input_map must be a name, not {short_repr(key)}")
        sources[parse_input(key)] = _as_source(graph, key, value)
    return sources


def _as_source(graph: Graph, key: str, value: Any) -> Source:
    if key.startswith("^"):
        source: Source = as_operation(value)
    elif isinstance(value, Operation):
        raise InvalidArgumentError(
            f"input_map entry {key}->^{value.name} between control edge and non-control edge"
        )
    else:
        source = as_tensor(graph, "input_map", value, "value", None)
    graph.check_own(as_operation(source), f"value of input_map for {key!r}")
    return source


def _check_all_used(importer: GraphImporter, sources: Mapping[tuple[str, int], Source]) -> None:
    """Refuse keys that name neither an input that was mapped nor an output of a node."""
    unknown = [
        f"^{name}" if index == CONTROL_SLOT else f"{name}:{index}"
        for name, index in sources
        if (name, index) not in importer.used and importer.find(name, index) is None
    ]
    if unknown:
        raise InvalidArgumentError(
            f"Attempted to map inputs that were not found in graph_def: [{', '.join(unknown)}]"
        )


def _element(
    importer: GraphImporter, sources: Mapping[tuple[str, int], Source], element: str
) -> Tensor | Operation:
    """A returned element; for a mapped tensor, the tensor in its place."""
    if not isinstance(element, str):
        raise InvalidArgumentError(f"return_elements must be names, not {short_repr(element)}")
    if ":" not in element:
        if element not in importer.by_name:
            raise InvalidArgumentError(f"Requested return node '{element}' not found in graph def")
        return importer.by_name[element]
    name, index = parse_input(element)
    found = sources.get((name, index))
    found = importer.find(name, index) if found is None else found
    if found is None or index == CONTROL_SLOT:
        node = importer.by_name.get(name)
        raise InvalidArgumentError(
            f"Requested return tensor '{element}' not found in graph def"
            if node is None
            else f"Invalid return output {index} of node '{name}', which has "
            f"{len(node.outputs)} output(s)"
        )
    return found


def copied_graph(graph: Graph, memo: dict[int, Any]) -> Graph:
    """A copy of a graph, over the same registry of ops; what `memo` has of it is not copied again."""
    made = _graph_of(graph.as_graph_def(), graph.op_registry, origin=None)
    memo[id(graph)] = made
    _set_state(made, copy.deepcopy(_state(graph), memo))
    return made


def pickled_graph(graph: Graph) -> tuple[Any, ...]:
    """What a pickle holds of a graph, as `__reduce__` gives it.

    Raises:
        InvalidArgumentError: the graph is too large for a protocol buffer (2 GiB).
    """
    graph_def = without_origins(graph.as_graph_def())
    used = [known_op(graph.op_registry.look_up, name) for name in ops_used_by_graph(graph_def)]
    ops = OpList(op=filter(None, used))
    data = serialized_graph_def(graph_def), ops.SerializeToString()
    return _unpickled_graph, data, _state(graph), None, None, _set_state


def _unpickled_graph(graph_def: bytes, ops: bytes) -> Graph:
    """The graph of a pickle."""
    registry = _registry_for(OpList.FromString(ops))
    return _graph_of(GraphDef.FromString(graph_def), registry, origin=b"")


def _graph_of(graph_def: GraphDef, registry: OpRegistry, origin: bytes | None) -> Graph:
    graph = Graph(registry)
    graph.graph_def_versions.CopyFrom(graph_def.versions)
    options = ImportOptions(
        validate_colocation=False,
        allow_internal_names=True,
        allow_unregistered=True,
        origin=origin,
    )
    GraphImporter(graph, graph_def, options).prepare().commit()
    return graph


def _registry_for(ops: OpList) -> OpRegistry:
    """The process's registry if it has these ops, else a new one with their known declarations."""
    own, registry = global_op_registry(), OpRegistry()
    known = {op.name for op in ops.op if op == known_op(own.look_up, op.name)}
    if len(known) == len(ops.op):
        return own
    for op in ops.op:
        registry.register(own.look_up(op.name) if op.name in known else OpRegistrationData(op))
    return registry


def _state(graph: Graph) -> dict[str, Any]:
    collections = {name: graph.get_collection(name) for name in graph.get_all_collection_keys()}
    return {"collections": collections, "finalized": graph.finalized}


def _set_state(graph: Graph, state: dict[str, Any]) -> None:
    for name, values in state["collections"].items():
        graph.get_collection_ref(name).extend(values)
    graph.finalized = state["finalized"]
