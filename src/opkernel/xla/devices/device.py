"""XlaDevice: a device whose tensors are arrays on one of JAX's devices.

Source: TensorFlow compiler/jit/xla_device.h.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from opkernel.device.allocator import Allocator, cpu_allocator
from opkernel.device.allocator_attributes import AllocatorAttributes
from opkernel.device.device_factory import NAME_PREFIX
from opkernel.device.local_device import LocalDevice
from opkernel.xla.devices.allocator import XlaAllocator
from opkernel.xla.jax_numpy import jax, jnp, wide_types


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

    def to_host(self, tensor: Any) -> np.ndarray[Any, Any]:
        """A copy of a tensor on the host, once the tensor is computed."""
        if isinstance(tensor, np.ndarray):  # of variants
            return tensor
        return np.array(tensor)

    def get_allocator(self, attr: AllocatorAttributes) -> Allocator:
        """The allocator of the device's memory, or of the host's."""
        return cpu_allocator() if attr.on_host else self._allocator
