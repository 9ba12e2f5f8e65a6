"""OpKernelContext: one computation of a kernel, its inputs, its outputs, its step.

Source: TensorFlow core/framework/op_kernel.h.
"""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from opkernel.errors import InternalError, InvalidArgumentError, OpError
from opkernel.kernel.allocation import allocate
from opkernel.kernel.device import Step
from opkernel.kernel.op_kernel import Arg, OpKernel
from opkernel.types import DataType

__all__ = ["OpKernelContext"]


class OpKernelContext:
    """What `OpKernel.compute` works on.

    Inputs are arrays (NumPy scalars for rank 0) and are never written to. An argument is named by
    its flat index, or by its name in the OpDef; a list argument is read with `input_list`.
    """

    __slots__ = ("_error", "inputs", "kernel", "outputs", "step")

    def __init__(self, kernel: OpKernel, inputs: Sequence[Any], step: Step) -> None:
        self.kernel = kernel
        self.inputs = inputs
        self.step = step
        self.outputs: list[Any] = [None] * len(kernel.properties.output_types)
        self._error: OpError | None = None

    @property
    def num_inputs(self) -> int:
        """The number of input tensors."""
        return len(self.inputs)

    @property
    def num_outputs(self) -> int:
        """The number of output tensors."""
        return len(self.outputs)

    def input(self, which: int | str) -> Any:
        """An input tensor, by index or by the name of an argument that is not a list."""
        return self.inputs[self._single(which, self.kernel.input_range)]

    def input_list(self, name: str) -> list[Any]:
        """The tensors of the list argument `name`."""
        start, stop = self.kernel.input_range(name)
        return list(self.inputs[start:stop])

    def input_dtype(self, which: int | str) -> DataType:
        """The type of an input."""
        return self.kernel.input_types[self._single(which, self.kernel.input_range)]

    def expected_output_dtype(self, which: int | str) -> DataType:
        """The type that an output must have."""
        return self.kernel.output_types[self._single(which, self.kernel.output_range)]

    def set_output(self, which: int | str, tensor: Any) -> None:
        """Set an output tensor, by index or by name.

        Raises:
            InternalError: the tensor's type is not the one that the node declares.
        """
        index = self._single(which, self.kernel.output_range)
        expected = self.kernel.output_types[index]
        if not isinstance(tensor, np.ndarray | np.generic):
            tensor = np.asarray(tensor, expected.numpy_dtype)
        elif tensor.dtype != expected.numpy_dtype:
            raise InternalError(
                f"output {index} must be {expected.string}, the kernel set {tensor.dtype}"
            )
        self.outputs[index] = tensor

    def set_output_list(self, name: str, tensors: Sequence[Any]) -> None:
        """Set the tensors of the list argument `name`."""
        start, stop = self.kernel.output_range(name)
        if len(tensors) != stop - start:
            raise InternalError(f"output '{name}' takes {stop - start} tensors, got {len(tensors)}")
        for index, tensor in enumerate(tensors, start):
            self.set_output(index, tensor)

    def allocate_output(self, which: int | str, shape: Sequence[int]) -> np.ndarray[Any, Any]:
        """An uninitialised array, set as the output; the kernel fills it."""
        index = self._single(which, self.kernel.output_range)
        array = allocate(shape, self.kernel.output_types[index])
        self.outputs[index] = array
        return array

    def allocate_temp(self, dtype: DataType, shape: Sequence[int]) -> np.ndarray[Any, Any]:
        """An uninitialised array for use during this computation."""
        return allocate(shape, dtype)

    def requires(self, condition: object, error: str | OpError) -> None:
        """Raise `error` (a message stands for an InvalidArgumentError) unless `condition` holds."""
        if not condition:
            raise InvalidArgumentError(error) if isinstance(error, str) else error

    def set_status(self, error: OpError | None) -> None:
        """Record an error without leaving `compute`; the first one counts."""
        if self._error is None:
            self._error = error

    @property
    def status(self) -> OpError | None:
        """The recorded error, or None where all is well."""
        return self._error

    def run(self) -> list[Any]:
        """Compute the kernel and return its outputs, flat.

        Raises:
            OpError: as the kernel raised or recorded it.
            InternalError: the kernel left an output unset.
        """
        self.kernel.compute(self)
        if self._error is not None:
            raise self._error
        for index, output in enumerate(self.outputs):
            if output is None:
                raise InternalError(f"the kernel did not set output {index}")
        return self.outputs

    def inputs_by_arg(self) -> list[Any]:
        """The inputs, one entry an argument: a tensor, or a list of them."""
        return [_of_arg(self.inputs, arg) for arg in self.kernel.properties.input_args]

    def set_outputs_by_arg(self, values: Sequence[Any]) -> None:
        """Set all outputs, one entry an argument: a tensor, or a list of them."""
        args = self.kernel.properties.output_args
        if len(values) != len(args):
            raise InternalError(f"{len(args)} outputs expected, the kernel gave {len(values)}")
        for arg, value in zip(args, values, strict=True):
            if arg.is_list:
                self.set_output_list(arg.name, value)
            else:
                self.set_output(arg.start, value)

    def _single(self, which: int | str, find: Callable[[str], tuple[int, int]]) -> int:
        """The flat index of an argument that is not a list."""
        if isinstance(which, int):
            return which
        start, stop = find(which)
        if stop != start + 1:
            raise InvalidArgumentError(
                f"'{which}' is a list of {stop - start} tensors where one is asked for"
            )
        return start


def _of_arg(tensors: Sequence[Any], arg: Arg) -> Any:
    return list(tensors[arg.start : arg.stop]) if arg.is_list else tensors[arg.start]
