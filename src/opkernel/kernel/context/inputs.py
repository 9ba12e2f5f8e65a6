"""The inputs of a computation: by index, by name, as lists, and by reference; and what its executor tells it.

Most computations are told nothing beyond their inputs and their step (`ContextParams`). A reference is a
`TensorRef`: a tensor that kernels share in order to change it, with the lock that guards it.

Source: OpKernelContext, its Params, and TensorValue with its mutex, in TensorFlow core/framework/op_kernel.h.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import nullcontext
from typing import Any, overload

import numpy as np

from opkernel.device.local_device import AllocatorAttributes
from opkernel.errors import InternalError, InvalidArgumentError
from opkernel.kernel.context.construction import KernelFacts
from opkernel.kernel.node_properties import MemoryType
from opkernel.records import dataclass
from opkernel.types import Array, DataType

__all__ = [
    "NEVER_FORWARD",
    "NO_RESERVATION",
    "ContextInputs",
    "ContextParams",
    "FrameAndIter",
    "OpInputList",
    "OpMutableInputList",
    "TensorRef",
]


NEVER_FORWARD = -2
"""In `forward_from`: the output is always allocated."""

NO_RESERVATION = -1
"""In `forward_from`: no input is reserved for the output."""


@dataclass(frozen=True, slots=True)
class FrameAndIter:
    """Where in the loops of a graph a computation stands.

    Attributes:
        frame_id: The frame: one execution of one loop.
        iter_id: The iteration of the loop.
    """

    frame_id: int = 0
    iter_id: int = 0


@dataclass(slots=True)
class ContextParams:
    """The particulars of one computation.

    Attributes:
        frame_iter: Where in the graph's loops it stands.
        is_input_dead: An input is dead; only ops of control flow are run then.
        input_alloc_attrs: Where the inputs were allocated.
        output_attr_array: Where the outputs are to be allocated.
        forward_from: For each output the input that is reserved for it, `NO_RESERVATION`, or
            `NEVER_FORWARD`.
        scoped: The outputs that were allocated in scopes, by scope_id.
        outputs_required: For each output whether it must be set; all must if None.
        op_device_context: The device's own data for running the kernel, if not the device's default.
        input_device_contexts: The device context of each input's producer; the kernel's own if None.
        stack_trace: Where the node was defined.
        inc_num_deferred_ops_function: Called by deferred kernels before their work begins.
        dec_num_deferred_ops_function: Called by deferred kernels when their work is done.
    """

    frame_iter: FrameAndIter = FrameAndIter()
    is_input_dead: bool = False
    input_alloc_attrs: Sequence[AllocatorAttributes] | None = None
    output_attr_array: Sequence[AllocatorAttributes] | None = None
    forward_from: Sequence[int] | None = None
    scoped: dict[int, Array] | None = None
    outputs_required: Sequence[bool] | None = None
    op_device_context: Any = None
    input_device_contexts: Sequence[Any] | None = None
    stack_trace: Any = None
    inc_num_deferred_ops_function: Callable[[], None] | None = None
    dec_num_deferred_ops_function: Callable[[], None] | None = None


class TensorRef:
    """The value of a tensor of a reference type, such as `float_ref`.

    Attributes:
        tensor: The array; None before the tensor was first assigned, or after it was deleted.
        mutex: Is to be held while the array is replaced or written to.
        declared_shape: The shape that the tensor has while there is no array.
        version: Which value it is: another one once `replace` was called, or a variable written to.
    """

    __slots__ = ("declared_shape", "mutex", "tensor", "version")

    def __init__(
        self, tensor: Any = None, mutex: Any = None, declared_shape: tuple[int, ...] = ()
    ) -> None:
        self.tensor = tensor
        self.version = 1
        self.mutex = threading.RLock() if mutex is None else mutex
        self.declared_shape = declared_shape

    def replace(self, tensor: Any) -> None:
        """Have it refer to another array, a new version; the lock is to be held."""
        self.tensor = tensor
        self.version += 1

    @property
    def is_initialized(self) -> bool:
        """Whether the tensor was assigned a value."""
        return self.tensor is not None

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of the array, or the declared one."""
        return self.declared_shape if self.tensor is None else np.shape(self.tensor)


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
