"""The outputs of a computation, and the memory that it takes.

Source: TensorFlow core/framework/op_kernel.h.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from opkernel.device.allocation import allocate, allocation_policy
from opkernel.device.allocator_attributes import AllocatorAttributes
from opkernel.errors import InternalError
from opkernel.kernel.context.declared_outputs import check_output
from opkernel.kernel.context.inputs import ArgList, single
from opkernel.kernel.context.params import ContextParams
from opkernel.kernel.context.tensor_ref import TensorRef
from opkernel.kernel.kernel_facts import KernelFacts
from opkernel.kernel.registry.memory_types import MemoryType
from opkernel.kernel.services.step import Step
from opkernel.logs import logger
from opkernel.records import replace
from opkernel.types import DataType

if TYPE_CHECKING:
    from opkernel.device.allocator import Allocator
    from opkernel.kernel.context.memory_record import MemoryRecord
    from opkernel.kernel.context.persistent_tensor import PersistentTensor

_ANY_MEMORY = AllocatorAttributes()
_empty = np.empty


class ContextOutputs:
    """Sets outputs. An argument is named by its flat index, or by its name in the OpDef."""

    __slots__ = ()
    kernel: KernelFacts
    outputs: list[Any]
    step: Step
    params: ContextParams
    memory: MemoryRecord | None

    if TYPE_CHECKING:

        def scoped_outputs(self) -> dict[int, np.ndarray[Any, Any]]:
            """As OpKernelContext gives it."""

        def get_allocator(self, attr: AllocatorAttributes | None = None) -> Allocator:
            """As ContextServices gives it."""

        def allocate_on_host(self, attr: AllocatorAttributes) -> bool:
            """As ContextServices tells it."""

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
    ) -> np.ndarray[Any, Any]:
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
        if attr is None and self.params.output_attr_array is not None:
            attr = self.params.output_attr_array[index]
        elif attr is None and self.memory is None:  # `allocate`, written out
            limit, allocator = allocation_policy()
            if allocator is None:
                kind = self.kernel.output_dtypes[index]
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
        array = self._allocate(self.kernel.output_types[index], shape, attr)
        self.outputs[index] = array
        return array

    def _allocate_in_scope(
        self, index: int, shape: Sequence[int], attr: AllocatorAttributes
    ) -> np.ndarray[Any, Any]:
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
    ) -> np.ndarray[Any, Any]:
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
            self.memory.record_persistent(array.nbytes, id(array), memory_type)
        from opkernel.kernel.context.persistent_tensor import PersistentTensor  # for few kernels

        return PersistentTensor(array)

    def _allocate(
        self, dtype: DataType, shape: Sequence[int], attr: AllocatorAttributes | None
    ) -> np.ndarray[Any, Any]:
        """An array, from the device's allocator where somebody asks for it or looks at it."""
        if attr is None and self.memory is None:
            return allocate(shape, dtype)
        allocator = self.get_allocator(attr)
        array = allocator.allocate(shape, dtype)
        if self.memory is not None:
            self.memory.references.append(array)
        if self.step.log_memory:
            logger("opkernel.memory").info(
                "step %d, %s: %s%s, %d bytes from %s",
                self.step.step_id,
                self.kernel.name,
                dtype.string,
                list(array.shape),
                array.nbytes,
                allocator.name,
            )
        return array

    def output_alloc_attr(self, which: int | str) -> AllocatorAttributes:
        """Where an output is to be allocated."""
        attrs = self.params.output_attr_array
        return _ANY_MEMORY if attrs is None else attrs[self.output_index(which)]


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
