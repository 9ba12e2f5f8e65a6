"""The tensors that a session keeps between its steps, and the handles that stand for them.

Source: TensorFlow core/common_runtime/session_state.cc, python/ops/session_ops.py.
"""

from __future__ import annotations

import contextlib
import itertools
import threading
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from opkernel.errors import InvalidArgumentError, OpError
from opkernel.types import DataType

if TYPE_CHECKING:
    from opkernel.kernel import SessionState, TensorAndKey


class LocalSessionState:
    """Tensors by handle (fulfils `opkernel.kernel.SessionState`)."""

    def __init__(self) -> None:
        self._lock = threading.RLock()  # a collection may end a TensorHandle, which deletes
        self._tensors: dict[str, Any] = {}
        self._ids = itertools.count()

    def __len__(self) -> int:
        """How many tensors are kept."""
        return len(self._tensors)

    def get_tensor(self, handle: str) -> Any:
        """The tensor of a handle.

        Raises:
            InvalidArgumentError: there is none.
        """
        with self._lock:
            if handle not in self._tensors:
                raise InvalidArgumentError(
                    f"The tensor with handle '{handle}' is not in the session store."
                )
            return self._tensors[handle]

    def add_tensor(self, handle: str, tensor: Any) -> None:
        """Keep a tensor.

        Raises:
            InvalidArgumentError: the handle is taken.
        """
        with self._lock:
            if handle in self._tensors:
                raise InvalidArgumentError(
                    f"Failed to add a tensor with handle '{handle}' to the session store."
                )
            self._tensors[handle] = tensor

    def delete_tensor(self, handle: str) -> None:
        """Forget the tensor of a handle.

        Raises:
            InvalidArgumentError: there is none.
        """
        with self._lock:
            if handle not in self._tensors:
                raise InvalidArgumentError(
                    f"Failed to delete a tensor with handle '{handle}' in the session store."
                )
            del self._tensors[handle]

    def get_new_id(self) -> int:
        """A number that was not given yet."""
        return next(self._ids)

    def clear(self) -> None:
        """Forget all tensors."""
        with self._lock:
            self._tensors.clear()


class LocalTensorStore:
    """The tensors that one step wants kept (fulfils `opkernel.kernel.TensorStore`)."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._tensors: dict[str, TensorAndKey] = {}

    def add_tensor(self, name: str, tensor_and_key: TensorAndKey) -> None:
        """Note what a node wants kept.

        Raises:
            InvalidArgumentError: the node has noted a tensor already.
        """
        with self._lock:
            if self._tensors.setdefault(name, tensor_and_key) is not tensor_and_key:
                raise InvalidArgumentError(
                    f"Failed to add a tensor with name '{name}' to the tensor store."
                )

    def save_tensors(self, names: Iterable[str], state: SessionState) -> None:
        """Have a session keep the tensors whose nodes' handles were fetched."""
        for name in names:
            found = self._tensors.get(name)
            if found is not None:
                state.add_tensor(found.get_handle(name), found.tensor)


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
