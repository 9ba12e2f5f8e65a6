"""Partition graphs: the GraphDefs that a step runs, one for each device.

Feeds become `_Arg` nodes and fetches `_Retval` nodes.
Source: RewriteGraphForExecution in TensorFlow core/graph/subgraph.cc.
"""

from __future__ import annotations

import contextlib
from collections.abc import Mapping, Sequence

from opkernel.errors import OpError
from opkernel.graph import Graph, Operation, Tensor
from opkernel.graph.edit.subgraph import Needs
from opkernel.kernel import GraphCollector
from opkernel.opdef import attr_from_python
from opkernel.proto import GraphDef
from opkernel.runtime.plan.functional_ops import FUNCTIONAL_OPS, FunctionLibrary, LibraryFunction
from opkernel.runtime.program.builder import StepProgram, partition, prepare
from opkernel.runtime.program.request import Partition, ProgramRequest, Subgraph, arg_name


def partition_graphs(program: StepProgram) -> list[GraphDef]:
    """The graphs of the devices that the steps of a program run something on."""
    return [partition_graph(one, program.part) for one in program.partitions]


def collect_graphs(body: Graph, request: ProgramRequest, collector: GraphCollector) -> None:
    """Give a collector the graphs of a function: the body, and the graphs that a program of it runs.

    Raises as `build_program` does, but for kernels and executors, of which there are none.
    """
    part, assignment = prepare(request)
    partitions = partition(part, assignment)
    collector.collect_raw_graph(body.as_graph_def())
    collector.collect_optimized_graph(
        partition_graph(Partition.of_all(partitions[0].device, part), part)
    )
    for one in partitions:
        collector.collect_partitioned_graph(partition_graph(one, part))


def graphs_of_functions(program: StepProgram) -> list[GraphCollector]:
    """The graphs of the functions that nodes of a program call, of each function once.

    A function without a possible program has no graphs: no node can have called it.
    """
    library, ops = program.request.library, program.part.operations
    functions = {f.name: f for op in ops for f in _functions_of(op, library)}
    collectors = []
    for function in functions.values():
        collector = GraphCollector()
        with contextlib.suppress(OpError):
            function.collect_graphs(collector)
        collectors.append(collector)
    return collectors


def _functions_of(op: Operation, library: FunctionLibrary) -> Sequence[LibraryFunction]:
    """The functions that executors call for a node."""
    function = library.function_of(op)
    if function is not None:
        return [function]
    attrs = op.op_def.attr if op.type in FUNCTIONAL_OPS else ()
    names = [attr.name for attr in attrs if attr.type in ("func", "list(func)")]
    return [function for name in names for function in library.functions(op, name)]


def partition_graph(
    one: Partition, part: Subgraph, devices: Mapping[str, str] | None = None
) -> GraphDef:
    """A partition of a part as a GraphDef.

    Args:
        one: The partition.
        part: The part.
        devices: The devices of nodes by name; where not given, or not in it, that of the partition. Where given,
            the graph is for a process that does not place it anew: what it says of colocation is left out, and
            the library has the functions that it needs.
    """
    return _Written(one, part, devices).graph_def


class _Written:
    """A partition as a GraphDef.

    Args:
        partition: The partition.
        whole: What the program computes.
        devices: As for `partition_graph`.
    """

    def __init__(
        self, partition: Partition, whole: Subgraph, devices: Mapping[str, str] | None
    ) -> None:
        graph = [*(tensor.op for tensor in whole.fetches), *whole.targets][0].graph
        self.graph_def = GraphDef(versions=graph.graph_def_versions)
        self._device = partition.device.name
        self._devices = devices
        self._op_registry = graph.op_registry
        part = partition.part
        self._needs = Needs(part.feeds)
        self._args: dict[tuple[Operation, int], str] = {}
        for index, given in zip(partition.feed_indices, part.feeds, strict=True):
            tensor = whole.feeds[index]
            name = arg_name(tensor, index) if devices is None else given.op.name
            self._args[given.op, given.value_index] = name
            self._add(name, "_Arg", [], tensor, index)
        for op in part.operations:
            self._copy(op)
        for index, computed in zip(partition.fetch_indices, part.fetches, strict=True):
            tensor = whole.fetches[index]
            name = f"_retval_{tensor.op.name}_{tensor.value_index}_{index}"
            self._add(name, "_Retval", [self._input(computed)], tensor, index)
        library = graph.function_library
        if devices is not None and len(library):
            library = library.reachable_definitions(self.graph_def.node)
        if devices is None or len(library):
            self.graph_def.library.CopyFrom(library.to_proto())

    def _copy(self, op: Operation) -> None:
        node = self.graph_def.node.add()
        node.CopyFrom(op.node_def)
        node.device = self._device
        if self._devices is not None:
            node.device = self._devices.get(op.name, self._device)
            node.attr.pop("_class", None)
        del node.input[:]
        node.input.extend([self._input(tensor) for tensor in op.inputs])
        node.input.extend([f"^{control.name}" for control in self._needs.controls(op)])

    def _input(self, tensor: Tensor) -> str:
        """The input by which a node of another graph gets a tensor."""
        arg = self._args.get((tensor.op, tensor.value_index))
        index = f":{tensor.value_index}" if tensor.value_index else ""
        return tensor.op.name + index if arg is None else arg

    def _add(self, name: str, op: str, inputs: Sequence[str], tensor: Tensor, index: int) -> None:
        node = self.graph_def.node.add(name=name, op=op, input=inputs, device=self._device)
        types = {attr.name: attr.type for attr in self._op_registry.look_up_op_def(op).attr}
        for attr, value in (("T", tensor.dtype.base), ("index", index)):
            node.attr[attr].CopyFrom(attr_from_python(value, types[attr]))
