"""DeviceMgr: the devices of a session, by name.

Source: TensorFlow core/common_runtime/device_mgr.{h,cc}, device_set.cc.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from opkernel.device.device_factory import (
    NAME_PREFIX,
    DeviceOptions,
    device_factory,
    device_types,
    load_device_types,
)
from opkernel.device.local_device import LocalDevice
from opkernel.errors import InvalidArgumentError, NotFoundError
from opkernel.opdef.core.device_name import DeviceName

_MOST_DEVICES = 1024
"""Of a type, in a session."""


class DeviceMgr:
    """Some devices; the first is the caller's.

    Attributes:
        all: The devices.
        client_device: Feeds come from it, fetches go to it; its memory is the host's.
    """

    def __init__(self, devices: Sequence[LocalDevice]) -> None:
        self.all: tuple[LocalDevice, ...] = ()
        self._names: dict[LocalDevice, DeviceName] = {}
        self._by_name: dict[str, LocalDevice] = {}
        self._matching: dict[DeviceName, list[LocalDevice]] = {}
        self.add(devices)
        self.client_device, *_ = devices

    def add(self, devices: Sequence[LocalDevice]) -> None:
        """Have more devices."""
        self.all += tuple(devices)
        self._names |= {one: DeviceName.parse_full_name(one.name) for one in devices}
        self._by_name |= {one.name: one for one in devices}
        self._matching.clear()

    @property
    def device_types(self) -> list[str]:
        """The types of the devices, each once, in the order of the devices."""
        return list(dict.fromkeys([device.device_type for device in self.all]))

    def look_up(self, name: str) -> LocalDevice:
        """The device of a full or local name, `CPU:0`.

        Raises:
            InvalidArgumentError: there is none.
        """
        device = self._by_name.get(name)
        if device is None:
            found = self.matching(DeviceName.parse_full_or_local_name(name))
            if len(found) != 1:
                raise InvalidArgumentError(
                    f"{name} unknown device; there are: {', '.join(self._by_name)}"
                )
            device = self._by_name[name] = found[0]
        return device

    def matching(self, asked: DeviceName) -> list[LocalDevice]:
        """The devices that have every part of a name; the caller does not change the list."""
        found = self._matching.get(asked)
        if found is None:
            names = self._names.items()
            found = [one for one, name in names if name.is_specification_of(asked)]
            self._matching[asked] = found
        return found

    def cleanup(self, container: str) -> None:
        """Drop the resources of a container on all devices."""
        for device in self.all:
            device.resource_manager.cleanup(container)

    def clear_containers(self, containers: Sequence[str]) -> None:
        """Drop the resources in some containers on all devices; in the default ones if none is named."""
        for device in self.all:
            manager = device.resource_manager
            for container in containers or (manager.default_container,):
                manager.cleanup(container)

    def close(self) -> None:
        """Drop the resources of all devices."""
        for device in self.all:
            device.close()


def new_devices(
    device_count: Mapping[str, int],
    *,
    name_prefix: str = NAME_PREFIX,
    intra_op_threads: int = 0,
    but: Collection[str] = (),
    asked: Collection[str] = (),
) -> list[LocalDevice]:
    """The devices of a session: CPUs first, then those of all other types with a factory.

    Args:
        device_count: How many there are to be by type; plugins are loaded for types without a
            factory, which are passed over if there are none.
        name_prefix: The beginning of their full names.
        intra_op_threads: As DeviceOptions says.
        but: Types that are left out.
        asked: Types that are asked for without a number. A type that is not offered unasked has devices if
            it is among these, or in `device_count`.

    Raises:
        NotFoundError: there is to be no CPU.
        InvalidArgumentError: there are to be more than 1024 of a type.
    """
    for name, asked_for in device_count.items():
        if asked_for > _MOST_DEVICES:
            raise InvalidArgumentError(
                f"device_count asks for {asked_for} devices of type {name!r}; a session has at most {_MOST_DEVICES}"
            )
    load_device_types([*asked, *(name for name, count in device_count.items() if count)])
    devices: list[LocalDevice] = []
    wanted = [name for name in device_types() if name not in but]
    for device_type in sorted(wanted, key=lambda name: name != "CPU"):
        count, factory = device_count.get(device_type), device_factory(device_type)
        if count is None and not factory.is_offered_unasked and device_type not in asked:
            continue
        devices += factory.create_devices(DeviceOptions(count, name_prefix, intra_op_threads))
        if not devices and device_type == "CPU":
            raise NotFoundError("No CPU devices are available in this process")
    return devices
