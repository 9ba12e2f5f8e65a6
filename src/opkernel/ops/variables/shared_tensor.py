"""Arrays that a variable shares with its readers; an array that was handed out never changes.

A variable hands out its very array, which is read-only. A change is made in place while nobody else
has the array, and otherwise in a copy that takes its place (`device/ownership.py`).
"""

from collections.abc import Sequence
from typing import Any

import numpy as np

from opkernel.device.ownership import counts_mean_ownership, others
from opkernel.errors import FailedPreconditionError
from opkernel.kernel import OpKernelContext, TensorRef

__all__ = ["WritingAll", "current", "frozen", "initialized_ref", "owned_input", "Writing"]


def owned_input(ctx: OpKernelContext, which: int | str) -> np.ndarray[Any, Any]:
    """An input to be kept, as `OpKernelContext.own_input` gives it, read-only from now on."""
    return frozen(ctx.own_input(which))


def frozen(array: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
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


class Writing:
    """A block in which the array of a reference may be changed; the reference's lock is held.

    Where others have the array, a copy takes its place in the reference.
    """

    __slots__ = ("_array", "_ref")

    def __init__(self, ref: TensorRef) -> None:
        self._ref = ref

    def __enter__(self) -> np.ndarray[Any, Any]:
        self._ref.mutex.acquire()
        try:
            self._array = _writable(self._ref)
        except MemoryError:
            self._ref.mutex.release()
            raise
        return self._array

    def __exit__(self, *error: object) -> None:
        self._array.setflags(write=False)
        self._ref.mutex.release()


class WritingAll:
    """A block in which the arrays of several references may be changed, each as by `Writing`.

    The locks are taken in one order by all, so that none waits for ever.
    """

    __slots__ = ("_arrays", "_ordered", "_refs")

    def __init__(self, refs: Sequence[TensorRef]) -> None:
        self._refs = refs
        self._ordered = sorted(refs, key=id)
        self._arrays: list[np.ndarray[Any, Any]] = []

    def __enter__(self) -> list[np.ndarray[Any, Any]]:
        for ref in self._ordered:
            ref.mutex.acquire()
        try:
            self._arrays = [_writable(ref) for ref in self._refs]
        except MemoryError:
            self.__exit__()
            raise
        return self._arrays

    def __exit__(self, *error: object) -> None:
        for array in self._arrays:
            array.setflags(write=False)
        for ref in self._ordered:
            ref.mutex.release()


def _writable(ref: TensorRef) -> np.ndarray[Any, Any]:
    is_shared = others((ref.tensor,), 0) > 1 or not counts_mean_ownership()
    is_foreign = ref.tensor.base is not None  # a view: others may have its memory, as engines do
    ref.replace(ref.tensor.copy() if is_shared or is_foreign else ref.tensor)
    array: np.ndarray[Any, Any] = ref.tensor
    array.setflags(write=True)
    return array
