"""Partition graphs: what a step runs as GraphDefs, one for each device.

Feeds become `_Arg` nodes and fetches `_Retval` nodes.
Source: RewriteGraphForExecution in TensorFlow core/graph/subgraph.cc.
"""

from __future__ import annotations

from collections.abc import Sequence

from opkernel.graph import Graph, Operation, Tensor
from opkernel.graph.edit.prune import Needs
from opkernel.opdef import attr_from_python
from opkernel.proto import GraphDef
from opkernel.runtime.placement.partition import Partition, arg_name
from opkernel.runtime.program.builder import Program

__all__ = ["partition_graphs"]


def partition_graphs(program: Program) -> list[GraphDef]:
    """The graphs of the devices that the steps of a program run something on."""
    feeds, fetches = program.part.feeds, program.part.fetches
    graph = [*(tensor.op for tensor in fetches), *program.part.targets][0].graph
    return [_Written(one, graph, feeds, fetches).graph_def for one in program.partitions]


class _Written:
    """A partition as a GraphDef.

    Args:
        partition: The partition.
        graph: The graph of the program.
        feeds: The tensors of that graph that are fed.
        fetches: Those that are fetched.
    """

    def __init__(
        self,
        partition: Partition,
        graph: Graph,
        feeds: Sequence[Tensor],
        fetches: Sequence[Tensor],
    ) -> None:
        library = graph.function_library.to_proto()
        self.graph_def = GraphDef(versions=graph.graph_def_versions, library=library)
        self._device = partition.device.name
        self._op_registry = graph.op_registry
        part = partition.part
        self._needs = Needs(part.feeds)
        self._args: dict[tuple[Operation, int], str] = {}
        for index, (tensor, given) in enumerate(zip(feeds, part.feeds, strict=False)):
            name = self._args[given.op, given.value_index] = arg_name(tensor, index)
            self._add(name, "_Arg", [], tensor, index)
        for op in part.operations:
            self._copy(op)
        for index, (tensor, computed) in enumerate(zip(fetches, part.fetches, strict=False)):
            name = f"_retval_{tensor.op.name}_{tensor.value_index}_{index}"
            self._add(name, "_Retval", [self._input(computed)], tensor, index)

    def _copy(self, op: Operation) -> None:
        node = self.graph_def.node.add()
        node.CopyFrom(op.node_def)
        node.device = self._device
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
