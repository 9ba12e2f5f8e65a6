"""XlaResource and XlaTensorList: what resources and lists hold while the program that uses them is compiled.

A TensorList is a buffer with room for all elements, and their number. TensorArrays and stacks hold one, too.

Source: TensorFlow compiler/tf2xla/xla_resource.h, kernels/tensor_list_utils.h.
"""

from __future__ import annotations

import functools
from collections.abc import Iterable, Sequence
from typing import Any

from opkernel.errors import FailedPreconditionError, InvalidArgumentError, UnimplementedError
from opkernel.types import DataType
from opkernel.xla.jax_numpy import jax, jnp, lax


class XlaTensorList:
    """A list of tensors of one shape.

    The shape of the elements may be unknown until the first of them comes; till then there is no buffer.

    Attributes:
        buffer: The elements, one behind the other along the first axis; None until their shape is known.
        length: How many there are: an int, or a value of the program where a loop or a conditional decides.
        max_size: How many there can be.
        dtype: Their type.
        may_grow: Whether there may be more than there is room for.
    """

    __slots__ = ("buffer", "dtype", "length", "max_size", "may_grow")

    def __init__(
        self, buffer: Any, length: Any, max_size: int, dtype: DataType, may_grow: bool = False
    ) -> None:
        _register()
        self.buffer, self.length = buffer, length
        self.max_size, self.dtype, self.may_grow = max_size, dtype, may_grow

    @classmethod
    def zeros(
        cls,
        max_size: int,
        shape: tuple[int, ...] | None,
        dtype: DataType,
        length: int,
        *,
        may_grow: bool = False,
    ) -> XlaTensorList:
        """A list of zeros, of which `length` count."""
        buffer = None if shape is None else jnp().zeros((max_size, *shape), dtype.numpy_dtype)
        return cls(buffer, length, max_size, dtype, may_grow)

    @property
    def known_length(self) -> int | None:
        """How many elements there are; None where only the program knows."""
        return self.length if isinstance(self.length, int) else None

    def with_traced_length(self) -> XlaTensorList:
        """The list with a number of elements that only the program knows."""
        return self.with_length(jnp().asarray(self.length, "int32"))

    def elements(self) -> Any:
        """All elements, one behind the other.

        Raises:
            UnimplementedError: only the program knows how many they are.
        """
        if self.known_length is None:
            raise UnimplementedError(
                "XLA must know the number of a TensorList's elements to put them together, and a loop or a "
                "conditional decides it"
            )
        _ = self.element_shape
        return self.buffer[: self.known_length]

    def pushed(self, value: Any) -> XlaTensorList:
        """The list with one more element.

        Raises:
            InvalidArgumentError: there can be no more.
            UnimplementedError: it may get longer than it has room, and only the program knows.
        """
        length, room = self.known_length, self
        if length is None and self.may_grow:
            raise UnimplementedError("XLA does not compile a TensorList that a loop makes longer")
        if length is not None and length >= self.max_size:
            if not self.may_grow:
                raise InvalidArgumentError(
                    f"Tried to push item into a full list: it has {self.max_size} elements"
                )
            room = self.prepared_for(value.shape).with_room(length + 1)
        return room.with_item(self.length, value).with_length(self.length + 1)

    def popped(self) -> tuple[XlaTensorList, Any]:
        """The list without its last element, and that.

        Raises:
            InvalidArgumentError: there is none.
        """
        if self.known_length == 0:
            raise InvalidArgumentError("Trying to pop from an empty list")
        last = self.length - 1
        return self.with_length(last), self.item(last)

    def with_room(self, max_size: int) -> XlaTensorList:
        """The list with room for more elements."""
        more = [(0, max_size - self.max_size), *[(0, 0)] * len(self.element_shape)]
        buffer = jnp().pad(self.buffer, more)
        return XlaTensorList(buffer, self.length, max_size, self.dtype, self.may_grow)

    @property
    def element_shape(self) -> tuple[int, ...]:
        """The shape of the elements.

        Raises:
            InvalidArgumentError: it is not known yet.
        """
        if self.buffer is None:
            raise InvalidArgumentError(
                "XLA must know the shape of a TensorList's elements: none was written yet"
            )
        return tuple(self.buffer.shape[1:])

    def like(self, shape: tuple[int, ...]) -> XlaTensorList:
        """The list with a buffer for elements of a shape, if it has none yet."""
        if self.buffer is not None:
            return self
        return self.with_buffer(jnp().zeros((self.max_size, *shape), self.dtype.numpy_dtype))

    def item(self, index: Any) -> Any:
        """The element at an index, which is clamped."""
        _ = self.element_shape
        return lax().dynamic_index_in_dim(self.buffer, index, keepdims=False)

    def prepared_for(self, shape: Sequence[int]) -> XlaTensorList:
        """The list with a buffer, for elements of a shape.

        Raises:
            InvalidArgumentError: its elements have another shape.
        """
        prepared = self.like(tuple(shape))
        if tuple(shape) != prepared.element_shape:
            raise InvalidArgumentError(
                f"A list of elements of shape {list(prepared.element_shape)} cannot take one of "
                f"shape {list(shape)}"
            )
        return prepared

    def with_item(self, index: Any, value: Any) -> XlaTensorList:
        """The list with another element at an index, which is clamped."""
        buffer = self.prepared_for(value.shape).buffer
        return self.with_buffer(lax().dynamic_update_index_in_dim(buffer, value, index, 0))

    def with_buffer(self, buffer: Any) -> XlaTensorList:
        """The list with other elements."""
        return XlaTensorList(buffer, self.length, self.max_size, self.dtype, self.may_grow)

    def items(self, indices: Any) -> Any:
        """The elements at indices, which are clamped, one behind the other."""
        _ = self.element_shape
        return jnp().take(self.buffer, indices, axis=0, mode="clip")

    def cleared(self) -> XlaTensorList:
        """A list of as many zeros."""
        return self.with_buffer(None if self.buffer is None else jnp().zeros_like(self.buffer))

    def with_length(self, length: Any) -> XlaTensorList:
        """The list with another number of elements."""
        return XlaTensorList(self.buffer, length, self.max_size, self.dtype, self.may_grow)


@functools.cache
def _register() -> None:
    """Have JAX take lists apart into their tensors."""

    def flat(one: XlaTensorList) -> tuple[Any, Any]:
        length = one.known_length
        facts = one.max_size, one.dtype, one.may_grow, length
        return (one.buffer, one.length if length is None else None), facts

    def whole(facts: Any, tensors: Any) -> XlaTensorList:
        max_size, dtype, may_grow, length = facts
        buffer, traced = tensors
        return XlaTensorList(
            buffer, traced if length is None else length, max_size, dtype, may_grow
        )

    jax("jax.tree_util").register_pytree_node(XlaTensorList, flat, whole)


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
        self, name: str, dtype: DataType | None = None, value: Any = None, arg_num: int = -1
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
