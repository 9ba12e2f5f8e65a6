"""`opkernel show`: the format, inputs, outputs and needs of a model file."""

import math
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click

from opkernel.cli.completion import complete_nodes, complete_ops_of_model
from opkernel.cli.exit_status import WrongUse
from opkernel.cli.html import html_options, write_page
from opkernel.cli.input_file import InputFile, load_model, model_argument
from opkernel.cli.library import HINT
from opkernel.cli.node_report import matching_nodes, node_facts, print_matching, print_node
from opkernel.cli.nodes import NodeFilter
from opkernel.cli.output import (
    bad,
    counted,
    echo,
    json_option,
    one_line,
    print_json,
    print_table,
    print_text,
    size_text,
)
from opkernel.cli.progress import progress
from opkernel.cli.refusals import refusals
from opkernel.cli.shapes import shape_text
from opkernel.cli.signature import graph_outputs, split_by_need
from opkernel.device.device_factory import device_types
from opkernel.errors import InvalidArgumentError, NotFoundError, OpError, UnimplementedError
from opkernel.graph import Graph, GraphShapes, Tensor, file_kind, load_graph_def
from opkernel.kernel import get_registered_kernels_for_op, kernel_def_available
from opkernel.opdef import add_defaults_to_node_def
from opkernel.proto import GraphDef, NodeDef
from opkernel.runtime.plan.functional_ops import STRUCTURAL_OPS
from opkernel.types import DataType, PartialTensorShape, TensorShape

__all__ = ["show"]

_TENSORS = {
    "inputs": "Inputs",
    "unused_inputs": "Inputs that no output needs",
    "outputs": "Outputs",
}


@click.command()
@model_argument
@click.argument("nodes", nargs=-1, metavar="[NODE]...", shell_complete=complete_nodes)
@click.option(
    "--op",
    metavar="OP",
    help="List the nodes of an op; may have shell wildcards.",
    shell_complete=complete_ops_of_model,
)
@click.option(
    "--name", metavar="PATTERN", help="List the nodes with this in their names, or like 'a*/b'."
)
@click.option("--scope", metavar="SCOPE", help="List the nodes of a scope or a function.")
@html_options
@json_option
def show(
    model: InputFile,
    nodes: tuple[str, ...],
    op: str | None,
    name: str | None,
    scope: str | None,
    html: Path | None,
    profile: InputFile | None,
    as_json: bool,
) -> None:
    """Show the inputs, outputs and ops of MODEL.

    Names the kind of the file, the producer, inputs and outputs with types and shapes, the ops
    and which of them cannot run yet, and the size of the weights.

    Each NODE is shown whole: attrs, inputs, who takes its outputs, shapes, kernel, and where it was
    defined, if the file tells. A node of a function is named with the function: FUNCTION/NODE.
    """
    wanted = NodeFilter(op, name, scope)
    if nodes or not wanted.is_empty:
        _show_nodes(model, nodes, wanted, as_json)
        return
    if html is not None or profile is not None:
        write_page(model, html, profile)
        return
    found, refusal = _load(model)
    facts = {
        "file": str(model),
        "kind": str(file_kind(model)),
        "file_bytes": model.size,
        **found,
    }
    if as_json:
        print_json(facts)
    else:
        _print(facts)
    if refusal is not None:
        raise refusal


def _load(model: InputFile) -> tuple[dict[str, Any], OpError | None]:
    """The facts of a file, and the error where its nodes make no graph."""
    try:
        graph = load_model(model)
    except (InvalidArgumentError, NotFoundError, UnimplementedError) as error:
        return {**_facts_of_nodes(load_graph_def(model)), "refused": [error.message]}, error
    with progress(f"Inferring shapes of {model.name}"):
        return _facts(graph), None


def _show_nodes(
    model: InputFile, names: tuple[str, ...], wanted: NodeFilter, as_json: bool
) -> None:
    """Show nodes by name, or list the nodes that a filter takes."""
    if names and not wanted.is_empty:
        raise WrongUse("--op, --name and --scope list nodes: they go without NODE")
    graph = load_model(model)
    info = load_graph_def(model).debug_info
    if names:
        found = [node_facts(graph, name, info) for name in names]
    else:
        found = matching_nodes(graph, wanted)
    if as_json:
        print_json(found)
    elif names:
        for number, facts in enumerate(found):
            echo("\n" if number else "", nl=False)
            print_node(facts)
    else:
        print_matching(found)


def _facts(graph: Graph) -> dict[str, Any]:
    nodes = list(_all_nodes(graph))
    shapes, contradiction = _shapes(graph)
    refused = refusals(graph, nodes)
    inputs, unused = split_by_need(graph)
    return {
        "producer": graph.graph_def_versions.producer,
        "nodes": len(graph.get_operations()),
        "functions": len(graph.function_library),
        "weight_bytes": sum(_constant_bytes(node) for node in nodes if node.op == "Const"),
        "inputs": [_described(tensor, shapes) for tensor in inputs],
        **({"unused_inputs": [_described(t, shapes) for t in unused]} if unused else {}),
        "outputs": [_described(tensor, shapes) for tensor in graph_outputs(graph)],
        "ops": dict(Counter(node.op for node in nodes).most_common()),
        "not_runnable": _not_runnable(graph, nodes),
        **({} if contradiction is None else {"contradiction": contradiction}),
        **({"refused": refused} if refused else {}),
    }


