"""NodeExecStatsWrapper: the statistics of one execution of a node, while they are taken.

Taking them must cost little: all that is not lost afterwards is worked out when the step is over. `LiveMemory`
has the arrays that the step has brought forth, from their node to their collection.

Source: NodeExecStatsWrapper in TensorFlow core/common_runtime/step_stats_collector.cc.
"""

from __future__ import annotations

import itertools
import time
import weakref
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from opkernel.device.ownership import counts_mean_ownership, others
from opkernel.kernel import MemoryRecord, OpKernelContext, TensorRef
from opkernel.proto import NodeDef, NodeExecStats
from opkernel.records import dataclass, field
from opkernel.types import Array, DataType, as_dtype

if TYPE_CHECKING:
    from opkernel.runtime.traces.step_stats_collector import StepStatsCollector


_now = time.perf_counter_ns


_ids = itertools.count(1)


class LiveArray(weakref.ref[Array]):
    """An array that owns its memory; times are those of `time.perf_counter_ns`.

    Attributes:
        id: A number that no other array has.
        size: Its bytes.
        is_new: Whether it seems that a node brought it forth; False once a node has claimed it.
        since: When the node had done so.
        until: When it was collected; 0 while it is alive.
    """

    __slots__ = ("id", "is_new", "key", "since", "size", "until")
    only_counts = True  # nobody reads the array by it

    id: int
    is_new: bool
    key: int
    since: int
    size: int
    until: int


class LiveMemory:
    """Tells memory that nodes took from memory that they were given, and follows it to its end.

    Used from any thread, and without locks: an array may be collected at any instruction.
    """

    def __init__(self) -> None:
        self._alive: dict[int, LiveArray] = {}
        alive = self._alive

        def note(allocation: Any) -> None:
            """Note that an array was collected; keeps nothing of the step alive."""
            allocation.until = _now()
            key = allocation.key
            if alive.get(key) is allocation:  # else the address is used again
                del alive[key]

        self._note = note

    def allocations(self, outputs: Sequence[Any]) -> list[LiveArray | None]:
        """The new memory of each output of a node; None for outputs that are no arrays.

        Memory is new where no output before had it and nobody else refers to it: neither an input
        nor a variable nor the kernel itself.
        """
        return [  # without a variable that refers to an output
            self._of(outputs, index) if isinstance(outputs[index], np.ndarray) else None
            for index in range(len(outputs))
        ]

    def _of(self, outputs: Sequence[Any], index: int) -> LiveArray:
        is_new = counts_mean_ownership() and others(outputs, index) == 0
        owner = outputs[index]
        while isinstance(owner.base, np.ndarray):
            is_new = is_new and others((owner.base,), 0) == 1  # the view's
            owner = owner.base
        key = id(owner)
        known = self._alive.get(key)
        if known is None:
            known = self._alive[key] = LiveArray(owner, self._note)
            known.id, known.key, known.size, known.is_new = next(_ids), key, owner.nbytes, is_new
            known.since, known.until = _now(), 0
        return known


ENGINE_MARK = "_is_run_of_engine"
"""The attr of a NodeDef that stands for a cluster which an engine runs; the label says so."""
ENGINE_LABEL = "[engine] "

ALLOCATOR = "cpu"
"""The name of the allocator that arrays come from."""


_LABELLED_BYTES = 0.1 * 2**20


_OTHER_DEVICE = (("Recv", "send_device"), ("Send", "recv_device"))


_TRANSFERS = {f"{way}{op}": attr for way in ("_", "_Host") for op, attr in _OTHER_DEVICE}
"""The ops that a tensor is sent or received by; the attr that names the other device."""


_Output = tuple[int, Any, tuple[int, ...], int, LiveArray | None]
"""An output: its slot, type, shape and bytes, and what holds its memory."""


