"""What changes clusters once they are marked: IncreaseDynamismForAutoJit and PartiallyDecluster.

IncreaseDynamismForAutoJit: a program for a Slice serves every place where the slice may begin. A compiler has to know
the shape of what it slices. That of a Slice follows from its input `size`, and from where it begins if some size is -1:
all that is left. Such sizes are computed here,

    Slice(input, begin, size)  =>  Slice(input, begin, size < 0 ? shape(input) - begin : size)

so that the compiler need know them alone. `partially_decluster` then computes them outside of the cluster.

PartiallyDecluster takes operations out of clusters that are better computed outside:

- Operations whose results are in host memory, where others need them: these get a clone outside.
- Operations that compute what the compiler must know from inputs of the cluster: many inputs may give the same value, for
  which one program will do.
- Operations that need only the shape of an input of the cluster.

A constant is in no cluster that others than its members need it from; each function of a cluster gets one of its own
(`encapsulate_subgraphs`). In TensorFlow it stays, and so do the operations that need it.

Source: TensorFlow compiler/jit/increase_dynamism_for_auto_jit_pass.cc, partially_decluster_pass.cc.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import Any

import numpy as np

from opkernel.graph import Operation, Tensor
from opkernel.graph.edit.graph_editor import GraphEditor
from opkernel.graph.edit.jit_options import AutoclusteringPolicy, JitOptions
from opkernel.graph.inference.constant_values import is_free_constant
from opkernel.kernel import MemoryType, memory_types_for_node
from opkernel.kernel.registry.lookup import kernel_def_if_available
from opkernel.optimization.clusters.marks import (
    CLUSTER,
    COMPILE_TIME_CONSTANT_INPUTS,
    by_cluster,
    cluster_of,
    device_type_of,
    leave_cluster,
)
from opkernel.optimization.clusters.resource_operations import gives_list
from opkernel.proto import AttrValue
from opkernel.types import Array, DataType

_INT64 = DataType.DT_INT64
_SIZE_ALONE = AttrValue(list=AttrValue.ListValue(s=[b"size"]))


def increase_dynamism_for_auto_jit(editor: GraphEditor) -> None:
    """Have the shapes of slices in clusters depend on the input `size` alone."""
    for op in editor.operations():
        if op.type != "Slice" or not cluster_of(op) or op in editor.feeds:
            continue
        sizes, begin = editor.value(op.inputs[2]), op.inputs[1].op
        if sizes is None or sizes.ndim != 1 or (sizes < -1).any() or editor.is_conditional(op):
            continue  # new constants would be outside of its loop
        if begin.type != "Const" and begin in editor.options.compiler.must_be_constant([op]):
            _StaticShapedSlice(editor, op, sizes).build()


class _StaticShapedSlice:
    """A Slice in a cluster, and its sizes where these are constants, -1 for what is left."""

    def __init__(self, editor: GraphEditor, op: Operation, sizes: Array) -> None:
        self._editor, self._op = editor, op
        self._sizes = sizes.astype(np.int64)
        self._mark = AttrValue(s=cluster_of(op).encode())

    def build(self) -> None:
        """Have the Slice take sizes that say all of its shape."""
        source, begin, _ = self._op.inputs
        if begin.dtype is not _INT64:
            begin = self._add("Cast", [begin], "begin", {"SrcT": begin.dtype, "DstT": _INT64})
        inputs = [source, begin, self._size(source, begin)]
        attrs = {"T": source.dtype, "Index": _INT64}
        self._editor.become(self._op, "Slice", inputs, attrs)
        self._op.set_attrs({CLUSTER: self._mark, COMPILE_TIME_CONSTANT_INPUTS: _SIZE_ALONE})
        self._editor.note(self._op, "is compiled once for all places where it may begin")

    def _size(self, source: Tensor, begin: Tensor) -> Tensor:
        is_open = self._sizes < 0
        given = self._constant(self._sizes, "size")
        if not is_open.any():
            return given
        left = self._add("Sub", [self._shape(source, is_open), begin], "left", {"T": _INT64})
        chosen = [self._constant(is_open, "is_open"), left, given]
        return self._add("SelectV2", chosen, "sizes", {"T": _INT64})

    def _shape(self, source: Tensor, is_open: Array) -> Tensor:
        """The shape of what is sliced; where the sizes that matter are known, these, with zeros."""
        known = self._editor.shape(source)
        dims: Sequence[int | None] = [] if known.rank is None else known.as_list()
        if len(dims) == len(is_open) and None not in np.array(dims, object)[is_open]:
            return self._constant([dim or 0 for dim in dims], "shape")
        return self._add("Shape", [source], "shape", {"T": source.dtype, "out_type": _INT64})

    def _constant(self, value: Any, name: str) -> Tensor:
        array = np.asarray(value)
        array = array if array.dtype == np.bool_ else array.astype(np.int64)
        tensor = self._editor.constant(array, None, f"{self._op.name}/{name}", self._op.device)
        return self._placed(tensor.op)

    def _add(
        self,
        op_type: str,
        inputs: Sequence[Tensor],
        name: str,
        attrs: Mapping[str, Any] = MappingProxyType({}),
    ) -> Tensor:
        name, device = f"{self._op.name}/{name}", self._op.device
        return self._placed(self._editor.add(op_type, inputs, name, attrs, device))

    def _placed(self, new: Operation) -> Tensor:
        """The output of a new operation, once that is in the cluster, on the device, of the Slice."""
        new.set_attr(CLUSTER, self._mark)
        self._editor.place_like(new, self._op)
        return new.outputs[0]


_SHAPE_CONSUMERS = frozenset({"Rank", "Shape", "Size"})
_NOT_CLONED = _SHAPE_CONSUMERS | {"Const"}


def partially_decluster(editor: GraphEditor) -> None:
    """Take operations out of clusters that are better computed outside."""
    options = editor.options
    if not any(map(cluster_of, editor.operations())):
        return
    _spare_copies_to_host(editor)
    order = editor.operations()
    for op in _recompiling(order, options):
        _leave(editor, options, op, "others need not be compiled again for each of its inputs")
    for op in order:
        if op.type in _SHAPE_CONSUMERS and cluster_of(op) and _is_at_edge(op):
            _leave(editor, options, op, "its cluster does not compute what it takes the shape of")
    for op in order:
        cluster = cluster_of(op) if is_free_constant(op) else ""
        if cluster and any(cluster_of(one) != cluster for one, _ in op.consumer_edges()):
            leave_cluster(op)


def _leave(editor: GraphEditor, options: JitOptions, op: Operation, why: str) -> None:
    options.outside[op.name] = why
    editor.note(op, f"leaves {cluster_of(op)}: {why}")
    leave_cluster(op)


def _is_at_edge(op: Operation) -> bool:
    """Whether all that an operation needs comes from outside of its cluster; a constant may be anywhere."""
    cluster = cluster_of(op)
    sources = (*op.edges[::2], *op.control_inputs)
    return all(is_free_constant(one) or cluster_of(one) != cluster for one in sources)


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
        if any(
            _is_on_host(op, 1, one.edges[2 * place + 1]) and _is_on_host(one, 0, place)
            for one, place in leading_out
        ):
            gone.add(op)
            _clone_outside(editor, op)


def _has_state(op: Operation) -> bool:
    """Whether it works on a resource, or on a list, and must not run twice."""
    types = (*op.input_types, *op.output_types)
    return DataType.DT_RESOURCE in types or DataType.DT_VARIANT in types


def _is_on_host(op: Operation, side: int, index: int) -> bool:
    """Whether an input (side 0) or an output (side 1) of an operation is in host memory."""
    types = memory_types_for_node(op.graph.function_library, device_type_of(op), op.node_def)
    return types[side][index] == MemoryType.HOST_MEMORY


def _clone_outside(editor: GraphEditor, op: Operation) -> None:
    """Have consumers outside of the cluster of an operation take the results of a clone."""
    clone = editor.clone(op, f"{op.name}/declustered")
    leave_cluster(clone)
    for one, place in op.consumer_edges():
        if place >= 0 and cluster_of(one) != cluster_of(op):
            one.update_input(place, clone.outputs[one.edges[2 * place + 1]])
    editor.note(
        clone, f"computes {op.name} outside of {cluster_of(op)}: others need it in host memory"
    )


# Programs that differ in what the compiler must know


def _recompiling(order: Sequence[Operation], options: JitOptions) -> Iterable[Operation]:
    """The operations to be taken out, one after the other, because programs would differ by their inputs."""
    for ops in by_cluster(order).values():
        known = options.compiler.must_be_constant(ops)
        for op in ops:
            if op in known and _may_leave(op, options) and _is_at_edge(op):
                yield op


def _may_leave(op: Operation, options: JitOptions) -> bool:
    if op.type == "Const" or op.traits.reads_shapes_only:  # shapes are known in any case
        return False
    if gives_list(op):
        return False
    if options.compiler.autoclustering_policy(op) is AutoclusteringPolicy.ALWAYS:
        return False
    return kernel_def_if_available(device_type_of(op), op.node_def) is not None
