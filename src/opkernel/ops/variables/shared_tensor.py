"""Arrays that a variable shares with its readers; an array that was handed out never changes.

A variable hands out its very array, which is read-only. A change is made in place while nobody else
has the array, and otherwise in a copy that takes its place (`device/ownership.py`).
"""

from collections.abc import Callable, Iterator, Sequence
from operator import attrgetter, methodcaller
from typing import Any

import numpy as np

from opkernel.device.ownership import counts_mean_ownership, others
from opkernel.errors import FailedPreconditionError
from opkernel.interrupts import contextmanager
from opkernel.kernel import OpKernelContext, TensorRef

__all__ = ["change_all", "current", "frozen", "initialized_ref", "owned_input", "writing"]


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


@contextmanager
def writing(ref: TensorRef) -> Iterator[np.ndarray[Any, Any]]:
    """A block in which the array of a reference may be changed; the reference's lock is held.

    Where others have the array, a copy takes its place in the reference.
    """
    with ref.mutex:
        try:
            yield _writable(ref)
        finally:
            ref.tensor.setflags(write=False)


def change_all(
    refs: Sequence[TensorRef], change: Callable[[list[np.ndarray[Any, Any]]], object]
) -> None:
    """Call `change` with the arrays of several references, which it may change as in `writing`.

    The locks are taken in one order by all, so that none waits for ever.
    """
    _change_all(sorted(refs, key=id), refs, change)


def _change_all(
    unlocked: Sequence[TensorRef],
    refs: Sequence[TensorRef],
    change: Callable[[list[np.ndarray[Any, Any]]], object],
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


def _writable(ref: TensorRef) -> np.ndarray[Any, Any]:
    is_shared = others((ref.tensor,), 0) > 1 or not counts_mean_ownership()
    is_foreign = ref.tensor.base is not None  # a view: others may have its memory, as engines do
    ref.replace(ref.tensor.copy() if is_shared or is_foreign else ref.tensor)
    array: np.ndarray[Any, Any] = ref.tensor
    array.setflags(write=True)
    return array
