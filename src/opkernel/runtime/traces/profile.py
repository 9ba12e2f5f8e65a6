"""Where the time of steps went: a Profile by node and by op, and the CostModel of all steps that it has seen.

Source: TensorFlow core/graph/costmodel.cc, StepStatsCollector::BuildCostModel.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from opkernel.graph import Operation
from opkernel.proto import CostGraphDef, Message, NodeExecStats, NodeOutput, StepStats
from opkernel.runtime.traces.timeline import Slice, timeline_of


@dataclass(frozen=True, slots=True)
class ProfileRow:
    """The executions of a node, of a cluster, or of all nodes of an op, in a step.

    Attributes:
        name: The name of the node; empty for an op.
        op: The op; the name of the engine for a cluster.
        calls: How many executions there were.
        seconds: The time of the kernels. The time of a node that calls functions does not include the
            nodes of these functions; the time of a cluster is that of its engine.
        output_bytes: The size of the outputs.
        is_cluster: Whether an engine computed it.
        parts: The operations of a cluster, the hottest first. They take no time where the engine does not
            measure them.
    """

    name: str
    op: str
    calls: int
    seconds: float
    output_bytes: int
    is_cluster: bool = False
    parts: Sequence[ProfileRow] = ()


@dataclass(frozen=True, slots=True)
class Profile:
    """Where the time of one of several steps went, the median one; the hottest nodes come first.

    Attributes:
        steps: How long each step took, from the first node's begin to the last one's end, in seconds; 0
            for a step without nodes.
        median: The number of the step that all else is about. No more than half of the steps took longer.
        seconds: For how long kernels and engines ran in this step.
        nodes: What each node and each cluster took.
        ops: What the nodes of each op, and the clusters of each engine, took.
    """

    steps: list[float]
    median: int
    seconds: float
    nodes: list[ProfileRow]
    ops: list[ProfileRow]

    @property
    def step_seconds(self) -> float:
        """How long the median step took."""
        return self.steps[self.median] if self.steps else 0.0


def profile_of(step_stats: Message | Sequence[Message]) -> Profile:
    """The profile of the StepStats of a step, or of the median of several; opkernel's or TensorFlow's."""
    steps = step_stats if isinstance(step_stats, Sequence) else [step_stats]
    timelines = [*map(timeline_of, steps)]
    times = [sum(end - start for start, end in one.steps) / 1e9 for one in timelines]
    median = sorted(range(len(times)), key=times.__getitem__)[len(times) // 2] if times else 0
    tracks = timelines[median].tracks if timelines else []
    executions = _executions([one for track in tracks for one in track.slices])
    return Profile(
        times,
        median,
        sum(one.seconds for one in executions),
        _rows(executions, lambda one: one.name),
        _rows(executions, lambda one: ""),
    )


@dataclass(frozen=True, slots=True)
class _Execution:
    """An execution of a node or of a cluster, as ProfileRow counts it."""

    name: str
    op: str
    seconds: float
    output_bytes: int
    is_cluster: bool = False
    parts: Sequence[_Execution] = ()


def _executions(slices: Iterable[Slice]) -> list[_Execution]:
    """The executions of a step. A cluster is one: the engine's slice, with the slice of the node that launched it."""
    inside: dict[Slice, list[Slice]] = defaultdict(list)
    outer, in_clusters = [], set[Slice]()
    for one in slices:
        around = one.around
        if around is not None and (around.is_engine or around in in_clusters):
            in_clusters.add(one)
            inside[around].append(one)
        elif around is not None and one.is_engine:
            inside[around].append(one)
        else:
            outer.append(one)
    return [_execution(one, inside) for one in outer]


def _execution(one: Slice, inside: Mapping[Slice, list[Slice]]) -> _Execution:
    engines = (
        [one] if one.is_engine else [other for other in inside.get(one, ()) if other.is_engine]
    )
    if not engines:
        return _Execution(one.name, one.op, _seconds(one), one.output_bytes)
    seconds = _seconds(one) + sum(engine.compute for engine in engines if engine is not one) / 1e9
    parts = [part for engine in engines for part in inside.get(engine, ())]
    return _Execution(
        one.name,
        engines[0].op,
        one.compute / 1e9 if one.is_engine else seconds,
        one.output_bytes,
        True,
        [_Execution(_short(part, one), part.op, part.compute / 1e9, 0) for part in parts],
    )


def _short(part: Slice, cluster: Slice) -> str:
    """The name of an operation of a cluster, without the cluster's."""
    return part.name.removeprefix(f"{cluster.name.removesuffix(f'/{cluster.op}')}/")


def _rows(
    executions: Iterable[_Execution], name_of: Callable[[_Execution], str]
) -> list[ProfileRow]:
    """The rows of the executions with equal names and ops, the hottest first."""
    groups: dict[tuple[str, str, bool], list[_Execution]] = defaultdict(list)
    for one in executions:
        groups[name_of(one), one.op, one.is_cluster].append(one)
    rows = [
        ProfileRow(
            name,
            op,
            calls=len(group),
            seconds=sum(one.seconds for one in group),
            output_bytes=sum(one.output_bytes for one in group),
            is_cluster=is_cluster,
            parts=_rows([part for one in group for part in one.parts], lambda part: part.name),
        )
        for (name, op, is_cluster), group in groups.items()
    ]
    return sorted(rows, key=lambda row: -row.seconds)


def _seconds(one: Slice) -> float:
    """The time of the kernel of a slice, without that of the slices in it."""
    return max(one.compute - one.inside, 0) / 1e9


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
