"""XlaResource: what a resource holds while the program that uses it is compiled.

Source: TensorFlow compiler/tf2xla/xla_resource.h.
"""

from __future__ import annotations

from typing import Any, Literal

from opkernel.errors import FailedPreconditionError, InvalidArgumentError
from opkernel.types import DataType

__all__ = ["XlaResource"]

Kind = Literal["variable", "tensor array", "stack"]


class XlaResource:
    """A variable, a TensorArray or a Stack. Its value is a tensor, or a structure of tensors, of the program.

    Args:
        kind: What it is.
        name: Its name, for messages.
        dtype: The type of its value, or of the elements; None where nothing was stored yet.
        value: The value at the program's beginning; None for an uninitialised variable.
        arg_num: Which argument of the program it is; -1 for one that the program makes.
        max_size: The number of elements that a TensorArray or Stack has room for.
    """

    def __init__(
        self,
        kind: Kind,
        name: str,
        dtype: DataType | None = None,
        value: Any = None,
        arg_num: int = -1,
        max_size: int = -1,
    ) -> None:
        self.kind, self.name, self.arg_num, self.max_size = kind, name, arg_num, max_size
        self.dtype, self.value = dtype, value
        self.is_written = False
        self.gradients: dict[str, XlaResource] = {}

    @property
    def is_initialized(self) -> bool:
        """Whether it has a value."""
        return self.value is not None

    def copy(self) -> XlaResource:
        """A resource with the same value, for a part of the program of its own."""
        other = XlaResource(
            self.kind, self.name, self.dtype, self.value, self.arg_num, self.max_size
        )
        other.gradients = self.gradients
        return other

    def read(self) -> Any:
        """The value.

        Raises:
            FailedPreconditionError: it has none.
        """
        if self.value is None:
            raise FailedPreconditionError(f"Read of the uninitialised {self.kind} {self.name}")
        return self.value

    def assign(self, dtype: DataType, value: Any) -> None:
        """Set the value.

        Raises:
            InvalidArgumentError: the value is of another type than those before.
        """
        if self.dtype is not None and self.dtype is not dtype:
            raise InvalidArgumentError(
                f"The type of {self.kind} {self.name} cannot change from {self.dtype.string} to "
                f"{dtype.string}"
            )
        self.dtype, self.value, self.is_written = dtype, value, True
