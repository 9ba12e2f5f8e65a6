"""TensorHandle: a tensor that a session keeps between steps.

Source: TensorFlow python/ops/session_ops.py.
"""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Any

from opkernel.errors import OpError
from opkernel.types import DataType

if TYPE_CHECKING:
    from opkernel.runtime.step.session_state import LocalSessionState

SESSION_HANDLE_OPS = frozenset({"GetSessionHandle", "GetSessionHandleV2"})
"""The ops whose fetched outputs are handles."""


class TensorHandle:
    """Stands for a tensor that a session keeps; fetching an op `GetSessionHandle` gives one.

        handle = session.run(get_session_handle)
        session.run("y:0", {"x:0": handle})

    A handle that is fed stands for the value, which is not copied. The session drops the value when the
    handle is collected.

    Attributes:
        handle: The text that ops know it by, `node;number;device`.
        dtype: The type of the tensor.
    """

    def __init__(self, handle: str, dtype: DataType, state: LocalSessionState) -> None:
        self.handle = handle
        self.dtype = dtype
        self._state = state
        self._is_owner = True

    def __str__(self) -> str:
        return self.handle

    def __repr__(self) -> str:
        return f"<TensorHandle {self.handle!r} {self.dtype.tf_name}>"

    def eval(self) -> Any:
        """The value; the caller's own to write to.

        Raises:
            TypeError: it was deleted.
            InvalidArgumentError: the session keeps it no longer.
        """
        self._check_alive()
        value = self._state.get_tensor(self.handle)
        return value[()] if value.ndim == 0 else value.copy()

    def delete(self) -> None:
        """Have the session drop the value; raises as `eval` does."""
        self._check_alive()
        self._is_owner = False
        self._state.delete_tensor(self.handle)

    def get_raw_handle(self) -> str:
        """The text, which the caller is to delete from the session himself from now on."""
        self._is_owner = False
        return self.handle

    def _check_alive(self) -> None:
        if not self._is_owner:
            raise TypeError(f"Persistent tensor {self.handle} may have already been deleted.")

    def __del__(self) -> None:
        if getattr(self, "_is_owner", False):
            with contextlib.suppress(OpError):  # an op may have deleted it
                self._state.delete_tensor(self.handle)