@dataclass(slots=True, eq=False, repr=False)
class NodeExecStatsWrapper:
    """The statistics of one execution of a node.

    `StepStatsCollector.create_node_exec_stats` makes it, the executor records, `done` ends it. Times come
    from `time.perf_counter_ns`; a time that was not recorded is 0.

    Attributes:
        collector: Takes them.
        node: The node.
        scope: The prefix of its name: the calls of functions around it, each with a slash.
        thread_id: The system's number of the thread that ran it; 0 for no thread, as for an asynchronous
            kernel.
        scheduled: When the node became ready.
        all_start: When the executor began with it.
        op_start: When the kernel was called.
        op_end: When the kernel was done.
        all_end: When the executor was done with it.
        allocations: The memory that the node brought forth.
    """

    collector: StepStatsCollector
    node: NodeDef
    scope: str = ""
    thread_id: int = field(default=0, init=False)
    scheduled: int = field(default=0, init=False)
    all_start: int = field(default=0, init=False)
    op_start: int = field(default=0, init=False)
    op_end: int = field(default=0, init=False)
    all_end: int = field(default=0, init=False)
    allocations: list[LiveArray] = field(default_factory=list, init=False)
    _outputs: list[_Output] = field(default_factory=list, init=False)
    _types: Sequence[DataType] = field(default=(), init=False)
    _memory: MemoryRecord | None = field(default=None, init=False)

    def record_executor_started(self) -> None:
        """The executor begins with the node, on this thread."""
        self.thread_id = self.collector.this_thread()
        self.all_start = _now()
        if not self.scheduled:
            self.scheduled = self.all_start

    def record_compute_started(self) -> None:
        """Note that the kernel is called now."""
        self.op_start = _now()

    def record_compute_ended(self) -> None:
        """The kernel is done: it has returned or, if it is asynchronous, said so."""
        self.op_end = _now()

    def record_executor_ended(self) -> None:
        """The executor is done with the node."""
        self.all_end = _now()

    def set_memory(self, ctx: OpKernelContext) -> None:
        """Record the temporary and persistent memory that a context has a record of.

        The record's references to tensors are dropped, so that outputs are seen to be new.
        """
        self._memory = ctx.memory
        if ctx.memory is not None:
            ctx.memory.references.clear()

    def set_output(self, slot: int, tensor: Any) -> None:
        """Record an output."""
        self._add_output(slot, tensor, self.collector.memory.allocations([tensor])[0])

    def set_outputs(self, tensors: Sequence[Any], types: Sequence[DataType] = ()) -> None:
        """Record all outputs.

        Args:
            tensors: Them. Memory that anybody else refers to counts as none of the node's.
            types: Their types; by default those that their arrays stand for.
        """
        self._types = types
        for slot, allocation in enumerate(self.collector.memory.allocations(tensors)):
            self._add_output(slot, tensors[slot], allocation)

    def done(self, device: str) -> None:
        """The statistics are complete: give them to the collector."""
        self.collector.save(device, self)

    def _add_output(self, slot: int, tensor: Any, allocation: LiveArray | None) -> None:
        if isinstance(tensor, TensorRef):
            tensor = tensor.tensor
        if not isinstance(tensor, np.ndarray | np.generic):
            return  # dead, or not there
        self._outputs.append((slot, tensor.dtype, tensor.shape, tensor.nbytes, allocation))
        if allocation is not None and allocation.is_new:
            allocation.is_new = False
            self.allocations.append(allocation)

    # What follows is for when the step is over.

    @property
    def name(self) -> str:
        """The name of the node, those of the calls that it is in before it."""
        return self.scope + self.node.name

    def to_proto(self, epoch: int, bytes_in_use: int) -> NodeExecStats:
        """The statistics as a message.

        Args:
            epoch: What is to be added to times to make them nanoseconds since the epoch.
            bytes_in_use: The memory of the step that was in use when the node was done.
        """
        stats = NodeExecStats(
            node_name=self.name, timeline_label=self._label(), thread_id=self.thread_id
        )
        self._write_times(stats, epoch)
        self._write_outputs(stats)
        self._write_memory(stats, epoch, bytes_in_use)
        return stats

    def _label(self) -> str:
        """`name = Op(input, input:1, ^control)`, as TensorFlow has it; much memory stands before."""
        node, scope = self.node, self.scope
        device = _TRANSFERS.get(node.op)
        if device is None:
            inputs = [f"^{scope}{i[1:]}" if i.startswith("^") else scope + i for i in node.input]
            arguments = ", ".join(inputs)
        else:
            tensor, other = (
                node.attr[attr].s.decode(errors="backslashreplace")
                for attr in ("tensor_name", device)
            )
            arguments = f"{tensor} @{other}"
        size = self._total_bytes()
        mark = ENGINE_LABEL if ENGINE_MARK in node.attr else ""
        memory = f"[{ALLOCATOR} {size / 2**20:.1f}MB {size / 2**20:.1f}MB] "
        return (
            f"{mark}{memory if size >= _LABELLED_BYTES else ''}{self.name} = {node.op}({arguments})"
        )

    def _write_times(self, stats: NodeExecStats, epoch: int) -> None:
        start = self.all_start + epoch
        stats.scheduled_nanos = self.scheduled + epoch
        stats.scheduled_micros = stats.scheduled_nanos // 1000
        stats.all_start_nanos, stats.all_start_micros = start, start // 1000
        for name in ("op_start", "op_end", "all_end"):
            time_of_it = getattr(self, name) + epoch
            if time_of_it > start:
                setattr(stats, f"{name}_rel_nanos", time_of_it - start)
                setattr(stats, f"{name}_rel_micros", time_of_it // 1000 - start // 1000)

    def _write_outputs(self, stats: NodeExecStats) -> None:
        for slot, dtype, shape, size, allocation in self._outputs:
            description = stats.output.add(slot=slot).tensor_description
            declared = self._types[slot] if self._types else as_dtype(dtype)
            description.dtype = declared.base
            for extent in shape:
                description.shape.dim.add(size=extent)
            memory = description.allocation_description
            memory.requested_bytes = size
            memory.allocator_name = ALLOCATOR
            if allocation is not None:
                memory.allocated_bytes = allocation.size
                memory.allocation_id = allocation.id
            description.shape.SetInParent()

    def _write_memory(self, stats: NodeExecStats, epoch: int, bytes_in_use: int) -> None:
        stats.memory_stats.SetInParent()
        if self._memory is not None:
            stats.memory_stats.temp_memory_size = self._memory.temp_memory_allocated
            stats.memory_stats.persistent_memory_size = self._memory.persistent_memory_allocated()
            ids = self._memory.persistent_alloc_ids()
            stats.memory_stats.persistent_tensor_alloc_ids.extend(ids)
        total = self._total_bytes()
        if not total:
            return
        used = stats.memory.add(
            allocator_name=ALLOCATOR,
            total_bytes=total,
            peak_bytes=total,
            live_bytes=sum(a.size for a in self.allocations),
            allocator_bytes_in_use=bytes_in_use,
        )
        for nanos, size in sorted(memory_changes(self.allocations)):
            used.allocation_records.add(alloc_micros=(nanos + epoch) // 1000, alloc_bytes=size)

    def _total_bytes(self) -> int:
        """The memory that the computation took: for its outputs, and for a while."""
        temporary = 0 if self._memory is None else self._memory.temp_memory_allocated
        return temporary + sum(allocation.size for allocation in self.allocations)


def memory_changes(allocations: Iterable[LiveArray]) -> Iterator[tuple[int, int]]:
    """When memory was taken, and given back: the time and the bytes, negative for the latter."""
    for allocation in allocations:
        yield allocation.since, allocation.size
        if allocation.until:
            yield allocation.until, -allocation.size
