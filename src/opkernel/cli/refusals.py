"""Faults of a graph that TensorFlow's sessions refuse; the graph can be shown all the same."""

from collections.abc import Iterable

from opkernel.cli.output import abridged
from opkernel.errors import InvalidArgumentError, NotFoundError
from opkernel.graph import Graph
from opkernel.proto import NodeDef
from opkernel.runtime.placement.device_set import DeviceSet


def refusals(graph: Graph, nodes: Iterable[NodeDef]) -> list[str]:
    """A sentence for each reason to refuse a graph; `nodes` includes the nodes of its functions."""
    internal = [op.name for op in graph.get_operations() if op.name.startswith("_")]
    callers = {function: node.name for node in nodes for function in _functions(node)}
    missing = [one for one in callers if not _is_known(graph, one)]
    found = []
    if internal:
        found.append(
            "names that start with an underscore are TensorFlow's own, and its importer takes none: "
            f"{abridged(map(repr, internal))}"
        )
    if missing:
        named = [f"{one!r} (node {callers[one]!r})" for one in missing]
        found.append(f"functions are called that the graph does not have: {abridged(named)}")
    devices = _missing_devices(graph)
    if devices:
        named = [f"{one!r} (node {node!r})" for one, node in devices.items()]
        found.append(f"it takes further devices, or soft placement: {abridged(named)}")
    return found


def _missing_devices(graph: Graph) -> dict[str, str]:
    """The devices that nodes ask for and a session with default options lacks, each with a node."""
    asking = [op for op in graph.get_operations() if op.device]
    missing: dict[str, str] = {}
    if asking:
        devices = DeviceSet.of_session({})
        devices.include(asking)
        for op in asking:
            try:
                devices.candidates(op)
            except InvalidArgumentError:
                missing.setdefault(op.device, op.name)
    return missing


def _functions(node: NodeDef) -> list[str]:
    """The functions that the attrs of a node name."""
    values = [
        value for value in node.attr.values() if value.WhichOneof("value") in ("func", "list")
    ]
    every = [one for value in values for one in (value.func, *value.list.func)]
    return [one.name for one in every if one.name]


def _is_known(graph: Graph, name: str) -> bool:
    """Whether a function or op of this name, whose gradient may be asked for, exists."""
    try:
        graph.function_library.look_up(name)
    except NotFoundError:
        return False
    return True
