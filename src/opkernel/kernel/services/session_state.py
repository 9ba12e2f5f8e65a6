"""Tensors that outlive steps: the services of a session and a step for ops on session tensors.

Source: SessionState and TensorStore in TensorFlow core/framework/session_state.h.
"""

from typing import Any, Protocol

from opkernel.records import dataclass

TENSOR_HANDLE = "TensorHandle"
"""The container and the type name of resource handles that stand for tensors of a session."""


@dataclass(frozen=True, slots=True)
class TensorAndKey:
    """A tensor that is to outlive its step.

    Attributes:
        tensor: The tensor, which is never written to.
        id: A number that the session gives once.
        device_name: The device that it is on.
    """

    tensor: Any
    id: int
    device_name: str

    def get_handle(self, tensor_name: str) -> str:
        """The handle of the tensor that the node of that name gave: `name;id;device`."""
        return f"{tensor_name};{self.id};{self.device_name}"


class SessionState(Protocol):
    """The tensors that a session keeps between steps, by handle; used from any thread."""

    def get_tensor(self, handle: str) -> Any:
        """The tensor of a handle.

        Raises:
            InvalidArgumentError: the session has none.
        """

    def add_tensor(self, handle: str, tensor: Any) -> None:
        """Keep a tensor.

        Raises:
            InvalidArgumentError: the handle is taken.
        """

    def delete_tensor(self, handle: str) -> None:
        """Forget the tensor of a handle.

        Raises:
            InvalidArgumentError: the session has none.
        """

    def get_new_id(self) -> int:
        """A number that the session has not given yet."""


class TensorStore(Protocol):
    """The tensors that one step leaves to its session, by the name of their node.

    A step that succeeds adds the tensors whose handles were fetched to the session's state.
    """

    def add_tensor(self, name: str, tensor_and_key: TensorAndKey) -> None:
        """Note a tensor.

        Raises:
            InvalidArgumentError: the node has noted one already.
        """
