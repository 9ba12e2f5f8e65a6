"""XlaTensorList: a TensorList as tensors of the program, a buffer with room for all elements and their number.

TensorArrays and stacks hold one, too.

Source: TensorFlow compiler/tf2xla/kernels/tensor_list_utils.h.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any

from opkernel.errors import InvalidArgumentError
from opkernel.types import DataType
from opkernel.xla.jax_numpy import jax, jnp, lax

__all__ = ["XlaTensorList"]


class XlaTensorList:
    """A list of tensors of one shape.

    The shape of the elements may be unknown until the first of them comes; till then there is no buffer.

    Attributes:
        buffer: The elements, one behind the other along the first axis; None until their shape is known.
        length: How many there are.
        max_size: How many there can be.
        dtype: Their type.
    """

    __slots__ = ("buffer", "dtype", "length", "max_size")

    def __init__(self, buffer: Any, length: Any, max_size: int, dtype: DataType) -> None:
        _register()
        self.buffer, self.length = buffer, length
        self.max_size, self.dtype = max_size, dtype

    @classmethod
    def zeros(
        cls, max_size: int, shape: tuple[int, ...] | None, dtype: DataType, length: int
    ) -> XlaTensorList:
        """A list of zeros, of which `length` count."""
        buffer = None if shape is None else jnp().zeros((max_size, *shape), dtype.numpy_dtype)
        return cls(buffer, jnp().asarray(length, "int32"), max_size, dtype)

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
        return XlaTensorList(buffer, self.length, self.max_size, self.dtype)

    def items(self, indices: Any) -> Any:
        """The elements at indices, which are clamped, one behind the other."""
        _ = self.element_shape
        return jnp().take(self.buffer, indices, axis=0, mode="clip")

    def cleared(self) -> XlaTensorList:
        """A list of as many zeros."""
        return self.with_buffer(None if self.buffer is None else jnp().zeros_like(self.buffer))

    def with_length(self, length: Any) -> XlaTensorList:
        """The list with another number of elements."""
        return XlaTensorList(self.buffer, length, self.max_size, self.dtype)


@functools.cache
def _register() -> None:
    """Have JAX take lists apart into their tensors."""

    def flat(one: XlaTensorList) -> tuple[Any, Any]:
        return (one.buffer, one.length), (one.max_size, one.dtype)

    def whole(facts: Any, tensors: Any) -> XlaTensorList:
        return XlaTensorList(*tensors, *facts)

    jax("jax.tree_util").register_pytree_node(XlaTensorList, flat, whole)
