"""Partitioning: cuts a program for several devices, with sends and receives between the parts.

The parts run at the same time, and wait for each other in the rendezvous (`ParallelPartitions`).

Source: TensorFlow core/graph/graph_partition.cc; RunInternal, ExecutorBarrier in
core/common_runtime/direct_session.cc.
"""

from __future__ import annotations

import contextvars
import itertools
import threading
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from opkernel.device.local_device import LocalDevice
from opkernel.errors import CancelledError, as_op_error
from opkernel.graph import Graph, Operation, Tensor
from opkernel.graph.core.frame_loops import ROOT, LoopFrame, LoopFrames
from opkernel.graph.core.structural_ops import (
    ENTER_OPS,
    EXIT_OPS,
    LOW_LEVEL_CONTROL_FLOW,
    MERGE_OPS,
    NEXT_ITERATION_OPS,
    SWITCH_OPS,
)
from opkernel.graph.edit.graph_edit import GraphEdit
from opkernel.graph.edit.subgraph import Needs, copy_operations
from opkernel.kernel import MemoryType
from opkernel.runtime.placement.memory_types import memory_types_on
from opkernel.runtime.placement.placer import Assignment
from opkernel.runtime.program.executors import Executor
from opkernel.runtime.program.request import Partition, Subgraph, arg_name
from opkernel.runtime.program.run_step import RunStep
from opkernel.types import DataType


class _Place(NamedTuple):
    """Where a tensor is, or is wanted: the memory of a device, or the host's beside it."""

    device: LocalDevice
    on_host: bool


class _DeviceShare:
    """A device's share of what a program is given, computes and runs: tensors with their index, and targets."""

    def __init__(self) -> None:
        self.feeds: list[tuple[int, Tensor]] = []
        self.fetches: list[tuple[int, Tensor]] = []
        self.targets: list[Operation] = []


