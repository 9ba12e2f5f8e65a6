"""References among the tensors of a step: a reader of a value gets the tensor that is referred to.

Source: ExecutorState::PrepareInputs in TensorFlow core/common_runtime/executor.cc.
"""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from opkernel.errors import FailedPreconditionError
from opkernel.graph.core.tensor_name import parse_input
from opkernel.kernel import ContextParams, OpKernel, Step, TensorRef
from opkernel.kernel.context.op_kernel_context import function_of_step


def function_of_references(
    kernel: OpKernel, params: ContextParams
) -> Callable[[Step, Sequence[Any]], Sequence[Any]]:
    """`function_of_step` of a kernel some of whose inputs come as references.

    An input that the op takes by value is the very array that is referred to, as in TensorFlow:
    where the order matters, control edges say it. The function raises FailedPreconditionError for a
    reference that was assigned nothing yet, unless the op allows that.
    """
    run = function_of_step(kernel, params=params)
    return lambda step, inputs: run(step, dereferenced(kernel, inputs))


def runner_of_references(kernel: OpKernel, run: Callable[..., Sequence[Any]]) -> Callable[..., Any]:
    """What runs a kernel under watch, for one some of whose inputs come as references."""
    return lambda step, *inputs: run(step, *dereferenced(kernel, inputs))


def dereferenced(kernel: OpKernel, inputs: Sequence[Any]) -> list[Any]:
    """The inputs of a kernel, with the values of the references that it takes by value.

    Raises:
        FailedPreconditionError: as `function_of_references` says.
    """
    allows_uninitialized = kernel.properties.op_def.allows_uninitialized_input
    values = list(inputs)
    for index, given in enumerate(values):
        if isinstance(given, TensorRef):
            if not (allows_uninitialized or given.is_initialized):
                raise _uninitialized(kernel.requested_input(index))
            if not kernel.input_types[index].is_ref:  # a kernel that writes has the array alone
                values[index] = _tensor(given)
    return values


def fetched_value(given: Any, name: str) -> Any:
    """The value of a fetched tensor of a reference type; a copy, which later steps do not change."""
    if not isinstance(given, TensorRef):  # it was fed
        return given
    with given.mutex:
        if given.tensor is None:
            raise _uninitialized(name)
        return np.copy(given.tensor)


def referred_value(given: Any, name: str) -> Any:
    """The value of a tensor of a reference type, for control flow, which passes it on by value.

    Raises:
        FailedPreconditionError: it was assigned nothing yet.
    """
    if not isinstance(given, TensorRef):  # it was fed
        return given
    tensor = _tensor(given)
    if tensor is None:
        raise _uninitialized(name)
    return tensor


def _tensor(ref: TensorRef) -> Any:
    with ref.mutex:
        return ref.tensor


def _uninitialized(name: str) -> FailedPreconditionError:
    """The error for a tensor, or its node, that refers to nothing yet."""
    node, _ = parse_input(name)
    return FailedPreconditionError(f"Attempting to use uninitialized value {name}", resource=node)
