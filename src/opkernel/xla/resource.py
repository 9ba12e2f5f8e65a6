"""XlaResource: what a resource holds while the program that uses it is compiled.

Source: TensorFlow compiler/tf2xla/xla_resource.h.
"""

from __future__ import annotations

from typing import Any

from opkernel.errors import FailedPreconditionError, InvalidArgumentError
from opkernel.types import DataType

__all__ = ["XlaResource"]


class XlaResource:
    """A variable, whose value is a tensor of the program.

    Args:
        name: Its name, for messages.
        dtype: The type of its value; None where it has none yet.
        value: The value at the program's beginning; None for an uninitialised variable.
        arg_num: Which argument of the program it is.

    Attributes:
        is_written: Whether the program, or the part of it that has this copy, assigns to it.
    """

    def __init__(
        self,
        name: str,
        dtype: DataType | None = None,
        value: Any = None,
        arg_num: int = -1,
    ) -> None:
        self.name, self.arg_num = name, arg_num
        self.dtype, self.value = dtype, value
        self.is_written = False

    @property
    def is_initialized(self) -> bool:
        """Whether it has a value."""
        return self.value is not None

    def copy(self) -> XlaResource:
        """A resource with the same value, for a part of the program of its own."""
        return XlaResource(self.name, self.dtype, self.value, self.arg_num)

    def read(self, dtype: DataType | None = None) -> Any:
        """The value.

        Args:
            dtype: The type that it is expected to have.

        Raises:
            FailedPreconditionError: it has none.
            InvalidArgumentError: it has another type.
        """
        if self.value is None:
            raise FailedPreconditionError(f"Read of the uninitialised variable {self.name}")
        if dtype is not None and self.dtype is not dtype:
            has = "none" if self.dtype is None else self.dtype.string
            raise InvalidArgumentError(f"{self.name} holds {has}, and {dtype.string} is asked for")
        return self.value

    def assign(self, dtype: DataType, value: Any) -> None:
        """Set the value.

        Raises:
            InvalidArgumentError: the value is of another type than those before.
        """
        if self.dtype is not None and self.dtype is not dtype:
            raise InvalidArgumentError(
                f"The type of variable {self.name} cannot change from {self.dtype.string} to "
                f"{dtype.string}"
            )
        self.dtype, self.value, self.is_written = dtype, value, True