class Partitioning:
    """Cuts a copy of the program's graph.

    State: `device_of` and `_order` grow with the nodes that are added. `_order` has the operations of
    each device in order. All devices together could run their operations in these orders: no operation
    waits for one that comes later on another device.

    Args:
        whole: The operations that the program needs; its graph stays as it is.
        assignment: Where each operation runs.
        feeds_at: The device that each feed comes to. Where given, a feed comes also to the other devices that
            take it, and each device gives the fetches that it has; else all feeds come to the client's device, and all
            fetches are brought there.
    """

    def __init__(
        self, whole: Subgraph, assignment: Assignment, feeds_at: Sequence[LocalDevice] | None = None
    ) -> None:
        graph = whole.graph
        assert graph is not None, "a program that computes nothing is not cut"
        copied, fed = copy_operations(graph, whole.operations, whole.feeds)
        self._client = assignment.client_device
        self._edit = GraphEdit(copied)
        self._numbers = itertools.count()
        self.device_of: dict[Operation, LocalDevice] = {}
        self._order: dict[LocalDevice, list[Operation]] = {self._client: []}
        self._received: dict[tuple[Tensor, _Place], Tensor] = {}
        self._signals: dict[tuple[Operation, LocalDevice], Operation] = {}
        self._feeds = [fed[tensor] for tensor in whole.feeds]
        self._arg_names: dict[Operation, str] = {}
        self._is_spread = feeds_at is not None
        self._spread_feeds = {t: i for i, t in enumerate(self._feeds)} if self._is_spread else {}
        self._shares: dict[LocalDevice, _DeviceShare] = {}
        for index, tensor in enumerate(self._feeds):
            self.device_of[tensor.op] = self._client if feeds_at is None else feeds_at[index]
            if feeds_at is None:
                self._arg_names[tensor.op] = arg_name(whole.feeds[index], index)
        self._whole = whole
        copies = {op: copied.by_name.get(op.name) for op in whole.operations}
        self.operations = [copy for copy in copies.values() if copy and copy not in self.device_of]
        for op, copy in copies.items():
            if copy is not None:
                self.device_of.setdefault(copy, assignment.device_of(op))
        self._colocate_control_flow()
        self._fetches = [fed[t] if t in fed else _same(t, copied) for t in whole.fetches]
        self._targets = [copy for op in whole.targets if (copy := copies[op])]
        self._loops = _ControlLoops(self, Needs(self._feeds))

    def partitions(self) -> list[Partition]:
        """The parts."""
        for op in self.operations:
            device = self.device_of[op]
            for index, place in enumerate(self._wanted(op)):
                tensor = op.inputs[index]
                there = self.there(tensor, place)
                if there is not tensor:
                    op.update_input(index, there)
            if op.control_inputs:
                op.set_control_inputs([self._signal(c, device) for c in op.control_inputs])
            self._order.setdefault(device, []).append(op)
        if not self._is_spread:
            home = _Place(self._client, on_host=True)
            self._fetches = [self.there(tensor, home) for tensor in self._fetches]
        for index, tensor in enumerate(self._feeds):
            self._share_of(self.device_of[tensor.op]).feeds.append((index, tensor))
        for index, tensor in enumerate(self._fetches):
            self._share_of(self.device_of[tensor.op]).fetches.append((index, tensor))
        for op in self._targets:
            self._share_of(self.device_of[op]).targets.append(op)
        for device in self._shares:
            self._order.setdefault(device, [])
        return [self._part(device) for device in self._order]

    def _share_of(self, device: LocalDevice) -> _DeviceShare:
        return self._shares.setdefault(device, _DeviceShare())

    def there(self, tensor: Tensor, place: _Place) -> Tensor:
        """A tensor in a place, to which it is sent once if it is in another."""
        source = self._place_of(tensor)
        if source == place:
            return tensor
        if (tensor, place) not in self._received:
            index = self._spread_feeds.get(tensor)
            if index is None:
                self._send(tensor, source, place)
            else:
                self._feed(index, tensor, place)
        return self._received[tensor, place]

    def add(
        self, device: LocalDevice, op_type: str, inputs: Sequence[Tensor], name: str, **attrs: Any
    ) -> Operation:
        """A new operation of a device, after the device's present operations."""
        return self._added(self._edit.add(op_type, inputs, name, attrs, device.name), device)

    def _colocate_control_flow(self) -> None:
        """Put control flow beside its data: Switch and Exit if that is, others where it is wanted.

        Source: OptimizeControlFlowColocation in TensorFlow core/graph/graph_partition.cc.
        """
        devices = self.device_of
        for op in self.operations:
            if op.type in SWITCH_OPS | EXIT_OPS:
                devices[op] = devices[op.inputs[0].op]
        for op in self.operations:
            if op.type in NEXT_ITERATION_OPS | ENTER_OPS and not op.outputs[0].dtype.is_ref:
                wanted = [consumer for consumer, index in op.consumer_edges() if index >= 0]
                merges = [consumer for consumer in wanted if consumer.type in MERGE_OPS]
                for consumer in (merges or wanted)[-1:]:
                    devices[op] = devices[consumer]

    def _part(self, device: LocalDevice) -> Partition:
        ops = self._order[device]
        sends = [op for op in ops if op.type in ("_Send", "_HostSend")]
        share = self._share_of(device)
        share.feeds.sort(key=lambda feed: feed[0])  # in whose order they are given
        order = None if self._loops.clocks else ops  # which has a loop's Send before its LoopCond
        part = Subgraph(
            [tensor for _, tensor in share.feeds],
            [tensor for _, tensor in share.fetches],
            [*share.targets, *sends],
            order=order,
        )
        feeds, fetches = ([index for index, _ in given] for given in (share.feeds, share.fetches))
        return Partition(device, part, feeds, fetches)

    def _feed(self, index: int, tensor: Tensor, place: _Place) -> None:
        """Have a feed come to another device, too."""
        name, attrs = f"{tensor.op.name}/_{next(self._numbers)}", {"dtype": tensor.dtype.base}
        stand_in = self._edit.add("Placeholder", [], name, attrs, place.device.name)
        self.device_of[stand_in] = place.device
        self._share_of(place.device).feeds.append((index, stand_in.outputs[0]))
        self._received[tensor, place] = stand_in.outputs[0]

    def _send(self, tensor: Tensor, source: _Place, place: _Place) -> None:
        """Send a tensor, and receive it."""
        number, node = next(self._numbers), self._arg_names.get(tensor.op, tensor.op.name)
        transfer: dict[str, Any] = {
            "tensor_name": f"edge_{number}_{node}",
            "send_device": source.device.name,
            "recv_device": place.device.name,
            "send_device_incarnation": 1,
            "client_terminated": False,
        }
        dtype = tensor.dtype.base
        send = "_HostSend" if source.on_host and source.device.has_own_memory else "_Send"
        sent = self.add(source.device, send, [tensor], f"{node}/_{number}", T=dtype, **transfer)
        receive = "_HostRecv" if place.on_host and place.device.has_own_memory else "_Recv"
        name = f"{node}/_{next(self._numbers)}"
        received = self.add(place.device, receive, [], name, tensor_type=dtype, **transfer)
        self._received[tensor, place] = received.outputs[0]  # a loop that is added may want it, too
        self._loops.have_turn(sent, tensor)
        self._loops.have_turn(received, tensor)

    def _signal(self, op: Operation, device: LocalDevice) -> Operation:
        """The operation on a device that tells that an operation of another device has run."""
        source = self.device_of[op]
        if source is device:
            return op
        signal = self._signals.get((op, source))
        if signal is None:
            name = f"{op.name}/ctrl/_{next(self._numbers)}"
            signal = self.constant(source, np.zeros(0, np.float32), name)
            signal.add_control_inputs([op])
            self._loops.put_behind(signal, op)
            self._signals[op, source] = signal
        return self.there(signal.outputs[0], _Place(device, on_host=not device.has_own_memory)).op

    def constant(self, device: LocalDevice, value: Any, name: str) -> Operation:
        """A new constant on a device."""
        return self._added(self._edit.constant(value, None, name, device.name).op, device)

    def _added(self, op: Operation, device: LocalDevice) -> Operation:
        self.device_of[op] = device
        self._order.setdefault(device, []).append(op)
        return op

    def _place_of(self, tensor: Tensor) -> _Place:
        device = self.device_of[tensor.op]
        if not device.has_own_memory or (tensor.op.type == "Placeholder" and tensor in self._feeds):
            return _Place(device, on_host=True)
        kind = memory_types_on(device.device_type, tensor.op)[1][tensor.value_index]
        return _Place(device, kind == MemoryType.HOST_MEMORY)

    def _wanted(self, op: Operation) -> list[_Place]:
        """Where an operation wants its inputs."""
        device = self.device_of[op]
        if not device.has_own_memory:
            return [_Place(device, on_host=True)] * (len(op.edges) // 2)
        kinds = memory_types_on(device.device_type, op)[0]
        return [_Place(device, kind == MemoryType.HOST_MEMORY) for kind in kinds]


def _same(tensor: Tensor, copied: Graph) -> Tensor:
    """The tensor of a copy of a graph."""
    return copied.by_name[tensor.op.name].outputs[tensor.value_index]


class _ControlLoops:
    """Loops that are on a device for the receives in them, which run once in each turn.

    A receive takes nothing that a loop could hand to it; so a device that receives within a loop gets
    a loop of its own that turns as often: Enter, Merge, Switch by the loop's condition, NextIteration.

    Attributes:
        clocks: The Merges of these loops.
    """

    def __init__(self, partitioning: Partitioning, needs: Needs) -> None:
        self._partitioning = partitioning
        operations = partitioning.operations
        self._frames: LoopFrames | None = None
        self._conditions: dict[LoopFrame, Tensor] = {}
        self.clocks: dict[tuple[LoopFrame, LocalDevice], Operation] = {}
        self._turning: set[tuple[LoopFrame, LocalDevice]] = set()
        if any(op.type in LOW_LEVEL_CONTROL_FLOW for op in operations):
            self._frames = LoopFrames(operations, needs)
            for op in operations:
                if op.type == "LoopCond":
                    self._conditions[self._frames.of(op)] = op.outputs[0]
                elif op.type in NEXT_ITERATION_OPS:
                    self._turning.add((self._frames.of(op), partitioning.device_of[op]))

    def have_turn(self, transfer: Operation, tensor: Tensor) -> None:
        """Have a send or receive of a tensor run once in each turn of the loop that the tensor is of.

        Of a loop that changes nothing on a device there would be no second turn to send in.
        """
        if self._frames is None or (frame := self._frames.behind(tensor.op)) is ROOT:
            return
        device = self._partitioning.device_of[transfer]
        if not transfer.inputs or (frame, device) not in self._turning:
            transfer.add_control_inputs([self._clock(frame, device)])

    def put_behind(self, added: Operation, op: Operation) -> None:
        """Note that an added operation is in the loop of the consumers of another operation."""
        if self._frames is not None:
            self._frames.put(added, self._frames.behind(op))

    def _clock(self, frame: LoopFrame, device: LocalDevice) -> Operation:
        return self.clocks.get((frame, device)) or self._add_loop(frame, device)

    def _add_loop(self, frame: LoopFrame, device: LocalDevice) -> Operation:
        """The Merge of a new loop on a device that turns as often as the loop of a frame."""
        add, name = self._partitioning.add, f"{frame.name}/_control_loop"
        start = self._partitioning.constant(device, np.int32(0), f"{name}/start")
        if frame.parent is not None and frame.parent is not ROOT:
            start.add_control_inputs([self._clock(frame.parent, device)])
        entered = add(
            device,
            "Enter",
            start.outputs,
            f"{name}/Enter",
            T=DataType.DT_INT32,
            frame_name=frame.name,
            is_constant=False,
            parallel_iterations=self._frames.parallel_iterations(frame),  # type: ignore[union-attr]  # there are frames
        )
        first = entered.outputs[0]
        merge = add(device, "Merge", [first, first], f"{name}/Merge", T=DataType.DT_INT32, N=2)
        self.clocks[frame, device] = merge
        place = _Place(device, on_host=True)
        condition = self._partitioning.there(self._conditions[frame], place)
        switch = add(
            device, "Switch", [merge.outputs[0], condition], f"{name}/Switch", T=DataType.DT_INT32
        )
        turn = add(
            device, "NextIteration", [switch.outputs[1]], f"{name}/Next", T=DataType.DT_INT32
        )
        merge.update_input(1, turn.outputs[0])
        return merge


class ParallelPartitions:
    """Runs one executor on the thread that calls, and the others on a thread each.

    Each step has threads of its own: executors wait for each other, so none may wait for a thread.

    Args:
        executors: The executors by device; the first has the feeds and the fetches.
    """

    uses_step = True

    def __init__(self, executors: Mapping[str, Executor]) -> None:
        self._executors = executors
        self._first, *self._others = executors.values()
        self.run: Callable[..., Sequence[Any]] = self._run

    @property
    def source(self) -> str:
        """The text of the partitions, one after the other."""
        return "\n".join([f"# {name}\n{one.source}" for name, one in self._executors.items()])

    def _run(self, step: RunStep, *feeds: Any) -> Sequence[Any]:
        barrier = _PartitionBarrier(step)
        results: Sequence[Any] = ()
        try:
            for executor in self._others:
                barrier.start(executor)
            results = self._first.run(step, *feeds)
        except BaseException as error:
            barrier.fail(error)
        barrier.wait()
        return results


class _PartitionBarrier:
    """Waits for the executors of a step; the first that fails ends the others."""

    def __init__(self, step: RunStep) -> None:
        self._step = step
        self._failures: list[BaseException] = []
        self._lock = threading.Lock()
        self._threads: list[threading.Thread] = []

    def start(self, executor: Executor) -> None:
        """Run an executor on a thread, with the limits of the one that calls."""

        def run() -> None:
            try:
                executor.run(self._step)
            except BaseException as error:
                self.fail(error)

        context = contextvars.copy_context()
        thread = threading.Thread(target=context.run, args=(run,), name="opkernel partition")
        thread.daemon = True
        thread.start()
        self._threads.append(thread)

    def fail(self, error: BaseException) -> None:
        """Note an error, and end what waits for what will not come."""
        with self._lock:
            self._failures.append(error)
            is_first = len(self._failures) == 1
        if is_first:  # what fails later does so because this has
            if isinstance(error, Exception):
                self._step.rendezvous.start_abort(as_op_error(error))
            else:
                self._step.rendezvous.start_abort(CancelledError("Step was interrupted"))
            self._step.cancel()

    def wait(self) -> None:
        """Wait for all, and raise what the first that failed has raised; an interrupt before others."""
        for thread in self._threads:
            while thread.is_alive():
                try:
                    thread.join()
                except BaseException as error:
                    self.fail(error)
        interrupts = [one for one in self._failures if not isinstance(one, Exception)]
        for one in (interrupts or self._failures)[:1]:
            raise one
