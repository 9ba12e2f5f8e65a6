"""Device factories, which make the devices of a type, and the types that nodes prefer.

State: `_factories`, by device type; `register_device_factory` fills it. `version` counts its changes. `_asked`
has the provided types that were asked for.
Source: TensorFlow core/framework/device_factory.{h,cc}.
"""

from __future__ import annotations

import sys
from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Protocol

from opkernel.errors import AlreadyExistsError, InvalidArgumentError, NotFoundError
from opkernel.records import dataclass
from opkernel.registrations import DeclaringSite, declaring_site, load_plugins
from opkernel.slots import NamedSlots, Slot

if TYPE_CHECKING:
    from opkernel.device.local_device import LocalDevice

DEFAULT_PRIORITY = 50
NAME_PREFIX = "/job:localhost/replica:0/task:0"
"""The prefix of device names in a process that is in no cluster."""

TENSORFLOW_DEVICE_TYPES = frozenset(
    {"CPU", "DEFAULT", "GPU", "TPU", "TPU_SYSTEM", "XLA_CPU", "XLA_CPU_JIT", "XLA_GPU"}
    | {"XLA_GPU_JIT", "XLA_TPU_JIT"}
)
"""The types that kernels may be for in any process, whether or not something makes devices of them."""


@dataclass(frozen=True, slots=True)
class DeviceOptions:
    """A session's requests about its devices.

    Attributes:
        count: How many devices of the type there are to be; None for as many as the factory likes.
        name_prefix: The beginning of their full names: job, replica and task.
        intra_op_threads: How many threads a kernel may spread its work over; one a processor if 0.
    """

    count: int | None = None
    name_prefix: str = NAME_PREFIX
    intra_op_threads: int = 0


class DeviceFactory(ABC):
    """Makes the devices of one type.

    Attributes:
        is_offered_unasked: Whether sessions have devices of the type that do not ask for any.
    """

    is_offered_unasked: bool = True

    def list_physical_devices(self) -> list[str]:
        """The names of the machine's devices of the type: `/physical_device:GPU:0`."""
        return []

    @abstractmethod
    def create_devices(self, options: DeviceOptions) -> Sequence[LocalDevice]:
        """New devices, numbered from 0."""

    def has_own_memory(self) -> bool:
        """Whether tensors of the devices are no arrays of the host, as a device says that is made for this."""
        return any(one.has_own_memory for one in self.create_devices(DeviceOptions(1)))


@dataclass(frozen=True, slots=True)
class _Registration:
    factory: DeviceFactory
    priority: int
    site: DeclaringSite
    instead_of: _Registration | None = None


class DevicesOfType(Protocol):
    """Finds the devices of a type that need a library."""

    def offer(self, device_type: str) -> None:
        """Register the factory of the type if there are such devices."""

    def why_missing(self, device_type: str) -> str:
        """Why there are none, and what installs them: a sentence."""


PROVIDED: NamedSlots[DevicesOfType] = NamedSlots("device type")
"""The types, beside CPU, whose devices come with opkernel."""

_CPU_DEVICES: Slot[object] = Slot("devices of the CPU")
_factories: dict[str, _Registration] = {}
_asked: set[str] = set()
version = 0


def register_device_factory(
    device_type: str, factory: DeviceFactory, *, priority: int = DEFAULT_PRIORITY
) -> None:
    """Register the factory of the devices of a type.

    Args:
        device_type: The type, as kernels are registered for it.
        factory: Takes the place of one of lower priority, of one of its own class, or of one that an earlier run
            of the same module registered.
        priority: Nodes that may run on several types run on the type of the highest priority.

    Raises:
        AlreadyExistsError: the type has another factory of the same priority.
    """
    global version
    site = declaring_site(sys._getframe(1))
    there = _factories.get(device_type)
    if there is not None and (type(there.factory) is type(factory) or site.is_again(there.site)):
        there = there.instead_of
    elif there is not None:
        if there.priority == priority:
            raise AlreadyExistsError(
                f"Duplicate registration of device factory for type {device_type} with the same "
                f"priority {priority}"
            )
        if there.priority > priority:
            return
    registration = _Registration(factory, priority, site, there)
    _factories[device_type] = registration
    version += 1  # without a call in between, an interrupt separates the two nowhere


def unregister_device_factory(device_type: str) -> None:
    """Forget the factory of the devices of a type; sessions keep the devices that they have.

    A factory that it had replaced makes them again.
    """
    global version
    gone = _factories.get(device_type)
    if gone is not None and gone.instead_of is not None:
        _factories[device_type] = gone.instead_of
    elif gone is not None:
        del _factories[device_type]
    version += 1


def load_device_types(device_types: Iterable[str]) -> None:
    """Load the factory of the CPU, the plugins, and opkernel's other factories, as one of these types has none."""
    wanted = set(device_types)
    if not wanted <= _factories.keys():
        _CPU_DEVICES.get()
        if not wanted <= _factories.keys():
            load_plugins()
    for name in wanted - _factories.keys() - _asked:
        provided = PROVIDED.get(name)
        if provided is not None:
            provided.offer(name)
            _asked.add(name)


def why_missing(device_type: str) -> str:
    """Why nothing makes devices of one of opkernel's types, in a sentence; empty for other types."""
    provided = None if device_type in _factories else PROVIDED.get(device_type)
    return provided.why_missing(device_type) if provided else ""


def device_factory(device_type: str) -> DeviceFactory:
    """The factory for the devices of a type.

    Raises:
        NotFoundError: nothing does; plugins were loaded to find it.
    """
    load_device_types([device_type])
    if device_type not in _factories:
        there = ", ".join(offered_device_types())
        reason = why_missing(device_type)
        raise NotFoundError(
            f"No device factory is registered for '{device_type}'; registered are: {there}"
            + (f". {reason}" if reason else "")
        )
    return _factories[device_type].factory


def check_device_type(device_type: str, subject: str) -> None:
    """Check that there may be devices of a type: a factory makes them, or TensorFlow knows the type.

    Raises:
        InvalidArgumentError: neither is so; plugins were loaded to find a factory. `subject` is for the
            message.
    """
    if device_type in TENSORFLOW_DEVICE_TYPES:
        return
    load_device_types([device_type])
    if device_type not in _factories:
        known = sorted(TENSORFLOW_DEVICE_TYPES | _factories.keys())
        is_case = device_type.upper() in known
        hint = (
            f"perhaps you mean '{device_type.upper()}'"
            if is_case
            else f"known are {', '.join(known)}"
        )
        raise InvalidArgumentError(
            f"{subject} is for devices of type '{device_type}', which no factory makes; {hint}; register a "
            "type of your own with register_device_factory(...) before its kernels"
        )


def has_own_memory(device_type: str) -> bool:
    """Whether devices of a type have other memory than the host's.

    So it is taken for types that nothing makes in this process: a graph may be made ready for another.
    """
    load_device_types([device_type])
    return device_type not in _factories or _factories[device_type].factory.has_own_memory()


def device_types() -> list[str]:
    """The types that have a factory, in the order in which nodes prefer them."""
    load_device_types(["CPU"])
    return sorted(_factories, key=lambda name: (-_factories[name].priority, name))


def offered_device_types() -> list[str]:
    """The device types that every session gets without asking, the most preferred first."""
    return [name for name in device_types() if _factories[name].factory.is_offered_unasked]
