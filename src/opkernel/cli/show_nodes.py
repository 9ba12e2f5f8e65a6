"""The full account of nodes, which `opkernel show MODEL NODE...` prints; and where they were defined, where the file tells.

TensorFlow keeps the lines of Python that made a node as `debug_info` of a GraphDef, by `NODE`, `NODE@` or `NODE@FUNCTION`.

Source: TensorFlow core/framework/graph_debug_info.proto, graph/graph_debug_info_builder.cc.
"""

from collections.abc import Iterator, Sequence
from typing import Any

from opkernel.cli.kernel_choice import KernelChoice, Port
from opkernel.cli.nodes import NodeFilter, find_node, find_operation, nodes_of, run_by, slim
from opkernel.cli.output import counted, one_line, print_table, print_text
from opkernel.cli.registered import value_text
from opkernel.cli.show_graph import inferred_shapes
from opkernel.errors import NotFoundError
from opkernel.graph import Graph, GraphShapes, Operation, Tensor
from opkernel.opdef import add_defaults_to_node_def
from opkernel.proto import GraphDebugInfo
from opkernel.runtime import CPU
from opkernel.types import PartialTensorShape


def node_facts(graph: Graph, name: str, info: GraphDebugInfo) -> dict[str, Any]:
    """All that is known of a node.

    Args:
        graph: the graph, or the one whose function has the node.
        name: the name of the node; FUNCTION/NODE for one of a function.
        info: where the nodes of the file were defined.

    Raises:
        NotFoundError: there is no such node, or an op of its function is not registered.
        InvalidArgumentError: a node of its function breaks a rule.
    """
    name, _ = find_node(graph, name)
    op = find_operation(graph, name)
    function = "" if op.graph is graph else name.removesuffix(f"/{op.name}")
    choice, problem = _kernel(graph, op)
    shapes, _ = inferred_shapes(op.graph)
    inputs, outputs = ([], []) if choice is None else (choice.inputs, choice.outputs)
    chosen = None if choice is None else choice.chosen
    return {
        "node": name,
        "op": op.type,
        "requested_device": op.slim_node_def.device,
        "run_by": run_by(graph, op.type),
        "kernel": None if chosen is None else chosen.registration.class_name,
        "module": None if chosen is None else chosen.registration.owner,
        "problem": problem,
        "attrs": {attr: value_text(value) for attr, value in sorted(op.node_def.attr.items())},
        "inputs": [
            {"name": _arg(inputs, i), **_described(tensor, shapes)}
            for i, tensor in enumerate(op.inputs)
        ],
        "control_inputs": [one.name for one in op.control_inputs],
        "outputs": [
            {
                "name": _arg(outputs, i),
                **_described(tensor, shapes),
                "consumers": _consumers(tensor),
            }
            for i, tensor in enumerate(op.outputs)
        ],
        "control_outputs": [one.name for one in op.control_outputs],
        "made_from": list(op.node_def.experimental_debug_info.original_node_names),
        "defined": [*_definition_of(info, op.name, function)],
    }


def _kernel(graph: Graph, op: Operation) -> tuple[KernelChoice | None, str]:
    """The choice among the kernels of a node on the CPU, and why it has none."""
    node = slim(op.slim_node_def)
    ops = graph.function_library
    try:
        add_defaults_to_node_def(node, ops.look_up_op_def(node.op))
        choice = KernelChoice(node, ops, CPU.device_type)
    except NotFoundError:
        return None, f"the op {node.op} is not registered"
    is_wanted = run_by(graph, op.type) == "kernel" and choice.chosen is None
    return choice, choice.error.partition("\n")[0] if is_wanted else ""


def _arg(ports: Sequence[Port], index: int) -> str:
    return ports[index].name if index < len(ports) else str(index)


def _consumers(tensor: Tensor) -> list[dict[str, Any]]:
    """The nodes that take a tensor, and as which input."""
    index = tensor.value_index
    return [
        {"node": op.name, "input": at}
        for op, at in tensor.consumer_edges()
        if at >= 0 and op.inputs[at].value_index == index
    ]


