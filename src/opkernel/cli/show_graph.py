"""What is known of a graph without running it, and how `opkernel show` prints it: inputs, outputs, ops, which of these cannot run."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any

from opkernel.cli.nodes import all_nodes, nodes_of, slim
from opkernel.cli.options import HINT
from opkernel.cli.output import (
    abridged,
    bad,
    counted,
    echo,
    one_line,
    print_json,
    print_table,
    print_text,
    size_text,
)
from opkernel.cli.signature import graph_outputs, split_by_need
from opkernel.device.device_factory import offered_device_types
from opkernel.errors import InvalidArgumentError, NotFoundError, OpError
from opkernel.graph import Graph, GraphShapes, Tensor
from opkernel.graph.functions.function_library import functions_named_by
from opkernel.kernel import get_registered_kernels_for_op, kernel_def_available
from opkernel.kernel.missing_extras import MissingExtra, missing_extras
from opkernel.opdef import add_defaults_to_node_def
from opkernel.proto import GraphDef, NodeDef
from opkernel.runtime.placement.placer import DeviceSet
from opkernel.runtime.plan.functional_ops import RUN_BY_EXECUTORS
from opkernel.types import DataType, PartialTensorShape, TensorShape
from opkernel.types.tensor import holds_values

_TENSORS = {
    "inputs": "Inputs",
    "unused_inputs": "Inputs that no output needs",
    "outputs": "Outputs",
}


def graph_facts(graph: Graph) -> dict[str, Any]:
    """The facts of a graph."""
    nodes = [node for _, node in nodes_of(graph)]
    shapes, contradiction = inferred_shapes(graph)
    refused = refusals(graph, nodes)
    inputs, unused = split_by_need(graph)
    weight_bytes, missing = _constant_bytes(nodes)
    return {
        "producer": graph.graph_def_versions.producer,
        "nodes": len(graph.get_operations()),
        "functions": len(graph.function_library),
        "weight_bytes": weight_bytes,
        **({"missing_weight_bytes": missing} if missing > weight_bytes else {}),
        "inputs": [_described(tensor, shapes) for tensor in inputs],
        **({"unused_inputs": [_described(t, shapes) for t in unused]} if unused else {}),
        "outputs": [_described(tensor, shapes) for tensor in graph_outputs(graph)],
        "ops": op_counts(nodes),
        **running_facts(graph, nodes),
        **({} if contradiction is None else {"contradiction": contradiction}),
        **({"refused": refused} if refused else {}),
    }


def facts_of_nodes(graph_def: GraphDef) -> dict[str, Any]:
    """The facts of nodes that make no graph."""
    nodes = [*all_nodes(graph_def)]
    return {
        "producer": graph_def.versions.producer,
        "nodes": len(graph_def.node),
        "functions": len(graph_def.library.function),
        "weight_bytes": sum(node.attr["value"].ByteSize() for node in nodes if node.op == "Const"),
        "ops": op_counts(nodes),
    }


def op_counts(nodes: Iterable[NodeDef]) -> dict[str, int]:
    """How many nodes of each op there are, the most first."""
    return dict(Counter(node.op for node in nodes).most_common())


def inferred_shapes(graph: Graph) -> tuple[GraphShapes | None, str | None]:
    """The shapes of the graph; none, and the reason, where they contradict each other."""
    try:
        return graph.infer_shapes(), None
    except OpError as error:
        return None, error.message


def _described(tensor: Tensor, shapes: GraphShapes | None) -> dict[str, Any]:
    dims = None if shapes is None else shapes[tensor].dims
    return {"name": tensor.name, "dtype": tensor.dtype.tf_name, "shape": dims}


def _constant_bytes(nodes: Iterable[NodeDef]) -> tuple[int, int]:
    """The size of the constants, of their elements or strings; and the size of those that have no values."""
    sizes = {True: 0, False: 0}
    for node in nodes:
        if node.op != "Const":
            continue
        tensor = node.attr["value"].tensor
        if tensor.dtype == DataType.DT_STRING:
            sizes[True] += sum(map(len, tensor.string_val))
        else:
            shape = TensorShape.from_proto(tensor.tensor_shape)
            sizes[holds_values(tensor)] += math.prod(shape) * DataType(tensor.dtype).size
    return sizes[True], sizes[False]


# Which ops cannot run, and which graphs TensorFlow refuses.


def running_facts(graph: Graph, nodes: Sequence[NodeDef]) -> dict[str, Any]:
    """The ops of nodes that cannot run, and the extras that nodes need and that are not installed, if there are any."""
    extras = [one.as_json() for one in missing_extras(nodes)]
    return {
        "not_runnable": not_runnable(graph, nodes),
        **({"missing_extras": extras} if extras else {}),
    }


def not_runnable(graph: Graph, nodes: Sequence[NodeDef]) -> dict[str, str]:
    """The ops of nodes that cannot run, each with the reason of the first of its nodes."""
    reasons: dict[str, str] = {}
    examined = set()
    for node in nodes:
        if node.op in reasons or node.op in RUN_BY_EXECUTORS or node.op in graph.function_library:
            continue
        light = slim(node)
        attrs = [(name, value.SerializeToString()) for name, value in light.attr.items()]
        kind = node.op, frozenset(attrs)  # the same kernel fits all nodes of a kind
        if kind not in examined:
            examined.add(kind)
            reason = _reason_not_to_run(graph, light)
            if reason is not None:
                reasons[node.op] = reason
    return reasons


def _reason_not_to_run(graph: Graph, node: NodeDef) -> str | None:
    try:
        op_def = graph.op_registry.look_up_op_def(node.op)
    except NotFoundError:
        return "unknown op"
    if graph.op_registry.traits(node.op).runs_python and "token" in node.attr:
        return "needs a function of a program"
    add_defaults_to_node_def(node, op_def)
    if any(kernel_def_available(device_type, node) for device_type in offered_device_types()):
        return None
    types = {
        name: DataType(value.type).string
        for name, value in sorted(node.attr.items())
        if value.WhichOneof("value") == "type"
    }
    if not get_registered_kernels_for_op(node.op).kernel or not types:
        return "no CPU kernel"
    return f"no CPU kernel for {', '.join(f'{name} = {dtype}' for name, dtype in types.items())}"


def refusals(graph: Graph, nodes: Iterable[NodeDef]) -> list[str]:
    """A sentence for each reason of TensorFlow's sessions to refuse a graph; it can be shown all the same.

    `nodes` includes the nodes of its functions.
    """
    internal = [op.name for op in graph.get_operations() if op.name.startswith("_")]
    callers = {
        function: node.name
        for node in nodes
        for function in functions_named_by(node)[1:]  # the first is its op
        if function
    }
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


def _is_known(graph: Graph, name: str) -> bool:
    """Whether a function or op of this name, whose gradient may be asked for, exists."""
    try:
        graph.function_library.look_up(name)
    except NotFoundError:
        return False
    return True


# For people.


def print_file(facts: dict[str, Any]) -> None:
    """Print what a file is."""
    print_text(f"{one_line(facts['file'])}: {facts['kind']}, {size_text(facts['file_bytes'])}")


def print_graph(facts: dict[str, Any]) -> None:
    """Print the facts of a graph."""
    print_file(facts)
    print_text(
        f"{counted(facts['nodes'], 'node')}, {counted(facts['functions'], 'function')}, "
        f"{size_text(facts['weight_bytes'])} of weights, producer version {facts['producer']}"
    )
    if "missing_weight_bytes" in facts:
        size = size_text(facts["missing_weight_bytes"])
        print_text(
            f"Warning: constants of {size} have no values, and count as zeros. The weights were taken out of this file: "
            f"look for the file that it was made from, or for files of weights beside it."
        )
    for what in filter(facts.__contains__, _TENSORS):
        rows = [(t["name"], t["dtype"], PartialTensorShape(t["shape"])) for t in facts[what]]
        echo()
        print_table(_TENSORS[what], ("tensor", "type", "shape"), rows)
    echo()
    print_ops(facts)
    if "contradiction" in facts:
        echo()
        print_text(f"The shapes contradict each other: {facts['contradiction']}")
    if "not_runnable" in facts:
        print_refusals(facts)
        echo()
        print_runnable(facts)


def print_refusals(facts: dict[str, Any]) -> None:
    """Print why a session of TensorFlow refuses a graph, if it does."""
    for refused in facts.get("refused", ()):
        echo()
        print_text(f"A session of TensorFlow refuses it: {refused}")


def print_ops(facts: dict[str, Any]) -> None:
    """Print the table of ops."""
    missing: dict[str, str] = facts.get("not_runnable", {})
    rows = [(op, count, bad(missing.get(op, ""))) for op, count in facts["ops"].items()]
    print_table("Ops", ("op", "nodes", "not runnable"), rows)


def print_runnable(facts: dict[str, Any]) -> None:
    """Print which ops cannot run, and the extras that are missing, from the facts of `running_facts`."""
    missing, extras = facts["not_runnable"], facts.get("missing_extras", ())
    if missing:
        hint = f" (unknown ops: {HINT})" if "unknown op" in missing.values() else ""
        print_text(f"Not runnable yet: {', '.join(map(one_line, sorted(missing)))}{hint}")
    elif not any(one["certain"] for one in extras):
        echo("Every op can run.")
    print_missing_extras(extras)


def print_missing_extras(extras: Sequence[dict[str, Any]]) -> None:
    """Print the extras that a model needs and that are not installed."""
    for one in extras:
        print_text(f"It {MissingExtra(one['extra'], one['ops'], one['certain'])}.")


def show_ops(facts: dict[str, Any], as_json: bool) -> None:
    """Print the ops alone."""
    if as_json:
        missing = facts.get("not_runnable", {})
        ops = facts["ops"].items()
        print_json([{"op": op, "nodes": n, "not_runnable": missing.get(op)} for op, n in ops])
    else:
        print_ops(facts)
