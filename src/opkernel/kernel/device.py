"""What a kernel sees of the device that it runs on, and of the step that it runs in.

The runtime fulfils these protocols; a kernel gets at them through its construction and context.
"""

from typing import Any, Protocol

__all__ = ["Device", "Step"]


class Device(Protocol):
    """A device: its name and type, and the array namespace of its tensors."""

    @property
    def name(self) -> str:
        """The full name, `/job:localhost/replica:0/task:0/device:CPU:0`."""

    @property
    def device_type(self) -> str:
        """The type that kernels are registered for, such as `CPU`."""

    @property
    def array_namespace(self) -> Any:
        """The array API namespace that kernels get as `xp`: `numpy` on the CPU."""


class Step(Protocol):
    """One execution of a graph."""

    @property
    def step_id(self) -> int:
        """A number that no other step of the process has."""

    def check(self) -> None:
        """Raise CancelledError or DeadlineExceededError where the step is to stop.

        Loops, and kernels that take long, call it from time to time.
        """
