"""Var: the resource behind a variable's handle, and ways to it.

Source: TensorFlow core/framework/resource_var.h.
"""

from typing import Any

import numpy as np

from opkernel.errors import FailedPreconditionError, InvalidArgumentError, OpError
from opkernel.kernel import (
    OpKernelContext,
    ResourceBase,
    TensorRef,
    handle_from_input,
    lookup_resource,
)
from opkernel.ops.variables.shared_tensor import frozen
from opkernel.state.lasting_values import note_lasting
from opkernel.types import DataType, TensorShape

_LEAST_NOTED = 4096
"""The number of elements from which on it may pay for kernels to remember what they make of a tensor."""

__all__ = ["Var", "known_variable", "variable_of"]


class Var(ResourceBase):
    """A tensor that outlives steps.

    Attributes:
        dtype: The type of the tensor.
        tensor_ref: The tensor with its lock; before it is assigned a value it has the shape [0].
        is_initialized: Whether it was assigned a value.
    """

    def __init__(self, dtype: DataType, tensor: Any = None, debug_name: str = "") -> None:
        self.dtype = dtype
        self.tensor_ref = TensorRef(
            frozen(np.empty(0, dtype.numpy_dtype)) if tensor is None else tensor
        )
        self.is_initialized = tensor is not None
        self._debug_name = debug_name

    def debug_string(self) -> str:
        """The type and shape of the tensor."""
        return f"{self.dtype.string}/{TensorShape(self.tensor_ref.tensor.shape)}"

    def memory_used(self) -> int:
        """The bytes of the tensor."""
        size: int = self.tensor_ref.tensor.nbytes
        return size

    def make_ref_counting_handle_name(self, resource_id: int) -> str:
        """The debug name with the number."""
        return f"{self._debug_name}{resource_id}"

    def read(self, dtype: DataType) -> Any:
        """The tensor as it is now; it will never change.

        Raises:
            InvalidArgumentError: it is of another type.
        """
        if dtype != self.dtype:
            raise InvalidArgumentError(
                "Trying to read variable with wrong dtype. "
                f"Expected {dtype.string} got {self.dtype.string}"
            )
        ref = self.tensor_ref
        with ref.mutex:
            tensor = ref.tensor
            if tensor.size >= _LEAST_NOTED and isinstance(tensor, np.ndarray):
                note_lasting(tensor, ref.version)
            return tensor

    def assign(self, tensor: Any, dtype: DataType, *, validate_shape: bool = False) -> None:
        """Replace the tensor by a read-only one that no other code has.

        Raises:
            InvalidArgumentError: it is of another type or, with `validate_shape`, shape.
        """
        with self.tensor_ref.mutex:
            if dtype != self.dtype:
                raise InvalidArgumentError(
                    "Trying to assign variable with wrong dtype. "
                    f"Expected {self.dtype.string} got {dtype.string}"
                )
            shape = self.tensor_ref.tensor.shape
            if validate_shape and self.is_initialized and shape != tensor.shape:
                raise InvalidArgumentError(
                    "Trying to assign to variable with tensor with wrong shape. "
                    f"Expected {TensorShape(shape)} got {TensorShape(tensor.shape)}"
                )
            self.tensor_ref.replace(tensor)
            self.is_initialized = True


def variable_of(ctx: OpKernelContext) -> Var:
    """The variable whose handle is input 0, with one more reference.

    Raises:
        NotFoundError: it does not exist.
        InvalidArgumentError: the handle is of another device, or of no variable.
    """
    return lookup_resource(ctx, handle_from_input(ctx.input(0)), Var)


def known_variable(ctx: OpKernelContext) -> Var:
    """As `variable_of`, for ops that need an initialised variable.

    Raises:
        FailedPreconditionError: it does not exist, or `variable_of` fails otherwise.
    """
    handle = handle_from_input(ctx.input(0))
    try:
        return lookup_resource(ctx, handle, Var)
    except OpError as error:
        raise FailedPreconditionError(
            f"Could not find variable {handle.name}. This could mean that the variable has been "
            "deleted. In TF1, it can also mean the variable is uninitialized. Debug info: "
            f"container={handle.container}, status error message={error.message}",
            resource=handle.name,
        ) from None
