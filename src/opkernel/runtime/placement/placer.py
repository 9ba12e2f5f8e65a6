"""The placer: which devices there are for a program, and on which of them each operation runs.

Source: TensorFlow core/common_runtime/device_set.{h,cc}, placer.cc.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from functools import cached_property, partial
from typing import NamedTuple

from opkernel.device.device_factory import device_types, why_missing
from opkernel.device.local_device import DeviceMgr, LocalDevice, new_devices
from opkernel.errors import InvalidArgumentError
from opkernel.graph import Operation
from opkernel.logs import logger
from opkernel.opdef import DeviceName
from opkernel.records import dataclass, replace


class DeviceSet:
    """Some devices; operations that ask for none run on the first, unless the placer knows better.

    Attributes:
        mgr: The devices.
        client_device: The caller's device: feeds come from it, fetches go to it.
    """

    def __init__(
        self,
        devices: Sequence[LocalDevice],
        *,
        allow_soft_placement: bool = False,
        more: Callable[..., Sequence[LocalDevice]] = lambda **_: (),
    ) -> None:
        self.mgr = DeviceMgr(devices)
        self.client_device = self.mgr.client_device
        self.allow_soft_placement = allow_soft_placement
        self._more = more
        self._found: dict[str, list[LocalDevice]] = {"": list(self.mgr.all)}

    @classmethod
    def of_session(
        cls,
        device_count: Mapping[str, int],
        *,
        allow_soft_placement: bool = False,
        intra_op_threads: int = 0,
    ) -> DeviceSet:
        """New devices, as a session wants them.

        Raises:
            NotFoundError: there is to be no CPU.
        """
        new = partial(new_devices, device_count, intra_op_threads=intra_op_threads)
        return cls(new(), allow_soft_placement=allow_soft_placement, more=new)

    def include(self, operations: Iterable[Operation]) -> None:
        """Have devices of each type that operations ask for, as far as plugins bring factories."""
        asked: set[str | None] = set()
        for name in {op.device for op in operations} - self._found.keys():
            with suppress(InvalidArgumentError):  # told where the operation is placed
                asked.add(DeviceName.parse_full_name(name).type)
        unknown = {name for name in asked if name} - set(self.mgr.device_types)
        devices = self._more(but=self.mgr.device_types, asked=unknown) if unknown else ()
        if devices:
            self.mgr.add(devices)
            self._found = {"": list(self.mgr.all)}
            vars(self).pop("types_by_priority", None)

    @property
    def is_one(self) -> bool:
        """Whether there is a single device, so that nothing needs a decision."""
        return len(self.mgr.all) == 1

    @cached_property
    def types_by_priority(self) -> list[str]:
        """The types of the devices, those that nodes prefer first."""
        there = {device.device_type for device in self.mgr.all}
        return [name for name in device_types() if name in there]

    def candidates(self, op: Operation) -> list[LocalDevice]:
        """The devices that an operation asks for; all of them where it asks for none.

        With soft placement an operation that asks for a missing device asks for no type.

        Raises:
            InvalidArgumentError: it asks for a device that does not exist, or its text names no
                device.
        """
        found = self._found.get(op.device)
        if found is None:
            found = self._found[op.device] = self._find(op)
        return found

    def _find(self, op: Operation) -> list[LocalDevice]:
        asked = asked_device(op)
        found = self.mgr.matching(asked)
        if not found and self.allow_soft_placement:
            found = self.mgr.matching(replace(asked, type=None, id=None))
        if not found:
            raise self._missing(op, asked)
        return found

    def _missing(self, op: Operation, asked: DeviceName) -> InvalidArgumentError:
        names = ", ".join(device.name for device in self.mgr.all)
        message = (
            f"Cannot assign a device for operation {op.name}: {{{{node {op.name}}}}} was explicitly "
            f"assigned to {op.device} but available devices are [ {names} ]. Make sure the device "
            "specification refers to a valid device."
        )
        if (asked.type or "").upper() == "GPU":
            message += " The requested device appears to be a GPU, but CUDA is not enabled."
        reason = why_missing((asked.type or "").upper())
        message += f" {reason}" if reason else ""
        return InvalidArgumentError(message, node=op.name, op=op.type)


class OneDevice(DeviceSet):
    """The device of a function or of eager calls: everything runs on it, whatever a node asks for."""

    def __init__(self, device: LocalDevice) -> None:
        super().__init__([device])

    def candidates(self, op: Operation) -> list[LocalDevice]:
        """The device."""
        return [self.client_device]


def asked_device(op: Operation) -> DeviceName:
    """The device that an operation asks for, in whole or in part.

    Raises:
        InvalidArgumentError: the text that it asks for names no device.
    """
    try:
        return DeviceName.parse_full_name(op.device)
    except InvalidArgumentError as error:
        raise InvalidArgumentError(
            f"{error.message} in node '{op.name}'", node=op.name, op=op.type
        ) from None


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
        self, operations: Sequence[Operation], devices: DeviceSet, placed: Mapping[str, LocalDevice]
    ) -> None:
        self._operations = [op for op in operations if op.name not in placed]
        self._needed = set(operations)
        from opkernel.runtime.placement.colocation import ColocationGraph  # of several devices

        self._groups = ColocationGraph(operations, devices, placed)
        self._placed = {op: placed[op.name] for op in operations if op.name in placed}

    def run(self) -> dict[Operation, LocalDevice]:
        """The device of each operation."""
        for op in sorted(self._operations, key=lambda op: self._only_consumer(op) is not None):
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
