"""The placer: says on which device each operation of a program runs.

Source: TensorFlow core/common_runtime/placer.cc.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import NamedTuple

from opkernel.device.local_device import LocalDevice
from opkernel.graph import Operation
from opkernel.logs import logger
from opkernel.records import dataclass
from opkernel.runtime import placement
from opkernel.runtime.placement.device_set import DeviceSet

_NOTHING_PLACED: Mapping[str, LocalDevice] = {}


@dataclass(frozen=True)
class Assignment:
    """The devices of operations.

    Attributes:
        client_device: The device of the caller, and of all operations but those `elsewhere`.
        elsewhere: The operations on other devices.
    """

    client_device: LocalDevice
    elsewhere: Mapping[Operation, LocalDevice]

    @property
    def devices(self) -> set[LocalDevice]:
        """The devices that operations are on."""
        return {self.client_device, *self.elsewhere.values()}

    @cached_property
    def _by_name(self) -> dict[str, LocalDevice]:
        return {device.name: device for device in self.elsewhere.values()}

    def device_of(self, op: Operation) -> LocalDevice:
        """The device of an operation that was placed, or that a pass has put beside one of these."""
        if not self.elsewhere:
            return self.client_device
        return self.elsewhere.get(op) or self._by_name.get(op.device, self.client_device)


def place(
    operations: Sequence[Operation],
    devices: DeviceSet,
    placed: Mapping[str, LocalDevice] = _NOTHING_PLACED,
    *,
    is_logged: bool = False,
) -> Assignment:
    """Put operations on devices.

    A session first places its whole graph, so that a resource is in one place whatever a step needs. Then
    it places the part that a step needs, as optimisation passes have changed it.

    Args:
        operations: The needed operations, inputs before consumers.
        devices: Where they may run.
        placed: Where operations of some names are already.
        is_logged: Whether each one's device is logged, to the logger `opkernel.placement`.

    Raises:
        InvalidArgumentError: there is no device for one of them, or none for all of those that are
            to be together.
    """
    client = devices.client_device
    found = {} if devices.is_one else _Placer(operations, devices, placed).run()
    if is_logged:
        for op in operations:
            logger("opkernel.placement").info(
                "%s: (%s): %s", op.name, op.type, found.get(op, client).name
            )
    return Assignment(client, {op: d for op, d in found.items() if d is not client})


class Placed(NamedTuple):
    """Where an operation is, and why."""

    op: Operation
    device: LocalDevice
    reason: str


def place_with_reasons(operations: Sequence[Operation], devices: DeviceSet) -> list[Placed]:
    """Where `place` puts operations, and why; raises as it does."""
    devices.include(operations)
    placer = _Placer(operations, devices, _NOTHING_PLACED)
    found = placer.run()
    return [Placed(op, found[op], placer.reason(op)) for op in operations]


class _Placer:
    """Gives each operation the device that its group prefers, or one where its neighbours are."""

    def __init__(
        self,
        operations: Sequence[Operation],
        devices: DeviceSet,
        placed: Mapping[str, LocalDevice],
    ) -> None:
        self._operations = [op for op in operations if op.name not in placed]
        self._needed = set(operations)
        self._groups = placement.ColocationGraph(operations, devices, placed)
        self._placed = {op: placed[op.name] for op in operations if op.name in placed}

    def run(self) -> dict[Operation, LocalDevice]:
        """The device of each operation."""
        later = []
        for op in self._operations:
            if self._only_consumer(op) is not None:
                later.append(op)
            else:
                self._put(op)
        for op in later:
            self._put(op)
        return self._placed

    def reason(self, op: Operation) -> str:
        """Why an operation is where it is."""
        neighbour = self._neighbour(op)
        if neighbour is not None and self._placed[op] is self._placed.get(neighbour):
            return f"{self._groups.reason(op)}; beside '{neighbour.name}'"
        return self._groups.reason(op)

    def _neighbour(self, op: Operation) -> Operation | None:
        """The operation beside which another is put, if it may run there."""
        return op.inputs[0].op if op.traits.reads_shapes_only else self._only_consumer(op)

    def _put(self, op: Operation) -> None:
        candidates, neighbour = self._groups.candidates(op), self._neighbour(op)
        beside = None if neighbour is None else self._placed.get(neighbour)
        preferred = [device for device in candidates if device is beside] or candidates
        self._placed[op] = preferred[0]

    def _only_consumer(self, op: Operation) -> Operation | None:
        """The only consumer of an operation with one output and no inputs; None for others."""
        if op.inputs or len(op.output_types) != 1 or op.output_types[0].is_ref:
            return None
        consumers = [c for c, _ in op.consumer_edges() if c in self._needed]
        return consumers[0] if len(consumers) == 1 else None
