"""The outputs of a computation, the memory that it takes, and the buffers of inputs that outputs take over.

A computation may take over a buffer if it holds the only reference: the executor has let go of the
buffer, and no other node, caller, variable, constant or view has a reference (`device/ownership.py`).
Kernels that forward claim `forwards_inputs`, so that the executor hands them its last reference. Other
kernels forward nothing.

Source: OpKernelContext in TensorFlow core/framework/op_kernel.{h,cc}.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from opkernel.device.allocation import allocate, allocation_policy, num_bytes
from opkernel.device.local_device import AllocatorAttributes
from opkernel.device.ownership import counts_mean_ownership, forget, is_whole, others
from opkernel.errors import InternalError
from opkernel.kernel.context.declared_outputs import check_output
from opkernel.kernel.context.inputs import (
    NEVER_FORWARD,
    NO_RESERVATION,
    ArgList,
    ContextInputs,
    TensorRef,
    single,
)
from opkernel.kernel.context.services import ContextServices, alloc_attr_of
from opkernel.kernel.node_properties import MemoryType
from opkernel.logs import logger
from opkernel.records import replace
from opkernel.types import Array, DataType, detached

if TYPE_CHECKING:
    from opkernel.kernel.context.memory_record import PersistentTensor


_ANY_MEMORY = AllocatorAttributes()
_empty = np.empty


class ContextOutputs(ContextServices):
    """Sets outputs. An argument is named by its flat index, or by its name in the OpDef."""

    __slots__ = ()
    outputs: list[Any]

    if TYPE_CHECKING:

        def scoped_outputs(self) -> dict[int, Array]:
            """As OpKernelContext gives it."""

    @property
    def num_outputs(self) -> int:
        """The number of output tensors."""
        return len(self.outputs)

    def expected_output_dtype(self, which: int | str) -> DataType:
        """The type that an output must have."""
        return self.kernel.output_types[self.output_index(which)]

    def output_memory_type(self, which: int | str) -> MemoryType:
        """Where an output lives."""
        return self.kernel.output_memory_types[self.output_index(which)]

    def output_index(self, which: int | str) -> int:
        """The flat index of an output argument that is not a list."""
        return which if isinstance(which, int) else single(self.kernel.output_range(which), which)

    def set_output(self, which: int | str, tensor: Any) -> None:
        """Set an output tensor. Another value than an array becomes an array of the output's type.

        Raises:
            InternalError: the tensor's type is not the one that the node declares.
        """
        index: Any = which if which.__class__ is int else self.output_index(which)
        try:
            expected = self.kernel.output_dtypes[index]
            if tensor.dtype is not expected:
                check_output(self.kernel, index, tensor)
        except AttributeError:
            if tensor is None:
                check_output(self.kernel, index, tensor)
            tensor = np.asarray(tensor, expected)
        except IndexError:
            raise InternalError(
                f"the kernel sets output {index}, and its op has {self.num_outputs}"
            ) from None
        if self.memory is not None:
            self.memory.record_output(tensor)
        self.outputs[index] = tensor

    def set_output_list(self, name: str, tensors: Sequence[Any]) -> None:
        """Set the tensors of the list argument `name`."""
        start, stop = self.kernel.output_range(name)
        if len(tensors) != stop - start:
            raise InternalError(f"output '{name}' takes {stop - start} tensors, got {len(tensors)}")
        for index, tensor in enumerate(tensors, start):
            self.set_output(index, tensor)

    def output_list(self, name: str) -> OpOutputList:
        """The tensors of the argument `name`, to be set one by one; one where it is not a list."""
        return OpOutputList(self, *self.kernel.output_range(name))

    def set_output_ref(self, which: int | str, ref: TensorRef) -> None:
        """Set an output of a reference type.

        Raises:
            InternalError: the output is not of a reference type, or the reference is to another type.
        """
        index = self.output_index(which)
        if not self.kernel.output_types[index].is_ref:
            raise InternalError(f"output {index} is not of a reference type")
        check_output(self.kernel, index, ref)
        self.outputs[index] = ref

    def mutable_output(self, which: int | str) -> Any:
        """The output as it was set or allocated so far; None if it was not."""
        return self.outputs[self.output_index(which)]

    def release_output(self, which: int | str) -> Any:
        """Take an output back: returns the tensor, and the output is unset again."""
        index = self.output_index(which)
        released, self.outputs[index] = self.outputs[index], None
        return released

    def output_required(self, which: int | str) -> bool:
        """Whether an output must be set; one that nothing reads need not be."""
        required = self.params.outputs_required
        return required is None or required[self.output_index(which)]

    def allocate_output(
        self, which: int | str, shape: Sequence[int], attr: AllocatorAttributes | None = None
    ) -> Array:
        """An uninitialised array, set as the output; the kernel fills it.

        Args:
            which: the output.
            shape: its sizes.
            attr: where to allocate, if not as `output_alloc_attr` says.

        Raises:
            InvalidArgumentError: a size is negative, or there are too many elements.
            ResourceExhaustedError: the array would be larger than the limit, or its scope has memory
                for another size.
            InternalError: the scope that `attr` names is none of the step's, or was given already.
        """
        index: Any = which if which.__class__ is int else self.output_index(which)
        kernel = self.kernel
        if attr is None and self.params.output_attr_array is not None:
            attr = self.params.output_attr_array[index]
        elif attr is None and kernel.device.allocates:
            attr = self.output_alloc_attr(index)
        elif attr is None and self.memory is None:  # `allocate`, written out
            limit, allocator = allocation_policy()
            if allocator is None:
                kind = kernel.output_dtypes[index]
                size = kind.itemsize
                for extent in shape:
                    size *= extent
                if 0 < size <= limit:
                    try:
                        array = self.outputs[index] = _empty(shape, kind)
                    except (ValueError, TypeError):
                        pass  # `allocate` reports the error
                    else:
                        return array
        if attr is not None and attr.scope_id > 0:
            return self._allocate_in_scope(index, shape, attr)
        array = self._allocate(kernel.output_types[index], shape, attr)
        self.outputs[index] = array
        return array

    def _allocate_in_scope(
        self, index: int, shape: Sequence[int], attr: AllocatorAttributes
    ) -> Array:
        """Allocate an output in the memory of its scope, once."""
        scoped = self.scoped_outputs()
        if attr.scope_id in scoped:
            raise InternalError(
                f"OpKernel {self.kernel.name} called allocate_output at index {index} with scope_id "
                f"{attr.scope_id} more than once"
            )
        array = self._allocate(self.kernel.output_types[index], shape, attr)
        self.outputs[index] = scoped[attr.scope_id] = array
        return array

    def allocate_temp(
        self, dtype: DataType, shape: Sequence[int], attr: AllocatorAttributes | None = None
    ) -> Array:
        """An uninitialised array for use during this computation, of no scope.

        Raises as `allocate_output`.
        """
        if attr is not None and attr.scope_id > 0:
            attr = replace(attr, scope_id=0)  # a scope is for the output alone
        array = self._allocate(dtype, shape, attr)
        if self.memory is not None:
            self.memory.record_temp(array)
        return array

    def allocate_persistent(
        self, dtype: DataType, shape: Sequence[int], attr: AllocatorAttributes | None = None
    ) -> PersistentTensor:
        """An uninitialised array that the kernel keeps for later computations.

        Raises as `allocate_output`.
        """
        array = self._allocate(dtype, shape, attr)
        if self.memory is not None:
            is_on_host = self.allocate_on_host(attr or _ANY_MEMORY)
            memory_type = MemoryType.HOST_MEMORY if is_on_host else MemoryType.DEVICE_MEMORY
            self.memory.record_persistent(num_bytes(array), id(array), memory_type)
        from opkernel.kernel.context.memory_record import PersistentTensor  # for few kernels

        return PersistentTensor(array)

    def _allocate(
        self, dtype: DataType, shape: Sequence[int], attr: AllocatorAttributes | None
    ) -> Array:
        """An array; plain memory where the device has no allocator of its own and nobody looks."""
        device = self.kernel.device
        if attr is None and self.memory is None and not device.allocates:
            return allocate(shape, dtype)
        allocator = self.get_allocator(attr)
        array: Array = device.allocate(attr or _ANY_MEMORY, allocator, shape, dtype)
        if self.memory is not None:
            self.memory.references.append(array)
        if self.step.log_memory:
            logger("opkernel.memory").info(
                "step %d, %s: %s%s, %d bytes from %s",
                self.step.step_id,
                self.kernel.name,
                dtype.string,
                list(array.shape),
                num_bytes(array),
                allocator.name,
            )
        return array

    def output_alloc_attr(self, which: int | str) -> AllocatorAttributes:
        """Where an output is to be allocated: on the host, if its argument is in host memory."""
        attrs, index = self.params.output_attr_array, self.output_index(which)
        return (
            alloc_attr_of(self.kernel.output_memory_types[index]) if attrs is None else attrs[index]
        )


class OpOutputList(ArgList):
    """The tensors of an output argument."""

    __slots__ = ()
    _ctx: ContextOutputs

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


class ContextForwarding(ContextInputs, ContextOutputs):
    """Hands buffers of inputs on to outputs, or allocates if that is not safe."""

    __slots__ = ()

    def forward_input(
        self,
        input_index: int,
        output_index: int,
        output_dtype: DataType,
        output_shape: Sequence[int],
        output_memory_type: MemoryType | None = None,
        output_attr: AllocatorAttributes | None = None,
    ) -> Array | None:
        """The buffer of an input as an array of the output's shape, to be written to.

        Args:
            input_index: the input that gives its buffer.
            output_index: the output that takes the buffer; `NO_RESERVATION` for no output.
            output_dtype: the type of the output, which must be that of the input.
            output_shape: the sizes of the output, which must have as many elements as the input.
            output_memory_type: where the output lives; as declared if None.
            output_attr: where the output is to be allocated; as the executor says if None.

        Returns:
            The array; None where the buffer may not be taken. The input is then a reference, has another
            type, size or memory, is used elsewhere, may not be written to, or is reserved for another
            output.
        """
        count = others(self.inputs, input_index)
        array = self.inputs[input_index]
        if count > 0 and not (count == 1 and forget(array)):
            return None
        if not is_whole(array):
            return None
        if self.kernel.input_types[input_index] != output_dtype:
            return None
        if array.size != math.prod(output_shape):
            return None
        if not self._reservations_allow(input_index, output_index):
            return None
        if not self._memory_fits(input_index, output_index, output_memory_type, output_attr):
            return None
        return array.reshape(output_shape) if counts_mean_ownership() else None

    def forward_input_to_output_with_shape(
        self, input_which: int | str, output_which: int | str, output_shape: Sequence[int]
    ) -> Array | None:
        """Set an output to the buffer of an input, reshaped; None if that is not safe."""
        output = self.output_index(output_which)
        array = self.forward_input(
            self.input_index(input_which), output, self.kernel.output_types[output], output_shape
        )
        if array is not None:
            self.outputs[output] = array
        return array

    def forward_input_or_allocate_output(
        self,
        candidates: Sequence[int | str],
        output_which: int | str,
        output_shape: Sequence[int],
    ) -> tuple[Array, int]:
        """Set an output to the buffer of the first candidate that may be taken, or to new memory.

        Returns:
            The array to write to, which holds the input's values if it is an input's buffer, and
            the index of that input, or -1.

        Raises:
            InternalError: the executor counts on an input being forwarded, and none could be.
            ResourceExhaustedError: as `allocate_output`.
        """
        for candidate in candidates:
            array = self.forward_input_to_output_with_shape(candidate, output_which, output_shape)
            if array is not None:
                return array, self.input_index(candidate)
        if self.output_expects_forwarding(output_which) and counts_mean_ownership():
            raise InternalError(f"output {output_which!r} expects an input to be forwarded to it")
        return self.allocate_output(output_which, output_shape), -1

    def forward_input_or_allocate_temp(
        self,
        candidates: Sequence[int | str],
        dtype: DataType,
        shape: Sequence[int],
        attr: AllocatorAttributes | None = None,
    ) -> Array:
        """The buffer of the first candidate that may be taken, or new memory, to work in."""
        for candidate in candidates:
            index = self.input_index(candidate)
            memory = self.kernel.input_memory_types[index]
            array = self.forward_input(index, NO_RESERVATION, dtype, shape, memory, attr)
            if array is not None:
                return array
        return self.allocate_temp(dtype, shape, attr)

    def own_input(self, which: int | str) -> Array:
        """An input as an array that the kernel may keep beyond the step: nobody else has its memory.

        The array is the input itself where its buffer may be taken, and otherwise a copy. Only a kernel
        that claims `forwards_inputs` may take buffers.
        """
        index = self.input_index(which)
        shape, dtype = np.shape(self.inputs[index]), self.kernel.input_types[index]
        memory = self.kernel.input_memory_types[index]
        if dtype == DataType.DT_VARIANT:
            return np.asarray(detached(self.inputs[index]))
        if self.forward_input(index, NO_RESERVATION, dtype, shape, memory) is None:
            return np.array(self.inputs[index], order="C")
        taken: Array = self.inputs[index]
        return taken

    def output_expects_forwarding(self, which: int | str) -> bool:
        """Whether an input is reserved for an output, which then must not be allocated."""
        reserved = self.params.forward_from
        return reserved is not None and reserved[self.output_index(which)] >= 0

    def forward_ref_input_to_ref_output(
        self, input_which: int | str, output_which: int | str
    ) -> None:
        """Set an output of a reference type to the reference that an input is."""
        self.set_output_ref(output_which, self.input_ref(input_which))

    def _reservations_allow(self, input_index: int, output_index: int) -> bool:
        reserved = self.params.forward_from
        if reserved is None:
            return True
        for_output = NO_RESERVATION if output_index < 0 else reserved[output_index]
        if for_output == NEVER_FORWARD:
            return False
        return for_output == input_index or (
            for_output == NO_RESERVATION and input_index not in reserved
        )

    def _memory_fits(
        self,
        input_index: int,
        output_index: int,
        memory_type: MemoryType | None,
        attr: AllocatorAttributes | None,
    ) -> bool:
        if memory_type is None and output_index >= 0:
            memory_type = self.kernel.output_memory_types[output_index]
        if attr is None:
            attr = self.output_alloc_attr(output_index) if output_index >= 0 else None
        is_same = memory_type in (None, self.kernel.input_memory_types[input_index])
        given = self.params.input_alloc_attrs
        if attr is None or given is None:
            return is_same
        return is_same and attr.is_equal_or_less_restrictive_than(given[input_index])
