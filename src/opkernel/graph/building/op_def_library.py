"""Nodes by keyword: `apply_op("MatMul", a=x, b=y, transpose_a=True)`.

Source: TensorFlow python/framework/op_def_library.py.
"""

from typing import Any

from opkernel.graph.core.create_op import op_named
from opkernel.graph.core.default_graph import get_default_graph, graph_of_call
from opkernel.graph.core.graph import Graph
from opkernel.graph.core.node import NodeRequest
from opkernel.graph.core.operation import Operation
from opkernel.graph.core.tensor import tensors_in
from opkernel.opdef import (
    bind_call,
    call_parameters,
    call_result,
    check_op_deprecation,
    is_list_arg,
    name_ranges_for_node,
)


def apply_op(op_type_name: str, name: str | None = None, **keywords: Any) -> Any:
    """Add a node to the graph of its inputs, else to the default graph.

    While a function is being traced the node belongs to the function, and inputs from graphs around
    it become inputs of the function.

    Inputs are tensors or values. A value becomes a constant under the node's name. The op, the other
    inputs or the default of the attr decide its type; otherwise the value keeps its own. Lists with
    tensors in them are packed. The node is colocated with the producers of its reference inputs.

    Args:
        op_type_name: an op, or a function of the graph's library.
        name: the name of the node, made unique; the op's name if there is none.
        keywords: the inputs and attrs by their names in the OpDef, with a `_` behind words of
            Python. Attrs that inputs determine are not given; an attr with a default may be left
            out or be None.

    Returns:
        The output tensor, a list for a list output, a named tuple of several of them; the
        Operation where the op has no outputs.

    Raises:
        NotFoundError: there is no such op.
        TypeError: an argument is missing, or is none that the op takes.
        InvalidArgumentError: a value, type or length breaks a rule of the op, or the inputs are
            of several graphs.
        UnimplementedError: the op is deprecated for graphs of this version.
    """
    graph = graph_of_call(tensors_in([*keywords.values()])) or get_default_graph()
    op_def = op_named(graph, op_type_name).op_def
    check_op_deprecation(op_def, graph.graph_def_versions.producer)
    inputs, attrs = bind_call(op_def, call_parameters(op_def), keywords)
    return add_node(graph, op_type_name, name, inputs, attrs)


def add_node(
    graph: Graph,
    op_type_name: str,
    name: str | None,
    inputs: list[Any] | dict[str, Any],
    attrs: dict[str, Any],
) -> Any:
    """`apply_op` where the graph is known, inputs are told from attrs, and nothing is left out.

    Args:
        graph: the graph.
        op_type_name: the op.
        name: the name of the node, or None.
        inputs: one for each argument of the op, by name or in their order.
        attrs: the attrs that inputs do not determine; those with a default may be missing.
    """
    request = NodeRequest(op_type_name, inputs, attrs, beside_refs=True)
    return _result(graph.create_node(name or op_type_name, request))


def _result(op: Operation) -> Any:
    op_def = op.op_def
    if not op_def.output_arg:
        return op
    _, ranges = name_ranges_for_node(op.node_def, op_def)
    outputs: list[Any] = []
    for arg in op_def.output_arg:
        tensors = op.outputs[slice(*ranges[arg.name])]
        outputs.append(list(tensors) if is_list_arg(arg) else tensors[0])
    return call_result(op_def, outputs)
