"""PersistentTensor: memory that a kernel keeps from one computation to the next.

Source: PersistentTensor in TensorFlow 1's core/framework/op_kernel.h.
"""

from __future__ import annotations

from typing import Any, Protocol


class _User(Protocol):
    """A context, or the construction of a kernel."""

    def record_tensor_reference(self, tensor: Any) -> None:
        """Have a tensor kept until work on it is over."""


class PersistentTensor:
    """The result of `allocate_persistent`; the kernel keeps it, and asks for its tensor in each computation.

        self.state = construction.allocate_persistent(float32, [3])
        ...
        state = self.state.access_tensor(ctx)

    A context that records memory notes each access, so that work on an asynchronous device may go on.

    Args:
        tensor: The tensor; none yet if None.
    """

    __slots__ = ("_tensor",)

    def __init__(self, tensor: Any = None) -> None:
        self._tensor = tensor

    def access_tensor(self, ctx: _User) -> Any:
        """The tensor; the context, or construction, that uses it tracks it from now on."""
        ctx.record_tensor_reference(self._tensor)
        return self._tensor

    @property
    def is_initialized(self) -> bool:
        """Whether there is a tensor."""
        return self._tensor is not None

    @property
    def num_elements(self) -> int:
        """The number of its elements; 0 if there is no tensor."""
        return 0 if self._tensor is None else int(self._tensor.size)

    @property
    def allocated_bytes(self) -> int:
        """The bytes that it takes; 0 if there is no tensor."""
        return 0 if self._tensor is None else int(self._tensor.nbytes)
