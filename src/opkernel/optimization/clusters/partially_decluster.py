"""PartiallyDecluster: takes operations out of clusters that are better computed outside.

- Operations whose results are in host memory, where others need them: these get a clone outside.
- Operations that compute what the compiler must know from inputs of the cluster: many inputs may give the same value, for
  which one program will do.
- Operations that need only the shape of an input of the cluster.

A constant is in no cluster that others than its members need it from; each function of a cluster gets one of its own
(`encapsulate_subgraphs`). In TensorFlow it stays, and so do the operations that need it.

Source: TensorFlow compiler/jit/partially_decluster_pass.cc.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from opkernel.graph import Operation
from opkernel.graph.edit.graph_editor import GraphEditor
from opkernel.graph.edit.jit_options import AutoclusteringPolicy, JitOptions
from opkernel.kernel import MemoryType, memory_types_for_node
from opkernel.kernel.registry.lookup import kernel_def_if_available
from opkernel.optimization.clusters.list_ties import is_list
from opkernel.optimization.clusters.marks import CLUSTER, cluster_of, device_type_of, leave_cluster
from opkernel.proto import NodeDef
from opkernel.types import DataType

_SHAPE_CONSUMERS = frozenset({"Rank", "Shape", "Size"})
_NOT_CLONED = _SHAPE_CONSUMERS | {"Const"}


def partially_decluster(editor: GraphEditor) -> None:
    """Take operations out of clusters that are better computed outside."""
    options = editor.jit
    if options is None or not any(map(cluster_of, editor.operations())):
        return
    _spare_copies_to_host(editor)
    order = editor.operations()
    for op in _recompiling(order, options):
        _leave(editor, options, op, "others need not be compiled again for each of its inputs")
    for op in order:
        if op.type in _SHAPE_CONSUMERS and cluster_of(op) and _is_at_edge(op):
            _leave(editor, options, op, "its cluster does not compute what it takes the shape of")
    for op in order:
        if _is_free_constant(op) and cluster_of(op) and _has_strange_consumer(op):
            leave_cluster(op)


def _leave(editor: GraphEditor, options: JitOptions, op: Operation, why: str) -> None:
    options.outside[op.name] = why
    editor.note(op, f"leaves {cluster_of(op)}: {why}")
    leave_cluster(op)


def _is_free_constant(op: Operation) -> bool:
    return op.type == "Const" and not op.control_inputs


def _has_strange_consumer(op: Operation) -> bool:
    return any(cluster_of(one) != cluster_of(op) for one, _ in op.consumer_edges())


def _is_at_edge(op: Operation) -> bool:
    """Whether all that an operation needs comes from outside of its cluster; a constant may be anywhere."""
    cluster = cluster_of(op)
    sources = (*op.edges[::2], *op.control_inputs)
    return all(_is_free_constant(one) or cluster_of(one) != cluster for one in sources)


# Copies to the host


def _spare_copies_to_host(editor: GraphEditor) -> None:
    """Compute outside, too, what is in host memory in any case, and is needed there."""
    gone: set[Operation] = set()
    for op in reversed(editor.operations()):
        cluster = cluster_of(op)
        if not cluster or op.type in _NOT_CLONED or _has_state(op):
            continue
        leading_out = [
            (one, place)
            for one, place in op.consumer_edges()
            if place >= 0 and (one in gone or cluster_of(one) != cluster)
        ]
        if any(_is_copy_to_host(op, *edge) for edge in leading_out):
            gone.add(op)
            _clone_outside(editor, op)


def _has_state(op: Operation) -> bool:
    """Whether it works on a resource, or on a list, and must not run twice."""
    types = (*op.input_types, *op.output_types)
    return DataType.DT_RESOURCE in types or DataType.DT_VARIANT in types


def _is_copy_to_host(op: Operation, consumer: Operation, place: int) -> bool:
    output = consumer.edges[2 * place + 1]
    return _is_on_host(op, 1, output) and _is_on_host(consumer, 0, place)


def _is_on_host(op: Operation, side: int, index: int) -> bool:
    """Whether an input (side 0) or an output (side 1) of an operation is in host memory."""
    types = memory_types_for_node(op.graph.function_library, device_type_of(op), op.node_def)
    return types[side][index] == MemoryType.HOST_MEMORY


def _clone_outside(editor: GraphEditor, op: Operation) -> None:
    """Have consumers outside of the cluster of an operation take the results of a clone."""
    node = NodeDef()
    node.CopyFrom(op.message)
    node.name = f"{op.name}/declustered"
    del node.attr[CLUSTER]
    clone = editor.add_node(node, op.inputs, op.control_inputs, like=op)
    devices = editor.graph.assigned_devices
    if op in devices:
        devices[clone] = devices[op]
    for one, place in op.consumer_edges():
        if place >= 0 and cluster_of(one) != cluster_of(op):
            one.update_input(place, clone.outputs[one.edges[2 * place + 1]])
    editor.note(
        clone, f"computes {op.name} outside of {cluster_of(op)}: others need it in host memory"
    )


# Programs that differ in what the compiler must know


def _recompiling(order: Sequence[Operation], options: JitOptions) -> Iterable[Operation]:
    """The operations to be taken out, one after the other, because programs would differ by their inputs."""
    clusters: dict[str, list[Operation]] = {}
    for op in order:
        if cluster_of(op):
            clusters.setdefault(cluster_of(op), []).append(op)
    for ops in clusters.values():
        known = options.compiler.must_be_constant(ops)
        for op in ops:
            if op in known and _may_leave(op, options) and _is_at_edge(op):
                yield op


def _may_leave(op: Operation, options: JitOptions) -> bool:
    if op.type == "Const" or op.traits.reads_shapes_only:  # shapes are known in any case
        return False
    if any(is_list(op, index) for index in range(len(op.output_types))):
        return False
    if options.compiler.autoclustering_policy(op) is AutoclusteringPolicy.ALWAYS:
        return False
    return kernel_def_if_available(device_type_of(op), op.node_def) is not None
