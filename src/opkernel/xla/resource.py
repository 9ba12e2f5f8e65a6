"""XlaResource: what a resource holds while the program that uses it is compiled.

Source: TensorFlow compiler/tf2xla/xla_resource.h.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from opkernel.errors import FailedPreconditionError, InvalidArgumentError
from opkernel.types import DataType


class XlaResource:
    """A variable, whose value is a tensor of the program; or a TensorArray or a stack, whose value is an XlaTensorList.

    Args:
        name: Its name, for messages.
        dtype: The type of its value; None where it has none yet.
        value: The value at the program's beginning; None for an uninitialised variable.
        arg_num: Which argument of the program it is.

    Attributes:
        is_written: Whether the program, or the part of it that has this copy, assigns to it.
        gradients: Of a TensorArray, those that hold gradients of its elements, by their sources.
        is_gradient: Whether it is such a TensorArray, whose writes add up.
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
        self.is_written = self.is_gradient = False
        self.gradients: dict[str, XlaResource] = {}

    @property
    def is_initialized(self) -> bool:
        """Whether it has a value."""
        return self.value is not None

    def copy(self) -> XlaResource:
        """A resource with the same value, for a part of the program of its own."""
        copied = XlaResource(self.name, self.dtype, self.value, self.arg_num)
        copied.is_gradient = self.is_gradient
        copied.gradients = {source: one.copy() for source, one in self.gradients.items()}
        return copied

    def gradient(self, source: str) -> XlaResource:
        """The TensorArray for the gradients of this one's elements, which are zeros at first.

        Raises:
            InvalidArgumentError: this one holds gradients itself.
        """
        if self.is_gradient:
            raise InvalidArgumentError(f"{self.name} holds gradients, and has none of its own")
        found = self.gradients.get(source)
        if found is None:
            name = f"{self.name}@{source}"
            found = self.gradients[source] = XlaResource(name, self.dtype, self.read().cleared())
            found.is_gradient = True
        return found

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


def resources_of(values: Iterable[Any]) -> list[XlaResource]:
    """The resources among some values, each with those for its gradients behind it."""
    resources = [one for one in values if isinstance(one, XlaResource)]
    return [each for one in resources for each in (one, *one.gradients.values())]
