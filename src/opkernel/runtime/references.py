"""References among the tensors of a step: who asks for a value gets what is referred to.

Source: ExecutorState::PrepareInputs in TensorFlow core/common_runtime/executor.cc.
"""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from opkernel.errors import FailedPreconditionError
from opkernel.kernel import OpKernel, Step, TensorRef
from opkernel.kernel.context import function_of_step

__all__ = ["fetched_value", "function_of_references"]


def function_of_references(kernel: OpKernel) -> Callable[[Step, Sequence[Any]], Sequence[Any]]:
    """`function_of_step` of a kernel some of whose inputs come as references.

    An input that the op takes by value is the very array that is referred to, as in TensorFlow:
    where the order matters, control edges say it. The function raises FailedPreconditionError for a
    reference that was assigned nothing yet, unless the op allows that.
    """
    run = function_of_step(kernel)
    allows_uninitialized = kernel.properties.op_def.allows_uninitialized_input

    def run_on_references(step: Step, inputs: Sequence[Any]) -> Sequence[Any]:
        values = list(inputs)
        for index, given in enumerate(values):
            if isinstance(given, TensorRef):
                tensor = _tensor(given)
                if tensor is None and not allows_uninitialized:
                    raise _uninitialized(kernel.requested_input(index))
                if not kernel.input_types[index].is_ref:
                    values[index] = tensor
        return run(step, values)

    return run_on_references


def fetched_value(given: Any, name: str) -> Any:
    """The value of a fetched tensor of a reference type; a copy, which later steps do not change."""
    if not isinstance(given, TensorRef):  # it was fed
        return given
    with given.mutex:
        if given.tensor is None:
            raise _uninitialized(name)
        return np.copy(given.tensor)


def _tensor(ref: TensorRef) -> Any:
    with ref.mutex:
        return ref.tensor


def _uninitialized(name: str) -> FailedPreconditionError:
    return FailedPreconditionError(f"Attempting to use uninitialized value {name}")
