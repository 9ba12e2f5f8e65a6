"""Clusters as functions: what the tests of engines compile."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from opkernel.graph import FunctionBody, Graph, Operation, Tensor
from opkernel.graph.edit.subgraph import DataNeeds, prune_and_order
from opkernel.kernel.node_properties import args_of_node, by_arg
from opkernel.opdef import global_op_registry
from opkernel.proto import FunctionDef, NodeDef, OpDef
from opkernel.runtime.engines.engine import ClusterArgument, Engine
from opkernel.testing import run_op
from opkernel.types import as_dtype, tensor_from_proto


def single_op(node_def: NodeDef, values: Sequence[Any]) -> FunctionBody:
    """The function of one node, for arguments of the types and shapes of values."""
    graph = Graph()
    args = []
    for index, value in enumerate(values):
        args.append(_arg(graph, index, as_dtype(value.dtype)))
        args[-1].outputs[0].set_shape(value.shape)
    attrs = {name: node_def.attr[name] for name in node_def.attr}
    op = graph.create_op(node_def.op, [arg.outputs[0] for arg in args], attrs=attrs, name="it")
    return body_of(graph, args, op.outputs)


def _arg(graph: Graph, index: int, dtype: Any) -> Operation:
    return graph.create_op("_Arg", name=f"arg{index}", attrs={"T": dtype, "index": index})


def body_of(graph: Graph, args: Sequence[Operation], fetches: Sequence[Tensor]) -> FunctionBody:
    """The function that a graph with `_Arg` nodes is."""
    rets = [
        graph.create_op("_Retval", [tensor], name=f"ret{i}", attrs={"T": tensor.dtype, "index": i})
        for i, tensor in enumerate(fetches)
    ]
    types = tuple(arg.output_types[0] for arg in args)
    ret_types = tuple(tensor.dtype for tensor in fetches)
    signature = FunctionDef(signature=OpDef(name="cluster"))
    return FunctionBody(signature, {}, graph, types, ret_types, tuple(args), tuple(rets), ())


def cluster_of(
    operations: Sequence[Operation], fetches: Sequence[Tensor]
) -> tuple[FunctionBody, list[Tensor]]:
    """Some operations of a graph, with the constants that they read, as a function; and the tensors that it takes."""
    graph, made, taken = Graph(), dict[Tensor, Tensor](), list[Tensor]()
    args: list[Operation] = []
    members = set(operations)
    for op in operations:
        for tensor in op.inputs:
            if tensor in made or tensor.op in members:
                continue
            if tensor.op.type == "Const":
                made[tensor] = _copied(graph, tensor.op, []).outputs[0]
            else:
                args.append(_arg(graph, len(args), tensor.dtype))
                taken.append(tensor)
                made[tensor] = args[-1].outputs[0]
        copy = _copied(graph, op, [made[tensor] for tensor in op.inputs])
        made.update(zip(op.outputs, copy.outputs, strict=True))
    return body_of(graph, args, [made[tensor] for tensor in fetches]), taken


def _copied(graph: Graph, op: Operation, inputs: list[Tensor]) -> Operation:
    attrs = {name: op.attr[name] for name in op.attr if not name.startswith("_")}
    return graph.create_op(op.type, inputs, attrs=attrs, name=op.name)


def arguments_for(
    engine: Engine, body: FunctionBody, values: Sequence[Any]
) -> list[ClusterArgument]:
    """What is known of the arguments: of those that the engine asks for, the values."""
    constants = engine.compile_time_constants(body)
    return [
        ClusterArgument.of_constant(value)
        if index in constants
        else ClusterArgument.parameter(as_dtype(value.dtype), value.shape)
        for index, value in enumerate(map(np.asarray, values))
    ]


def run_in_clusters(
    engine: Engine, fetches: Sequence[Tensor], feeds: dict[Tensor, Any]
) -> tuple[list[Any], list[int]]:
    """The values of tensors, computed by an engine as far as it takes the operations; and the sizes of clusters.

    An operation stands in the first stage in which its inputs can be there; stages of the engine and of the kernels of
    the CPU take turns.
    """
    order = [op for op in prune_and_order(fetches, (), list(feeds), DataNeeds) if op.outputs]
    values = dict(feeds)
    stages: dict[int, list[Operation]] = {}
    stage_of: dict[Operation, int] = {}
    for op in order:
        if op.type == "Const":
            values[op.outputs[0]] = tensor_from_proto(op.node_def.attr["value"].tensor)
        if op.outputs[0] in values:
            continue
        is_outside = bool(engine.refusal(op))
        before = [stage_of.get(tensor.op, 0) for tensor in op.inputs]
        stage = max(before, default=0)
        stage_of[op] = stage + (stage % 2 != is_outside)
        stages.setdefault(stage_of[op], []).append(op)
    sizes = []
    for stage, operations in sorted(stages.items()):
        if stage % 2:
            for op in operations:
                _compute(op, values)
        else:
            sizes.append(len(operations))
            results = [tensor for op in operations for tensor in op.outputs]
            wanted = [one for one in results if _is_needed(one, operations, fetches)]
            body, taken = cluster_of(operations, wanted)
            given = [values[tensor] for tensor in taken]
            compiled = engine.compile(body, arguments_for(engine, body, given))
            values.update(zip(wanted, compiled.run(given)[0], strict=True))
    return [values[tensor] for tensor in fetches], sizes


def _is_needed(tensor: Tensor, members: Sequence[Operation], fetches: Sequence[Tensor]) -> bool:
    inside = set(members)
    return tensor in fetches or any(user not in inside for user in tensor.consumers())


def _compute(op: Operation, values: dict[Tensor, Any]) -> None:
    found = cpu_outputs(op.node_def, [values[tensor] for tensor in op.inputs])
    values.update(zip(op.outputs, found, strict=True))


def cpu_outputs(node_def: NodeDef, values: Sequence[Any]) -> list[Any]:
    """What the kernel of the CPU gives for a node."""
    args, _ = args_of_node(node_def, global_op_registry().look_up_op_def(node_def.op))
    return run_op(node_def.op, by_arg(values, args), node_def=node_def).outputs
