"""List arguments: `N * T` and type lists, as a kernel sees them.

Source: OpInputList, OpMutableInputList, OpOutputList in TensorFlow core/framework/op_kernel.h.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, overload

from opkernel.types import DataType

if TYPE_CHECKING:
    from opkernel.kernel.context.op_kernel_context import OpKernelContext
    from opkernel.kernel.context.tensor_ref import TensorRef

__all__ = ["OpInputList", "OpMutableInputList", "OpOutputList"]


class _ArgList:
    """The tensors `start` to `stop - 1` of a flat list."""

    __slots__ = ("_ctx", "_start", "_stop")

    def __init__(self, ctx: OpKernelContext, start: int, stop: int) -> None:
        self._ctx = ctx
        self._start = start
        self._stop = stop

    def __len__(self) -> int:
        return self._stop - self._start

    def _index(self, index: int) -> int:
        if not -len(self) <= index < len(self):
            raise IndexError(f"index {index} of a list argument of {len(self)} tensors")
        return (self._stop if index < 0 else self._start) + index


class OpInputList(_ArgList, Sequence[Any]):
    """The tensors of an input argument."""

    __slots__ = ()

    @overload
    def __getitem__(self, index: int) -> Any: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[Any]: ...
    def __getitem__(self, index: int | slice) -> Any:
        if isinstance(index, slice):
            return list(self)[index]
        return self._ctx.input(self._index(index))

    def __iter__(self) -> Iterator[Any]:
        return iter(self._ctx.inputs[self._start : self._stop])


class OpMutableInputList(_ArgList):
    """The tensors of an input argument of a reference type."""

    __slots__ = ()

    def at(self, index: int, *, lock_held: bool = False) -> Any:
        """The array at `index`, to be changed (`OpKernelContext.mutable_input`)."""
        return self._ctx.mutable_input(self._index(index), lock_held=lock_held)

    def ref_mutex(self, index: int) -> Any:
        """The lock of the tensor at `index`."""
        return self._ctx.input_ref_mutex(self._index(index))


class OpOutputList(_ArgList):
    """The tensors of an output argument."""

    __slots__ = ()

    def __getitem__(self, index: int) -> Any:
        """The tensor at `index`; None where it was not set."""
        return self._ctx.mutable_output(self._index(index))

    def allocate(self, index: int, shape: Sequence[int]) -> Any:
        """An uninitialised array, set as the output at `index`."""
        return self._ctx.allocate_output(self._index(index), shape)

    def set(self, index: int, tensor: Any) -> None:
        """Set the tensor at `index`."""
        self._ctx.set_output(self._index(index), tensor)

    def set_ref(self, index: int, ref: TensorRef) -> None:
        """Set the reference at `index`."""
        self._ctx.set_output_ref(self._index(index), ref)

    def required(self, index: int) -> bool:
        """Whether the tensor at `index` must be set."""
        return self._ctx.output_required(self._index(index))

    def expected_output_dtype(self, index: int) -> DataType:
        """The type that the tensor at `index` must have."""
        return self._ctx.expected_output_dtype(self._index(index))
