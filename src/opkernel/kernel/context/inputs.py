"""The inputs of a computation: by index, by name, as lists, and by reference.

Source: TensorFlow core/framework/op_kernel.h.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import nullcontext
from typing import Any, overload

import numpy as np

from opkernel.errors import InternalError, InvalidArgumentError
from opkernel.kernel.context.tensor_ref import TensorRef
from opkernel.kernel.kernel_facts import KernelFacts
from opkernel.kernel.registry.memory_types import MemoryType
from opkernel.types import DataType

__all__ = ["ContextInputs", "OpInputList", "OpMutableInputList"]


class ContextInputs:
    """Reads inputs. An argument is named by its flat index, or by its name in the OpDef."""

    __slots__ = ()
    kernel: KernelFacts
    inputs: Sequence[Any]

    @property
    def num_inputs(self) -> int:
        """The number of input tensors."""
        return len(self.inputs)

    def input(self, which: int | str) -> Any:
        """An input tensor, which the kernel must not write to; inputs by reference: a TensorRef.

        Raises:
            InvalidArgumentError: no input has this name, or it is that of a list.
        """
        if which.__class__ is int:
            return self.inputs[which]
        return self.inputs[self.input_index(which)]

    def input_list(self, name: str) -> OpInputList:
        """The tensors of the argument `name`; one where it is not a list."""
        return OpInputList(self, *self.kernel.input_range(name))

    def has_input(self, index: int) -> bool:
        """Whether there is a tensor at `index`; of the inputs of a Merge only some have one."""
        return self.inputs[index] is not None

    def input_dtype(self, which: int | str) -> DataType:
        """The type of an input."""
        return self.kernel.input_types[self.input_index(which)]

    def input_memory_type(self, which: int | str) -> MemoryType:
        """Where an input lives."""
        return self.kernel.input_memory_types[self.input_index(which)]

    def input_is_ref(self, which: int | str) -> bool:
        """Whether an input is passed by reference."""
        return self.input_dtype(which).is_ref

    def input_index(self, which: int | str) -> int:
        """The flat index of an input argument that is not a list."""
        return which if isinstance(which, int) else single(self.kernel.input_range(which), which)

    def validate_inputs_are_same_shape(self) -> None:
        """Raise InvalidArgumentError unless all inputs have one shape."""
        shapes = [np.shape(value) for value in self.inputs]
        for index, shape in enumerate(shapes):
            if shape != shapes[0]:
                raise InvalidArgumentError(
                    "Inputs to operation of type "
                    f"{self.kernel.type_string} must have the same size and shape.  "
                    f"Input 0: {_shape_text(shapes[0])} != input {index}: {_shape_text(shape)}"
                )

    # Inputs of reference types, which TensorFlow 1 keeps its variables in

    def input_ref(self, which: int | str) -> TensorRef:
        """The reference that an input is.

        Raises:
            InternalError: the input is not of a reference type.
        """
        index = self.input_index(which)
        ref = self.inputs[index]
        if not isinstance(ref, TensorRef):
            raise InternalError(
                f"input {index} is not a reference: {self.input_dtype(index).string}"
            )
        return ref

    def input_ref_mutex(self, which: int | str) -> Any:
        """The lock that guards the tensor of a reference."""
        return self.input_ref(which).mutex

    def mutable_input(self, which: int | str, *, lock_held: bool = False) -> Any:
        """The array of a reference, to be changed in place while its lock is held.

        It is None where the reference was not assigned a value yet. The lock is taken to read it,
        unless the caller holds it.
        """
        ref = self.input_ref(which)
        with _guard(ref, lock_held):
            return ref.tensor

    def mutable_input_list(self, name: str) -> OpMutableInputList:
        """The references of the argument `name`; one where it is not a list."""
        return OpMutableInputList(self, *self.kernel.input_range(name))

    def replace_ref_input(self, which: int | str, tensor: Any, *, lock_held: bool = False) -> None:
        """Have a reference hold another array from now on."""
        ref = self.input_ref(which)
        with _guard(ref, lock_held):
            ref.replace(tensor)

    def delete_ref_input(self, which: int | str, *, lock_held: bool = False) -> None:
        """Have a reference hold no array: it becomes uninitialised."""
        self.replace_ref_input(which, None, lock_held=lock_held)


class ArgList:
    """A list argument, `N * T` or a type list: the tensors `start` to `stop - 1` of a flat list."""

    __slots__ = ("_ctx", "_start", "_stop")

    def __init__(self, ctx: Any, start: int, stop: int) -> None:
        self._ctx = ctx
        self._start = start
        self._stop = stop

    def __len__(self) -> int:
        return self._stop - self._start

    def _index(self, index: int) -> int:
        if not -len(self) <= index < len(self):
            raise IndexError(f"index {index} of a list argument of {len(self)} tensors")
        return (self._stop if index < 0 else self._start) + index


class OpInputList(ArgList, Sequence[Any]):
    """The tensors of an input argument."""

    __slots__ = ()
    _ctx: ContextInputs

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


class OpMutableInputList(ArgList):
    """The tensors of an input argument of a reference type."""

    __slots__ = ()
    _ctx: ContextInputs

    def at(self, index: int, *, lock_held: bool = False) -> Any:
        """The array at `index`, to be changed (`OpKernelContext.mutable_input`)."""
        return self._ctx.mutable_input(self._index(index), lock_held=lock_held)

    def ref_mutex(self, index: int) -> Any:
        """The lock of the tensor at `index`."""
        return self._ctx.input_ref_mutex(self._index(index))


def single(span: tuple[int, int], name: str) -> int:
    """The one index of an argument that is not a list."""
    start, stop = span
    if stop != start + 1:
        raise InvalidArgumentError(
            f"'{name}' is a list of {stop - start} tensors where one is asked for"
        )
    return start


def _guard(ref: TensorRef, lock_held: bool) -> Any:
    return nullcontext() if lock_held else ref.mutex


def _shape_text(shape: tuple[int, ...]) -> str:
    return f"[{','.join(map(str, shape))}]"
