"""DeviceSet: the devices that the operations of a program may run on, and which one each asks for.

Source: TensorFlow core/common_runtime/device_set.{h,cc}, placer.cc.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from functools import cached_property, partial

from opkernel.device.device_factory import device_types, why_missing
from opkernel.device.device_mgr import DeviceMgr, new_devices
from opkernel.device.local_device import LocalDevice
from opkernel.errors import InvalidArgumentError
from opkernel.graph import Operation
from opkernel.opdef import DeviceName
from opkernel.records import replace


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
        if unknown:
            self._add(self._more(but=self.mgr.device_types, asked=unknown))

    def _add(self, devices: Sequence[LocalDevice]) -> None:
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
