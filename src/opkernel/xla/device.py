"""Devices through JAX: types GPU, TPU and XLA_CPU, whose tensors are arrays of JAX; and their factories.

JAX gives the memory of its devices out and counts it. Where it has no device of a type, the factory says why. Importing
this module imports no JAX.

Source: TensorFlow compiler/jit/xla_device.h, xla_tensor.h, xla_cpu_device.cc; core/common_runtime/gpu/
gpu_bfc_allocator.h, gpu_device_factory.cc.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from importlib.metadata import entry_points
from typing import Any

import numpy as np

from opkernel.device.allocation import check_allocation
from opkernel.device.allocator import Allocator, AllocatorMemoryType, cpu_allocator
from opkernel.device.budget import AllocatorStats
from opkernel.device.device_factory import (
    NAME_PREFIX,
    DeviceFactory,
    DeviceOptions,
    register_device_factory,
)
from opkernel.device.local_device import AllocatorAttributes, LocalDevice
from opkernel.errors import UnimplementedError
from opkernel.libraries import is_installed
from opkernel.records import dataclass
from opkernel.types import Array, DataType
from opkernel.xla.device_kernels import derive_kernels_for
from opkernel.xla.jax_numpy import jax, jnp, wide_types

_COUNTS = ("num_allocs", "bytes_in_use", "peak_bytes_in_use", "largest_alloc_size", "bytes_limit")
"""JAX's names are those of AllocatorStats."""


class XlaAllocator(Allocator):
    """Gives arrays on a device of JAX's, which counts them."""

    memory_type = AllocatorMemoryType.DEVICE

    def __init__(self, jax_device: Any) -> None:
        self._device = jax_device

    @property
    def name(self) -> str:
        """JAX's name for the device."""
        return str(self._device)

    def allocate(self, shape: Sequence[int], dtype: DataType) -> Any:
        """An array; raises as the allocator of the host does."""
        sizes = check_allocation(shape, dtype)
        with wide_types():
            return jnp().empty(sizes, dtype.numpy_dtype, device=self._device)

    def allocate_raw(self, alignment: int, num_bytes: int) -> Any:
        """Refused: JAX gives arrays only."""
        raise UnimplementedError(f"Allocator {self.name} gives arrays of JAX, and no bytes")

    def get_stats(self) -> AllocatorStats | None:
        """JAX's counts; None where it does not count, as on the CPU."""
        found = self._device.memory_stats()
        if not found:
            return None
        known = {name: found[name] for name in _COUNTS if name in found}
        return AllocatorStats(**known)


class XlaDevice(LocalDevice):
    """A device of JAX's. Kernels start their work on it in order and do not wait for its end; `to_host` does.

    Attributes:
        jax_device: JAX's device.
    """

    def __init__(
        self, device_type: str, jax_device: Any, index: int, *, name_prefix: str = NAME_PREFIX
    ) -> None:
        super().__init__(device_type, jnp(), index, name_prefix=name_prefix)
        self.jax_device = jax_device
        self._allocator = XlaAllocator(jax_device)

    def to_device(self, array: Any) -> Any:
        """A copy of an array of the host on the device; variants are objects of the host anywhere."""
        if isinstance(array, np.ndarray) and array.dtype.hasobject:
            return array
        with wide_types():
            copied = np.array(array)  # JAX may use the memory of what it is given
            return jax().device_put(copied, self.jax_device)

    def to_host(self, tensor: Any) -> Array:
        """A copy of a tensor on the host, once the tensor is computed."""
        if isinstance(tensor, np.ndarray):  # of variants
            return tensor
        return np.array(tensor)

    def get_allocator(self, attr: AllocatorAttributes) -> Allocator:
        """The allocator of the device's memory, or of the host's."""
        return cpu_allocator() if attr.on_host else self._allocator


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