def _described(tensor: Tensor, shapes: GraphShapes | None) -> dict[str, Any]:
    shape = tensor.shape if shapes is None else shapes[tensor]
    return {"tensor": tensor.name, "dtype": tensor.dtype.tf_name, "shape": shape.dims}


def _definition_of(info: GraphDebugInfo, node: str, function: str) -> Iterator[dict[str, Any]]:
    """The lines of a program that were running when a node was made, innermost first; none where unknown."""
    for key in [f"{node}@{function}", *([] if function else [node])]:
        if key in info.name_to_trace_id:
            trace = info.traces_by_id[info.name_to_trace_id[key]]
        elif key in info.traces:
            trace = info.traces[key]
        else:
            continue
        frames = [*trace.file_line_cols, *[info.frames_by_id[one] for one in trace.frame_id]]
        for one in reversed(frames):
            is_known = 0 <= one.file_index < len(info.files)
            file = info.files[one.file_index] if is_known else "an unknown file"
            yield {"file": file, "line": one.line, "function": one.func, "code": one.code.strip()}
        return


def print_node(facts: dict[str, Any]) -> None:
    """Print a node for people."""
    print_text(one_line(f"{facts['node']}: {facts['op']}"), bold=True)
    lines = {
        "device": facts["requested_device"],
        "waits for": ", ".join(facts["control_inputs"]),
        "waited for by": ", ".join(facts["control_outputs"]),
        "made from": ", ".join(facts["made_from"]),
    }
    for what, text in lines.items():
        if text:
            print_text(one_line(f"  {what}: {text}"))
    if facts["problem"]:
        print_text(f"  no kernel: {one_line(facts['problem'])}", fg="red")
    elif facts["run_by"] == "kernel":
        print_text(f"  kernel: {facts['kernel']} ({facts['module']})")
    else:
        print_text(f"  run by the {facts['run_by']}")
    for number, frame in enumerate(facts["defined"]):
        place = f"{frame['file']}:{frame['line']} in {frame['function'] or '?'}"
        code = f": {frame['code']}" if frame["code"] else ""
        print_text(one_line(f"  {'called' if number else 'defined'} at {place}{code}"))
    if facts["attrs"]:
        print_table("Attrs", ("attr", "value"), [*facts["attrs"].items()])
    if facts["inputs"]:
        rows = [(one["name"], *_tensor_cells(one)) for one in facts["inputs"]]
        print_table("Inputs", ("input", "tensor", "type", "shape"), rows)
    if facts["outputs"]:
        columns = ("output", "tensor", "type", "shape", "taken by")
        outputs = [
            (one["name"], *_tensor_cells(one), _consumer_text(one)) for one in facts["outputs"]
        ]
        print_table("Outputs", columns, outputs)


def _tensor_cells(one: dict[str, Any]) -> tuple[str, str, str]:
    return one["tensor"], one["dtype"], str(PartialTensorShape(one["shape"]))


def _consumer_text(output: dict[str, Any]) -> str:
    return ", ".join(f"{one['node']} (input {one['input']})" for one in output["consumers"])


def matching_nodes(graph: Graph, wanted: NodeFilter) -> list[dict[str, Any]]:
    """The nodes that a filter takes, with their outputs; nodes of functions stand alone.

    Raises:
        NotFoundError: there are none.
    """
    shapes, _ = inferred_shapes(graph)
    found = [
        {
            "node": name,
            "op": node.op,
            "outputs": [_described(tensor, shapes) for tensor in graph.by_name[name].outputs]
            if name in graph.by_name
            else [],
        }
        for name, node in nodes_of(graph)
        if wanted.takes(name, node)
    ]
    if not found:
        given = wanted._asdict().items()
        told = " ".join(f"--{option} {value}" for option, value in given if value is not None)
        raise NotFoundError(f"the graph has no node that fits {told}")
    return found


def print_matching(found: Sequence[dict[str, Any]]) -> None:
    """Print the nodes that a filter takes."""
    rows = []
    for one in found:
        cells = [_tensor_cells(tensor) for tensor in one["outputs"]]
        types, shapes = (", ".join(dict.fromkeys(cell[i] for cell in cells)) for i in (1, 2))
        rows.append((one["node"], one["op"], types, shapes))
    print_table(counted(len(rows), "node"), ("node", "op", "type", "shape"), rows)
