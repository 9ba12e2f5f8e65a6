"""Var: the resource behind a variable's handle, and ways to it.

Arrays that a variable shares with its readers; an array that was handed out never changes.

A variable hands out its very array, which is read-only. A change is made in place while nobody else
has the array, and otherwise in a copy that takes its place (`device/ownership.py`).

Source: TensorFlow core/framework/resource_var.h.
"""

from collections.abc import Callable, Iterator, Sequence
from operator import attrgetter, methodcaller
from typing import Any

import numpy as np

from opkernel.device.ownership import counts_mean_ownership, others
from opkernel.errors import FailedPreconditionError, OpError
from opkernel.interrupts import contextmanager
from opkernel.kernel import (
    OpKernel,
    OpKernelConstruction,
    OpKernelContext,
    ResourceBase,
    TensorRef,
    handle_from_input,
    lookup_resource,
)
from opkernel.ops.input_checks import require_equal
from opkernel.types import Array, DataType, TensorShape


def owned_input(ctx: OpKernelContext, which: int | str) -> Array:
    """An input to be kept, as `OpKernelContext.own_input` gives it, read-only from now on."""
    return frozen(ctx.own_input(which))


def frozen(array: Array) -> Array:
    """The array, read-only from now on."""
    array.setflags(write=False)
    return array


def current(ref: TensorRef) -> Any:
    """The array that a reference refers to; while it is held, changes are made in a copy."""
    with ref.mutex:
        return ref.tensor


def initialized_ref(ctx: OpKernelContext) -> TensorRef:
    """The reference that input 0 is.

    Raises:
        FailedPreconditionError: it was not assigned a value.
    """
    ref = ctx.input_ref(0)
    if not ref.is_initialized:
        name = ctx.kernel.requested_input(0)
        raise FailedPreconditionError(
            f"Attempting to use uninitialized value {name}", resource=name
        )
    return ref


@contextmanager
def writing(ref: TensorRef) -> Iterator[Array]:
    """A block in which the array of a reference may be changed; the reference's lock is held.

    Where others have the array, a copy takes its place in the reference.
    """
    with ref.mutex:
        try:
            yield _writable(ref)
        finally:
            ref.tensor.setflags(write=False)


def change_all(refs: Sequence[TensorRef], change: Callable[[list[Array]], object]) -> None:
    """Call `change` with the arrays of several references, which it may change as in `writing`.

    The locks are taken in one order by all, so that none waits for ever.
    """
    _change_all(sorted(refs, key=id), refs, change)


def _change_all(
    unlocked: Sequence[TensorRef],
    refs: Sequence[TensorRef],
    change: Callable[[list[Array]], object],
) -> None:
    if unlocked:
        with unlocked[0].mutex:
            _change_all(unlocked[1:], refs, change)
        return
    freeze_all = map(_FREEZE, map(_TENSOR, refs))  # once it is gone through
    try:
        change([_writable(ref) for ref in refs])
    finally:
        _ = [*freeze_all]  # which no interrupt divides


_FREEZE, _TENSOR = methodcaller("setflags", write=False), attrgetter("tensor")


def _writable(ref: TensorRef) -> Array:
    is_shared = others((ref.tensor,), 0) > 1 or not counts_mean_ownership()
    is_foreign = ref.tensor.base is not None  # a view: others may have its memory, as engines do
    ref.replace(ref.tensor.copy() if is_shared or is_foreign else ref.tensor)
    array: Array = ref.tensor
    array.setflags(write=True)
    return array


WRONG_DTYPE = "Trying to read variable with wrong dtype. Expected {} got {}"


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
            require_equal(dtype.string, self.dtype.string, WRONG_DTYPE)
        ref = self.tensor_ref
        with ref.mutex:
            return ref.tensor

    def assign(self, tensor: Any, dtype: DataType, *, validate_shape: bool = False) -> None:
        """Replace the tensor by a read-only one that no other code has.

        Raises:
            InvalidArgumentError: it is of another type or, with `validate_shape`, shape.
        """
        with self.tensor_ref.mutex:
            if dtype != self.dtype:
                message = "Trying to assign variable with wrong dtype. Expected {} got {}"
                require_equal(self.dtype.string, dtype.string, message)
            shape = self.tensor_ref.tensor.shape
            if validate_shape and self.is_initialized:
                message = "Trying to assign to variable with tensor with wrong shape."
                require_equal(shape, tensor.shape, f"{message} Expected {{}} got {{}}")
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


class VariableUpdate(OpKernel):
    """Changes a variable: the one that the handle at input 0 names, or that the reference there refers to.

    Attributes:
        is_ref: Whether there is a reference.
    """

    def __init__(self, construction: OpKernelConstruction) -> None:
        super().__init__(construction)
        self.is_ref = self.input_types[0].is_ref

    def check_dtype(self, dtype: DataType) -> None:
        """Raise InvalidArgumentError unless a variable that a handle names has the type of the node."""
        raise NotImplementedError

    def ref(self, ctx: OpKernelContext) -> TensorRef:
        """The array of the variable.

        Raises:
            OpError: the variable does not exist, has no value, or is of another type.
        """
        if self.is_ref:
            return initialized_ref(ctx)
        with variable_of(ctx) as variable:
            self.check_dtype(variable.dtype)
            return variable.tensor_ref

    def target(self, ctx: OpKernelContext) -> TensorRef:
        """As `ref`; a reference is passed on, so that later nodes can be made to wait for it."""
        ref = self.ref(ctx)
        if self.is_ref:
            ctx.set_output_ref(0, ref)
        return ref
