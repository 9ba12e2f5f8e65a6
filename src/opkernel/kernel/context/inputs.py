"""The inputs of a computation: by index, by name, as lists, and by reference.

Source: TensorFlow core/framework/op_kernel.h.
"""

from collections.abc import Sequence
from contextlib import nullcontext
from typing import Any

import numpy as np

from opkernel.errors import InternalError, InvalidArgumentError
from opkernel.kernel.context.arg_lists import OpInputList, OpMutableInputList
from opkernel.kernel.context.tensor_ref import TensorRef
from opkernel.kernel.op_kernel import OpKernel
from opkernel.kernel.registry.memory_types import MemoryType
from opkernel.types import DataType

__all__ = ["ContextInputs"]


class ContextInputs:
    """Reads inputs. An argument is named by its flat index, or by its name in the OpDef."""

    __slots__ = ()
    kernel: OpKernel
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
        return OpInputList(self, *self.kernel.input_range(name))  # type: ignore[arg-type]  # a part of it

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
        return OpMutableInputList(self, *self.kernel.input_range(name))  # type: ignore[arg-type]  # a part of it

    def replace_ref_input(self, which: int | str, tensor: Any, *, lock_held: bool = False) -> None:
        """Have a reference hold another array from now on."""
        ref = self.input_ref(which)
        with _guard(ref, lock_held):
            ref.replace(tensor)

    def delete_ref_input(self, which: int | str, *, lock_held: bool = False) -> None:
        """Have a reference hold no array: it becomes uninitialised."""
        self.replace_ref_input(which, None, lock_held=lock_held)


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
