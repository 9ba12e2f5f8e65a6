"""import_graph_def: add the nodes of a GraphDef to a graph.

Source: TensorFlow python/framework/importer.py.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from typing import Any

from google.protobuf.message import EncodeError

from opkernel.device.origins import mark_of
from opkernel.device.permissions import Permissions
from opkernel.errors import InvalidArgumentError
from opkernel.graph.core.create_op import as_tensor
from opkernel.graph.core.default_graph import get_default_graph
from opkernel.graph.core.graph import Graph
from opkernel.graph.core.operation import Operation, as_operation
from opkernel.graph.core.tensor import Tensor
from opkernel.graph.core.tensor_name import CONTROL_SLOT, parse_input
from opkernel.graph.io.importer import GraphImporter, ImportOptions, Source
from opkernel.graph.io.producer_ops import remove_new_default_attrs
from opkernel.messages import short_repr
from opkernel.proto import DecodeError, GraphDef, OpList


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
    owned = _copy(graph_def)
    if producer_op_list is not None:
        remove_new_default_attrs(owned, producer_op_list, graph.function_library.look_up)
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
        returned = _imported(GraphImporter(graph, owned, options), options, return_elements or ())
    return None if return_elements is None else returned


def _imported(
    importer: GraphImporter, options: ImportOptions, elements: Sequence[str]
) -> list[Tensor | Operation]:
    """The elements asked for, of nodes that an importer has added to its graph."""
    importer.prepare()
    _check_all_used(importer, options.input_map)
    returned = [_element(importer, options.input_map, element) for element in elements]
    importer.commit()
    return returned


def _copy(graph_def: GraphDef) -> GraphDef:
    """A GraphDef of our own, from one of any library's; the way over bytes is also the fastest."""
    if not hasattr(graph_def, "SerializeToString"):
        raise TypeError(
            f"graph_def must be a GraphDef, not {short_repr(graph_def)}; opkernel.load_graph reads files"
        )
    try:
        return GraphDef.FromString(graph_def.SerializeToString())
    except (DecodeError, EncodeError, ValueError) as error:
        raise InvalidArgumentError(f"The GraphDef cannot be read: {error}") from error


def _sources(graph: Graph, input_map: Mapping[str, Any]) -> dict[tuple[str, int], Source]:
    return {_parse_key(key): _as_source(graph, key, value) for key, value in input_map.items()}


def _parse_key(key: str) -> tuple[str, int]:
    if not isinstance(key, str):
        raise InvalidArgumentError(f"A key of input_map must be a name, not {short_repr(key)}")
    return parse_input(key)


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
