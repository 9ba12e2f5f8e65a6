"""Keys: tensors as plans know them; and which of them somebody takes, for certain feeds and fetches.

Source: ImmutableExecutorState::Initialize in TensorFlow
core/common_runtime/immutable_executor_state.cc.
"""

from collections.abc import Sequence
from functools import cached_property

from opkernel.graph import Operation, Tensor
from opkernel.kernel import ContextParams

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
