"""Arrays that a variable shares with those who read it: what was handed out never changes.

A variable hands out its very array, which is read-only. A change is made in place while nobody else
has the array, and otherwise in a copy that takes its place. As in forwarding, CPython's reference
count says who has it; a view counts too, since it refers to the array whose memory it shows.
"""

import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

from opkernel.errors import FailedPreconditionError
from opkernel.kernel import NO_RESERVATION, OpKernelContext, TensorRef

__all__ = ["WritingAll", "current", "frozen", "initialized_ref", "owned_input", "writing"]


def _references(ref: TensorRef) -> int:
    """How many references there are to the array, that of this function included."""
    return sys.getrefcount(ref.tensor)


_OURS = _references(TensorRef(np.empty(0)))  # to an array that only a TensorRef refers to


def owned_input(ctx: OpKernelContext, which: int | str) -> np.ndarray[Any, Any]:
    """An input as an array that nobody else has, to be kept: its buffer if that may be taken.

    For kernels that set `forwards_inputs`; others get a copy always.
    """
    index = ctx.input_index(which)
    shape, memory = np.shape(ctx.input(index)), ctx.input_memory_type(index)
    taken = ctx.forward_input(index, NO_RESERVATION, ctx.input_dtype(index), shape, memory)
    if taken is None:
        return frozen(np.array(ctx.input(index), order="C"))
    return frozen(taken if taken.base is None else taken.base)  # the owner, not a view of it


def frozen(array: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """The array, read-only from now on."""
    array.setflags(write=False)
    return array


def current(ref: TensorRef) -> Any:
    """The array that a reference refers to; whoever has it keeps changes from being made in it."""
    with ref.mutex:
        return ref.tensor


def initialized_ref(ctx: OpKernelContext) -> TensorRef:
    """The reference that input 0 is.

    Raises:
        FailedPreconditionError: it was not assigned a value.
    """
    ref = ctx.input_ref(0)
    if not ref.is_initialized:
        raise FailedPreconditionError(
            f"Attempting to use uninitialized value {ctx.kernel.requested_input(0)}"
        )
    return ref


@contextmanager
def writing(ref: TensorRef) -> Iterator[np.ndarray[Any, Any]]:
    """The array of a reference to be changed in the block, where the reference's lock is held.

    It is a copy, which takes the array's place, where others have the array.
    """
    with ref.mutex:
        array = _writable(ref)
        try:
            yield array
        finally:
            array.setflags(write=False)


class WritingAll:
    """A block in which the arrays of several references may be changed, each as by `writing`.

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
    if _references(ref) > _OURS:
        ref.tensor = ref.tensor.copy()
    array: np.ndarray[Any, Any] = ref.tensor
    array.setflags(write=True)
    return array
