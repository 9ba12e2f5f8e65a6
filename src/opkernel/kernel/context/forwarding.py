"""Forwarding: an output takes over the buffer of an input without other readers.

A computation may take over a buffer if it holds the only reference: the executor has let go of the
buffer, and no other node, caller, variable, constant or view has a reference (`device/ownership.py`).
Kernels that forward claim `forwards_inputs`, so that the executor hands them its last reference. Other
kernels forward nothing.

Source: OpKernelContext::forward_input in TensorFlow core/framework/op_kernel.cc.
"""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from opkernel.device.allocator_attributes import AllocatorAttributes
from opkernel.device.ownership import counts_mean_ownership, is_whole, others
from opkernel.device.recycling import forget
from opkernel.errors import InternalError
from opkernel.kernel.context.inputs import ContextInputs
from opkernel.kernel.context.outputs import ContextOutputs
from opkernel.kernel.context.params import NEVER_FORWARD, NO_RESERVATION
from opkernel.kernel.registry.memory_types import MemoryType
from opkernel.types import DataType, detached


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
    ) -> np.ndarray[Any, Any] | None:
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
    ) -> np.ndarray[Any, Any] | None:
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
    ) -> tuple[np.ndarray[Any, Any], int]:
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
    ) -> np.ndarray[Any, Any]:
        """The buffer of the first candidate that may be taken, or new memory, to work in."""
        for candidate in candidates:
            index = self.input_index(candidate)
            memory = self.kernel.input_memory_types[index]
            array = self.forward_input(index, NO_RESERVATION, dtype, shape, memory, attr)
            if array is not None:
                return array
        return self.allocate_temp(dtype, shape, attr)

    def own_input(self, which: int | str) -> np.ndarray[Any, Any]:
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
        taken: np.ndarray[Any, Any] = self.inputs[index]
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
