"""The factories of the devices that JAX has, and what to say of those that it has not.

Source: TensorFlow compiler/jit/xla_cpu_device.cc, core/common_runtime/gpu/gpu_device_factory.cc.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from importlib.metadata import entry_points
from typing import Any

from opkernel.device.device_factory import DeviceFactory, DeviceOptions, register_device_factory
from opkernel.libraries import is_installed
from opkernel.records import dataclass
from opkernel.xla.devices.device import XlaDevice
from opkernel.xla.devices.kernels import derive_kernels_for
from opkernel.xla.jax_numpy import jax


@dataclass(frozen=True)
class _Type:
    """A device type.

    Attributes:
        platform: JAX's name for it.
        priority: Nodes prefer it to a CPU if this is more than 60.
        install: What installs the part of JAX that it needs.
    """

    platform: str
    priority: int
    install: str


_TYPES = {
    "GPU": _Type("gpu", 210, "'jax[cuda12]'"),
    "TPU": _Type("tpu", 150, "'jax[tpu]'"),
    "XLA_CPU": _Type("cpu", 50, ""),
}


class XlaDeviceFactory(DeviceFactory):
    """Makes a device for each one of JAX's.

    Attributes:
        device_type: The type of the devices.
        platform: The platform of JAX's devices.
    """

    is_offered_unasked = False

    def __init__(self, device_type: str, platform: str) -> None:
        self.device_type, self.platform = device_type, platform

    def list_physical_devices(self) -> list[str]:
        """One for each of JAX's devices."""
        count = len(_devices(self.platform))
        return [f"/physical_device:{self.device_type}:{index}" for index in range(count)]

    def create_devices(self, options: DeviceOptions) -> Sequence[XlaDevice]:
        """As many as are asked for, and no more than JAX has."""
        derive_kernels_for(self.device_type)
        return [
            XlaDevice(self.device_type, one, index, name_prefix=options.name_prefix)
            for index, one in enumerate(_devices(self.platform)[: options.count])
        ]

    def has_own_memory(self) -> bool:
        """Always: tensors are arrays of JAX."""
        return True


def offer(device_type: str) -> None:
    """Register the factory of a type if JAX has such devices."""
    kind = _TYPES[device_type]
    if _may_have(kind.platform) and _devices(kind.platform):
        factory = XlaDeviceFactory(device_type, kind.platform)
        register_device_factory(device_type, factory, priority=kind.priority)


def why_missing(device_type: str) -> str:
    """Why there are no devices of a type, and what installs them: a sentence."""
    kind = _TYPES[device_type]
    if not is_installed("jax"):
        more = f" {kind.install}" if kind.install else ""
        return f"Devices of type {device_type} need JAX: pip install 'opkernel[xla]'{more}"
    seen = (
        f"JAX has {', '.join(map(str, jax().local_devices()))}"
        if "jax" in sys.modules
        else f"JAX has no plugin for the platform {kind.platform!r}"
    )
    return f"{seen} and no {device_type}: pip install {kind.install}, and see JAX_PLATFORMS"


def _may_have(platform: str) -> bool:
    """Whether JAX may have devices of a platform, as far as that is known without importing it."""
    if not is_installed("jax"):
        return False
    if platform == "cpu":
        return True
    allowed = os.environ.get("JAX_PLATFORMS", "")
    if allowed and set(allowed.split(",")) <= {"cpu"}:
        return False
    if platform == "tpu":
        return is_installed("libtpu")
    return is_installed("jax_plugins") or bool(entry_points(group="jax_plugins"))


def _devices(platform: str) -> list[Any]:
    """JAX's devices of a platform in this process."""
    try:
        return list(jax().local_devices(backend=platform))
    except RuntimeError:  # JAX knows no such platform, or cannot start it
        return []
