"""Devices of this process."""

from dataclasses import dataclass
from types import ModuleType

import numpy as np

__all__ = ["CPU", "LocalDevice"]


@dataclass(frozen=True, slots=True)
class LocalDevice:
    """A device of this process (fulfils `opkernel.kernel.Device`)."""

    device_type: str
    array_namespace: ModuleType
    index: int = 0

    @property
    def name(self) -> str:
        """The full name of the device."""
        return f"/job:localhost/replica:0/task:0/device:{self.device_type}:{self.index}"


CPU = LocalDevice("CPU", np)
"""The CPU; its tensors are NumPy arrays."""
