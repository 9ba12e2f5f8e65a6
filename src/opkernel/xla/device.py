"""XlaCompilationDevice: the device that kernels for XLA are made for. Nothing runs on it.

Source: TensorFlow compiler/tf2xla/xla_compilation_device.h.
"""

from __future__ import annotations

from opkernel.device.local_device import LocalDevice
from opkernel.xla.jax_numpy import jnp


class XlaCompilationDevice(LocalDevice):
    """A device whose tensors are values of the program that is being compiled."""

    def __init__(self, device_type: str) -> None:
        super().__init__(device_type, jnp())
