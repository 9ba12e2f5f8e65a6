"""CostModel: the greatest cost of each node of a graph, over all steps that the model has seen.

Source: TensorFlow core/graph/costmodel.cc, StepStatsCollector::BuildCostModel.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from opkernel.graph import Operation
from opkernel.proto import CostGraphDef, NodeExecStats, NodeOutput, StepStats


@dataclass(slots=True)
class _Cost:
    """The cost of a node: microseconds, bytes, and the largest value of each output."""

    compute: int = 0
    temporary: int = 0
    persistent: int = 0
    outputs: dict[int, NodeOutput] = field(default_factory=dict)


class CostModel:
    """The costs of the nodes that computed certain fetches.

    Args:
        operations: The nodes, inputs before consumers; what was fed to them may be left out.
        device: The device that they are on.
    """

    def __init__(self, operations: Sequence[Operation], device: str) -> None:
        self._computed = computed = {op.name for op in operations}
        sources = {source.name: source for op in operations for source in _sources(op)}
        fed = [op for name, op in sources.items() if name not in computed]
        self._operations = [*fed, *operations]
        self._device = device
        self._costs = {op.name: _Cost() for op in self._operations}

    def record(self, step_stats: StepStats) -> None:
        """Take what the nodes of a step cost into account."""
        for device in step_stats.dev_stats:
            if device.device == self._device:
                for stats in device.node_stats:
                    if stats.node_name in self._costs:
                        _add(self._costs[stats.node_name], stats)

    def cost_graph(self) -> CostGraphDef:
        """The nodes with their costs; the first two are `_SOURCE` and `_SINK`, as in TensorFlow."""
        graph = CostGraphDef()
        graph.node.add(name="_SOURCE")
        sink = graph.node.add(name="_SINK", id=1, control_input=[0])
        numbers = {op.name: number for number, op in enumerate(self._operations, 2)}
        read = {source.name for op in self._operations for source in _sources(op)}
        for op in self._operations:
            self._add_node(graph, op, numbers)
            if op.name not in read:
                sink.control_input.append(numbers[op.name])
        return graph

    def _add_node(self, graph: CostGraphDef, op: Operation, numbers: Mapping[str, int]) -> None:
        cost = self._costs[op.name]
        node = graph.node.add(
            name=op.name,
            device=self._device,
            id=numbers[op.name],
            compute_cost=cost.compute,
            temporary_memory_size=cost.temporary,
            persistent_memory_size=cost.persistent,
            is_final=op.type in ("_Send", "_HostSend"),
        )
        given = op.name not in self._computed
        for tensor in () if given else op.inputs:
            number, port = numbers[tensor.op.name], tensor.value_index
            node.input_info.add(preceding_node=number, preceding_port=port)
        controls = () if given else op.control_inputs
        node.control_input.extend(sorted(numbers[control.name] for control in controls))
        if not (node.input_info or controls):
            node.control_input.append(0)
        for index, tensor in enumerate(op.outputs):
            written = node.output_info.add(dtype=tensor.dtype, alias_input_port=-1)
            output = cost.outputs.get(index)
            if output is not None:
                description = output.tensor_description
                memory = description.allocation_description
                written.shape.CopyFrom(description.shape)
                written.size = memory.requested_bytes
                written.alias_input_port = self._aliased(op, memory.allocation_id)
            else:  # it was fed, or is a constant: steps do not compute these
                written.shape.CopyFrom(tensor.shape.to_proto())
                if op.type == "Const":
                    written.size = (tensor.shape.num_elements() or 0) * tensor.dtype.size

    def _aliased(self, op: Operation, allocation_id: int) -> int:
        """The input whose memory an output looks into; -1 for none."""
        for index, tensor in enumerate(op.inputs):
            cost = self._costs.get(tensor.op.name)
            source = None if cost is None else cost.outputs.get(tensor.value_index)
            if source is not None and allocation_id:
                memory = source.tensor_description.allocation_description
                if memory.allocation_id == allocation_id:
                    return index
        return -1


def _add(cost: _Cost, stats: NodeExecStats) -> None:
    cost.compute = max(cost.compute, stats.op_end_rel_micros)
    cost.temporary = max(cost.temporary, stats.memory_stats.temp_memory_size)
    cost.persistent = max(cost.persistent, stats.memory_stats.persistent_memory_size)
    for output in stats.output:
        known = cost.outputs.get(output.slot)
        if known is None or _size(output) >= _size(known):
            cost.outputs[output.slot] = output


def _size(output: NodeOutput) -> int:
    return output.tensor_description.allocation_description.requested_bytes


def _sources(op: Operation) -> Iterable[Operation]:
    return (*(tensor.op for tensor in op.inputs), *op.control_inputs)
