"""Timeline: what StepStats tell, laid out for a picture: slices on tracks, arrows, memory in use.

StepStats come from a step of ours or of TensorFlow's. Nodes that one thread ran one within the other
are shown so. What overlaps otherwise, and what no thread is known of, goes on tracks of its own: one
for as many nodes as do not overlap.

Source: TensorFlow python/client/timeline.py.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import accumulate

from opkernel.graph.core.structural_ops import TRANSFER_OPS
from opkernel.proto import Message, NodeExecStats, NodeOutput, StepStats
from opkernel.runtime.traces.node_exec_stats import ENGINE_LABEL
from opkernel.types import DataType

_DATA_TYPES = frozenset(DataType)
_LABEL = re.compile(r"(?:\[[^\]]*\] )*(?P<name>\S+) = (?P<op>[^\s(]+)\((?P<inputs>.*)\)", re.DOTALL)


@dataclass(eq=False, slots=True)
class Slice:
    """One execution of a node; times are in nanoseconds since the epoch.

    Attributes:
        name: The name of the node.
        op: Its op; the name of the node if that is not told.
        inputs: Its inputs, as NodeDefs have them.
        scheduled: When the node became ready.
        start: When the executor began with it.
        end: When the executor was done with it.
        compute: For how long its kernel ran.
        stats: All that is told of it.
        inside: For how long other nodes of its thread ran within it.
        around: The slice that it lies in.
    """

    name: str
    op: str
    inputs: list[str]
    scheduled: int
    start: int
    end: int
    compute: int
    stats: NodeExecStats
    inside: int = 0
    around: Slice | None = None

    @property
    def is_engine(self) -> bool:
        """Whether it is a cluster, which an engine runs."""
        return self.stats.timeline_label.startswith(ENGINE_LABEL)

    @property
    def output_bytes(self) -> int:
        """The size of its outputs."""
        tensors = [output.tensor_description for output in self.stats.output]
        return sum(one.allocation_description.requested_bytes for one in tensors)

    @property
    def outputs(self) -> str:
        """The types and shapes of its outputs: `float[2,3], int32[]`."""
        return ", ".join(_described(output) for output in self.stats.output)


@dataclass(eq=False, slots=True)
class Track:
    """Slices that lie one after the other, or one within the other.

    Attributes:
        device: The device that ran them.
        thread_id: The thread that ran them; 0 where none is known.
        name: What it is called.
        slices: Outer ones, and earlier ones, first.
        is_thread: Whether it is the track of the thread, and not one for what overlaps there.
    """

    device: str
    thread_id: int
    name: str
    slices: list[Slice] = field(default_factory=list)
    is_thread: bool = True


@dataclass(eq=False, slots=True)
class Counter:
    """The memory that is in use, as it changes: at a time, in nanoseconds, so many bytes."""

    device: str
    name: str
    values: list[tuple[int, int]]


@dataclass(eq=False, slots=True)
class Timeline:
    """The events of steps.

    Attributes:
        tracks: The slices, device by device.
        arrows: Which slice had an input from which: producer and consumer.
        counters: The memory in use.
        steps: When each step began and ended.
    """

    tracks: list[Track]
    arrows: list[tuple[Slice, Slice]]
    counters: list[Counter]
    steps: list[tuple[int, int]]

    @property
    def start(self) -> int:
        """When the first node began; 0 without nodes."""
        return min((start for start, _ in self.steps), default=0)


def timeline_of(steps: Message | Sequence[Message]) -> Timeline:
    """The timeline of the StepStats of a step, or of several steps, one after the other."""
    tracks: dict[tuple[str, int, int], Track] = {}
    timeline = Timeline([], [], [], [])
    counters: dict[tuple[str, str], list[tuple[int, int]]] = defaultdict(list)
    for step in map(_ours, steps if isinstance(steps, Sequence) else [steps]):
        slices = []
        for device in step.dev_stats:
            found = [_slice(stats) for stats in device.node_stats]
            _lay_out(found, device.device, device.thread_names, tracks)
            slices += found
            for allocator, values in _memory_in_use(device.node_stats).items():
                counters[device.device, allocator] += values
        if slices:
            timeline.arrows += _arrows(slices)
            timeline.steps.append((min(s.start for s in slices), max(s.end for s in slices)))
    timeline.tracks = [tracks[key] for key in sorted(tracks)]
    timeline.counters = [
        Counter(device, f"memory in use ({allocator})", values)
        for (device, allocator), values in sorted(counters.items())
    ]
    return timeline


def arguments_of(one: Slice) -> dict[str, str | int]:
    """The known arguments of a slice in a picture, by name; its op is the title."""
    memory = one.stats.memory_stats
    told: dict[str, str | int] = {
        "node": one.name,
        "inputs": ", ".join(one.inputs),
        "outputs": one.outputs,
        "output bytes": one.output_bytes,
        "temporary bytes": memory.temp_memory_size,
        "persistent bytes": memory.persistent_memory_size,
        "kernel ns": one.compute,
        "ready before start ns": one.start - one.scheduled,
    }
    return {name: value for name, value in told.items() if value}


def _ours(message: Message) -> StepStats:
    """The StepStats of any library as ours."""
    if isinstance(message, StepStats):
        return message
    return StepStats.FromString(message.SerializeToString())


def _slice(stats: NodeExecStats) -> Slice:
    found = _LABEL.fullmatch(stats.timeline_label)
    inputs = found["inputs"].split(", ") if found and found["inputs"] else []
    start, end, compute = _times(stats)
    return Slice(
        name=stats.node_name,
        op=found["op"] if found else stats.node_name,
        inputs=inputs,
        scheduled=min(stats.scheduled_nanos or stats.scheduled_micros * 1000 or start, start),
        start=start,
        end=end,
        compute=compute,
        stats=stats,
    )


def _times(stats: NodeExecStats) -> tuple[int, int, int]:
    """Start, end and time of the kernel; old StepStats have microseconds alone."""
    if stats.all_start_nanos:
        start, end = stats.all_start_nanos, stats.all_end_rel_nanos
        op_start, op_end = stats.op_start_rel_nanos, stats.op_end_rel_nanos
    else:
        start, end = stats.all_start_micros * 1000, stats.all_end_rel_micros * 1000
        op_start, op_end = stats.op_start_rel_micros * 1000, stats.op_end_rel_micros * 1000
    start, op_end = max(start, 0), max(op_end, op_start)
    return start, start + max(end, op_end, 0), op_end - op_start


def _lay_out(
    slices: Iterable[Slice],
    device: str,
    thread_names: Mapping[int, str],
    tracks: dict[tuple[str, int, int], Track],
) -> None:
    """Put each slice on the first track of its thread where it fits."""
    under_way: dict[tuple[str, int, int], list[Slice]] = defaultdict(list)
    for one in sorted(slices, key=lambda s: (s.start, -s.end)):
        number, key = 0, (device, one.stats.thread_id, 0)
        while not _fits(one, under_way[key]):
            number += 1
            key = (*key[:2], number)
        if under_way[key]:
            one.around = under_way[key][-1]
            one.around.inside += one.end - one.start
        under_way[key].append(one)
        if key not in tracks:
            thread_id = key[1]
            name = thread_names.get(thread_id) or (f"thread {thread_id}" if thread_id else "")
            tracks[key] = Track(device, thread_id, _track_name(name, number), [], not number)
        tracks[key].slices.append(one)


def _fits(one: Slice, under_way: list[Slice]) -> bool:
    """Whether a slice lies behind or within the slices under way on a track; drops those that have ended."""
    while under_way and under_way[-1].end <= one.start:
        under_way.pop()
    return not under_way or (one.stats.thread_id != 0 and one.end <= under_way[-1].end)


def _track_name(thread: str, number: int) -> str:
    if thread:
        return f"{thread}, overlapping {number}" if number else thread
    return f"side by side {number + 1}"


def _arrows(slices: Iterable[Slice]) -> list[tuple[Slice, Slice]]:
    """Each consumer with the execution of each producer that was the last to begin before it."""
    by_start = sorted(slices, key=lambda s: s.start)
    latest: dict[str, Slice] = {}
    arrows = []
    for one in by_start:
        names = [text.lstrip("^") for text in one.inputs]
        producers = [latest.get(name) or latest.get(name.partition(":")[0]) for name in names]
        arrows += [(p, one) for p in dict.fromkeys(producers) if p is not None]
        latest[one.name] = one
    return arrows + _transfers(by_start)


def _transfers(slices: Iterable[Slice]) -> list[tuple[Slice, Slice]]:
    """Each send of a tensor with its receive: of several, as in a loop, the first with the first.

    A receive begins when it begins to wait, which may be before the send.
    """
    sent: dict[str, list[Slice]] = defaultdict(list)
    received: dict[str, list[Slice]] = defaultdict(list)
    for one in slices:
        if one.op in TRANSFER_OPS and one.inputs:
            tensor = one.inputs[0].partition(" @")[0]
            (sent if one.op.endswith("Send") else received)[tensor].append(one)
    return [pair for name in sent for pair in zip(sent[name], received[name], strict=False)]


def _memory_in_use(nodes: Iterable[NodeExecStats]) -> dict[str, list[tuple[int, int]]]:
    """The bytes in use at each time that they changed, by allocator."""
    changes: dict[str, dict[int, int]] = defaultdict(lambda: defaultdict(int))
    for stats in nodes:
        for memory in stats.memory:
            for record in memory.allocation_records:
                changes[memory.allocator_name][record.alloc_micros * 1000] += record.alloc_bytes
    found = {}
    for name, of_allocator in changes.items():
        times = sorted(of_allocator)
        found[name] = list(zip(times, accumulate(of_allocator[at] for at in times), strict=True))
    return found


def _described(output: NodeOutput) -> str:
    description = output.tensor_description
    number = description.dtype
    dtype = DataType(number).string if number in _DATA_TYPES else f"type {number}"
    return f"{dtype}[{','.join(str(dim.size) for dim in description.shape.dim)}]"
