"""StepStatsCollector: the statistics of the nodes of one step.

Source: TensorFlow core/common_runtime/step_stats_collector.cc.
"""

from __future__ import annotations

import logging
import threading
import time
from bisect import bisect_right
from contextvars import ContextVar
from itertools import accumulate
from typing import TYPE_CHECKING

from opkernel.errors import FailedPreconditionError
from opkernel.interrupts import setting
from opkernel.proto import NodeDef, NodeExecStats, StepStats
from opkernel.records import dataclass
from opkernel.runtime.traces.node_exec_stats import LiveMemory, NodeExecStatsWrapper, memory_changes

if TYPE_CHECKING:
    from contextlib import AbstractContextManager


_LOGGER = logging.getLogger("opkernel.step_stats")
_MAX_COLLECTED_NODES = 1 << 20
_REPORTED_NODES = 100

_Stats = NodeExecStatsWrapper | NodeExecStats


@dataclass(slots=True, eq=False)
class Place:
    """Where in a step a thread is: the prefix that traces give to the nodes that it computes.

    A node inside of a function is named `call/node`, as TensorFlow names the nodes of functions that it
    inlines. A thread of a pool has the place of the thread that gave it the work.

    Attributes:
        scope: The calls of functions that it is in: `call/inner_call/`, or nothing.
        scheduled: When the node that is computed next became ready; 0 if it does so when it is begun.
        collector: That of the step, where an executor said so.
    """

    scope: str = ""
    scheduled: int = 0
    collector: StepStatsCollector | None = None


_START = Place()
_place: ContextVar[Place] = ContextVar("opkernel_place", default=_START)

current_place = _place.get
enter = _place.set


def in_place(place: Place) -> AbstractContextManager[None]:
    """Within the block, this thread is at a place."""
    return setting({_place: place})


def in_call(node: str) -> AbstractContextManager[None]:
    """Within the block, this thread is in the functions that a node calls."""
    return in_place(Place(f"{current_place().scope}{node}/"))


class StepStatsCollector:
    """Collects the statistics of nodes, from any thread, and writes them when the step is over.

    Args:
        step_stats: Takes what was collected; nothing is collected if None.

    Attributes:
        memory: The memory that the step has taken.
    """

    def __init__(self, step_stats: StepStats | None) -> None:
        self.memory = LiveMemory()
        self._step_stats = step_stats
        self._epoch = time.time_ns() - time.perf_counter_ns()
        self._of_device: dict[str, list[_Stats]] = {}
        self._saved_names: dict[str, dict[int, str]] = {}
        self._names: dict[int, str] = {}
        self._collected = 0
        self._is_finalized = False
        self._lock = threading.Lock()

    def create_node_exec_stats(self, node: NodeDef) -> NodeExecStatsWrapper:
        """A recorder for one execution of a node, within the calls that are under way."""
        place = current_place()
        stats = NodeExecStatsWrapper(self, node, place.scope)
        if place.scheduled:  # of this node, and not of the nodes within it
            stats.scheduled, place.scheduled = place.scheduled, 0
        return stats

    def save(self, device: str, stats: NodeExecStatsWrapper | NodeExecStats) -> None:
        """Take the statistics of a node of a device; no more than 2**20 of a step."""
        if self._is_finalized:
            _LOGGER.warning("Statistics that are saved after finalize are not collected")
            return
        if self._step_stats is None or self._collected >= _MAX_COLLECTED_NODES:
            return
        self._collected += 1
        self._of_device.setdefault(device, []).append(stats)

    def save_thread_name(self, device: str, thread_id: int, thread_name: str) -> None:
        """Name a thread that nodes of a device ran on."""
        if self._is_finalized:
            _LOGGER.warning("Names of threads that are saved after finalize are not collected")
            return
        self._saved_names.setdefault(device, {})[thread_id] = thread_name

    def this_thread(self) -> int:
        """The system's number for the calling thread, whose name is noted."""
        number = threading.get_native_id()
        if number not in self._names:
            self._names[number] = threading.current_thread().name
        return number

    def report_allocs_on_resource_exhausted(self, error: str) -> str:
        """Which nodes hold how much memory, for an error that says OOM; empty for others."""
        if "OOM" not in error:
            return ""
        held = [
            (sum(a.size for a in stats.allocations if not a.until), stats.name)
            for stats in self._recorded()
        ]
        held = sorted((found for found in held if found[0]), reverse=True)
        total = sum(size for size, _ in held)
        lines = [f"  {size:,} bytes from {name}" for size, name in held[:_REPORTED_NODES]]
        if len(held) > _REPORTED_NODES:
            rest = held[_REPORTED_NODES:]
            lines.append(f"  {sum(size for size, _ in rest):,} bytes from {len(rest)} other nodes")
        return "\n".join([f"\nThe outputs of the step hold {total:,} bytes:", *lines]) + "\n"

    def finalize(self) -> None:
        """Write the collected statistics into the StepStats; once, however often it is called."""
        with self._lock:
            if self._is_finalized or self._step_stats is None:
                return
            self._is_finalized = True
        devices = {stats.device: stats for stats in self._step_stats.dev_stats}
        memory = self._memory_in_use()
        for name, collected in self._of_device.items():
            device = devices.get(name)
            if device is None:
                device = self._step_stats.dev_stats.add(device=name)
            written = [
                stats if isinstance(stats, NodeExecStats) else self._written(stats, *memory)
                for stats in collected
            ]
            device.node_stats.extend(written)
            names = {number: self._names.get(number) for number in {s.thread_id for s in written}}
            device.thread_names.update({number: name for number, name in names.items() if name})
            device.thread_names.update(self._saved_names.get(name, {}))

    def finalize_and_swap(self, step_stats: StepStats) -> None:
        """Finalize, and swap the contents of the collector's StepStats and of `step_stats`."""
        self.finalize()
        ours = self._step_stats
        if ours is None:
            raise FailedPreconditionError("There are no StepStats to be swapped")
        theirs = step_stats.SerializeToString()
        step_stats.CopyFrom(ours)
        ours.ParseFromString(theirs)
        self._collected = 0

    def _recorded(self) -> list[NodeExecStatsWrapper]:
        """The statistics recorded here, of all devices."""
        collected = [stats for of_device in self._of_device.values() for stats in of_device]
        return [stats for stats in collected if isinstance(stats, NodeExecStatsWrapper)]

    def _memory_in_use(self) -> tuple[list[int], list[int]]:
        """The times at which the memory in use changed, and how much was in use from then on."""
        recorded = self._recorded()
        changes = sorted(memory_changes([a for stats in recorded for a in stats.allocations]))
        return [at for at, _ in changes], list(accumulate(size for _, size in changes))

    def _written(
        self, stats: NodeExecStatsWrapper, times: list[int], in_use: list[int]
    ) -> NodeExecStats:
        index = bisect_right(times, stats.all_end)
        return stats.to_proto(self._epoch, in_use[index - 1] if index else 0)