def _facts_of_nodes(graph_def: GraphDef) -> dict[str, Any]:
    """The facts of nodes that make no graph."""
    functions = graph_def.library.function
    nodes = [*graph_def.node, *[node for function in functions for node in function.node_def]]
    return {
        "producer": graph_def.versions.producer,
        "nodes": len(graph_def.node),
        "functions": len(functions),
        "weight_bytes": sum(node.attr["value"].ByteSize() for node in nodes if node.op == "Const"),
        "ops": dict(Counter(node.op for node in nodes).most_common()),
    }


def _shapes(graph: Graph) -> tuple[GraphShapes | None, str | None]:
    """The shapes of the graph; none, and the reason, where they contradict each other."""
    try:
        return graph.infer_shapes(), None
    except OpError as error:
        return None, error.message


def _all_nodes(graph: Graph) -> Iterator[NodeDef]:
    """The nodes of a graph and of its functions."""
    for op in graph.get_operations():
        yield op.node_def
    for function in graph.function_library.values():
        yield from function.node_def


def _not_runnable(graph: Graph, nodes: list[NodeDef]) -> dict[str, str]:
    """The ops of nodes that cannot run, each with the reason of the first of its nodes."""
    reasons: dict[str, str] = {}
    examined = set()
    for node in nodes:
        kind = node.op, _attr_key(node)
        if node.op in reasons or kind in examined:
            continue
        examined.add(kind)
        reason = _reason_not_to_run(graph, node)
        if reason is not None:
            reasons[node.op] = reason
    return reasons


def _attr_key(node: NodeDef) -> frozenset[tuple[str, bytes]]:
    """Equal for nodes of an op that the same kernel fits."""
    return frozenset(
        [
            (name, value.SerializeToString())
            for name, value in node.attr.items()
            if not value.HasField("tensor")
        ]
    )


def _reason_not_to_run(graph: Graph, node: NodeDef) -> str | None:
    if node.op in STRUCTURAL_OPS or node.op in graph.function_library:
        return None
    try:
        op_def = graph.op_registry.look_up_op_def(node.op)
    except NotFoundError:
        return "unknown op"
    slim = _without_tensors(node)
    add_defaults_to_node_def(slim, op_def)
    if any(kernel_def_available(device_type, slim) for device_type in device_types()):
        return None
    types = {
        name: value for name, value in slim.attr.items() if value.WhichOneof("value") == "type"
    }
    if not get_registered_kernels_for_op(node.op).kernel or not types:
        return "no CPU kernel"
    of = ", ".join(f"{name} = {DataType(types[name].type).string}" for name in sorted(types))
    return f"no CPU kernel for {of}"


def _without_tensors(node: NodeDef) -> NodeDef:
    """A copy of a node without its weights."""
    slim = NodeDef(name=node.name, op=node.op)
    for name, value in node.attr.items():
        if not value.HasField("tensor"):
            slim.attr[name].CopyFrom(value)
    return slim


def _constant_bytes(node: NodeDef) -> int:
    """The size of a constant: of its elements, or of its strings."""
    tensor = node.attr["value"].tensor
    if tensor.dtype == DataType.DT_STRING:
        return sum(map(len, tensor.string_val))
    shape = TensorShape.from_proto(tensor.tensor_shape)
    return math.prod(shape.as_list()) * DataType(tensor.dtype).size


def _described(tensor: Tensor, shapes: GraphShapes | None) -> dict[str, Any]:
    shape = PartialTensorShape(None) if shapes is None else shapes[tensor]
    dims = None if shape.rank is None else shape.as_list()
    return {"name": tensor.name, "dtype": tensor.dtype.tf_name, "shape": dims}


def _print(facts: dict[str, Any]) -> None:
    is_graph = "not_runnable" in facts
    missing: dict[str, str] = facts.get("not_runnable", {})
    print_text(f"{one_line(facts['file'])}: {facts['kind']}, {size_text(facts['file_bytes'])}")
    print_text(
        f"{counted(facts['nodes'], 'node')}, {counted(facts['functions'], 'function')}, "
        f"{size_text(facts['weight_bytes'])} of weights, producer version {facts['producer']}"
    )
    for what in filter(facts.__contains__, _TENSORS):
        rows = [
            (t["name"], t["dtype"], shape_text(PartialTensorShape(t["shape"]))) for t in facts[what]
        ]
        echo()
        print_table(_TENSORS[what], ("tensor", "type", "shape"), rows)
    ops = [(op, count, bad(missing.get(op, ""))) for op, count in facts["ops"].items()]
    echo()
    print_table("Ops", ("op", "nodes", "not runnable"), ops)
    if "contradiction" in facts:
        echo()
        print_text(f"The shapes contradict each other: {facts['contradiction']}")
    for refused in facts.get("refused", ()) if is_graph else ():
        echo()
        print_text(f"A session of TensorFlow refuses it: {refused}")
    if missing:
        hint = f" (unknown ops: {HINT})" if "unknown op" in missing.values() else ""
        echo()
        print_text(f"Not runnable yet: {', '.join(map(one_line, sorted(missing)))}{hint}")
    elif is_graph:
        echo("\nEvery op can run.")
