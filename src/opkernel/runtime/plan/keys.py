"""Keys: tensors as plans know them; which of them somebody takes, and which are references.

A reader of a value gets the tensor that is referred to.

Source: ImmutableExecutorState::Initialize in TensorFlow core/common_runtime/immutable_executor_state.cc,
ExecutorState::PrepareInputs in core/common_runtime/executor.cc.
"""

from collections.abc import Callable, Sequence
from functools import cached_property
from typing import Any

import numpy as np

from opkernel.errors import FailedPreconditionError
from opkernel.graph import Operation, Tensor
from opkernel.graph.core.tensor_name import parse_input
from opkernel.kernel import ContextParams, OpKernel, Step, TensorRef
from opkernel.kernel.context.op_kernel_context import function_of_step

Key = tuple[str, int]
"""A tensor, as the name of its operation and its place among the outputs."""

_ALL_REQUIRED = ContextParams()


def key_of(tensor: Tensor) -> Key:
    """The name of a tensor's operation, and which of its outputs it is."""
    return tensor.op.name, tensor.value_index


def keys_of_inputs(op: Operation) -> list[Key]:
    """The keys of the tensors that an operation takes, which need not be made for it."""
    edges = op.edges
    return [(edges[i].name, edges[i + 1]) for i in range(0, len(edges), 2)]


class RequiredOutputs:
    """What kernels are told of their outputs; looked at once a kernel may ask.

    Args:
        order: The operations that are run.
        feeds: The tensors that are fed: what gives them need not.
        fetches: The tensors that are fetched.
    """

    def __init__(
        self, order: Sequence[Operation], feeds: Sequence[Tensor], fetches: Sequence[Tensor]
    ) -> None:
        self._order, self._feeds, self._fetches = order, feeds, fetches

    @cached_property
    def read(self) -> set[Key]:
        """The tensors that a node or a fetch takes."""
        keys = {key for op in self._order for key in keys_of_inputs(op)}
        return keys.union(map(key_of, self._fetches))

    @cached_property
    def _taken(self) -> set[Key]:
        return self.read.difference(map(key_of, self._feeds))

    def params(self, op: Operation) -> ContextParams:
        """What the context of a node tells beyond its inputs and its step."""
        taken, name = self._taken, op.name
        required = [(name, index) in taken for index in range(len(op.output_types))]
        return _ALL_REQUIRED if all(required) else ContextParams(outputs_required=required)


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
                values[index] = tensor_of(given)
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
    tensor = tensor_of(given)
    if tensor is None:
        raise _uninitialized(name)
    return tensor


def tensor_of(ref: TensorRef) -> Any:
    """The array of a variable, to which nobody writes any more while it is kept."""
    with ref.mutex:  # somebody may be writing to it
        return ref.tensor


def _uninitialized(name: str) -> FailedPreconditionError:
    """The error for a tensor, or its node, that refers to nothing yet."""
    node, _ = parse_input(name)
    return FailedPreconditionError(f"Attempting to use uninitialized value {name}", resource=node)
