"""OpSegment: the kernels with state that the graphs of a session share.

Source: TensorFlow core/framework/op_segment.{h,cc}.
"""

import threading
from collections.abc import Callable
from dataclasses import dataclass, field

from opkernel.errors import NotFoundError
from opkernel.graph import FunctionLibraryDefinition, Operation
from opkernel.graph.core.control_flow_ops import TRANSFER_OPS
from opkernel.kernel import OpKernel
from opkernel.runtime.program.kernels import is_kernel_of
from opkernel.state.keyed_lock import KeyedLock


@dataclass(slots=True)
class _Session:
    """The kernels of a session by node, and how many holds keep them."""

    num_holds: int = 0
    kernels: dict[str, OpKernel] = field(default_factory=dict)


class OpSegment:
    """Keeps kernels by session and node while somebody holds the session; used from any thread."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._sessions: dict[str, _Session] = {}
        self._creating = KeyedLock()

    def add_hold(self, session_handle: str) -> None:
        """Keep the kernels of a session until the matching `remove_hold`."""
        with self._lock:
            self._sessions.setdefault(session_handle, _Session()).num_holds += 1

    def remove_hold(self, session_handle: str) -> None:
        """Take back a hold; with the last one the kernels go. No hold, nothing to do."""
        dropped = None
        with self._lock:
            session = self._sessions.get(session_handle)
            if session is not None:
                session.num_holds -= 1
                if session.num_holds == 0:
                    dropped = self._sessions.pop(session_handle)
        del dropped  # kernels end outside of the lock

    def find_or_create(
        self, session_handle: str, node_name: str, create_fn: Callable[[], OpKernel]
    ) -> OpKernel:
        """The kernel of a node in a session, made by `create_fn` if there is none.

        Of several threads that ask for a kernel one makes it, and the others wait.

        Raises:
            NotFoundError: nobody holds the session.
            Exception: what `create_fn` raises; nothing is kept then.
        """
        kernel = self._find(session_handle, node_name)
        if kernel is not None:
            return kernel
        with self._creating.hold((session_handle, node_name)):
            kernel = self._find(session_handle, node_name)
            if kernel is None:
                kernel = create_fn()
                with self._lock:
                    self._session(session_handle).kernels[node_name] = kernel
            return kernel

    def _find(self, session_handle: str, node_name: str) -> OpKernel | None:
        with self._lock:
            return self._session(session_handle).kernels.get(node_name)

    def _session(self, session_handle: str) -> _Session:
        session = self._sessions.get(session_handle)
        if session is None:
            raise NotFoundError(f"Session {session_handle} is not found.")
        return session


class SessionSegment:
    """The part of an OpSegment that belongs to a session, which it holds until it is closed.

    Args:
        segment: The segment.
        session_handle: The name of the session.
    """

    def __init__(self, segment: OpSegment, session_handle: str) -> None:
        self._segment = segment
        self._handle = session_handle
        segment.add_hold(session_handle)

    def kernel_of(self, op: Operation, create_fn: Callable[[], OpKernel]) -> OpKernel:
        """The kernel of a node: that of the session where it has state, else a new one.

        A node gets its own kernel where the session's was made for another node of its name. So do sends
        and receives: each partition of a graph has its own.
        """
        is_shared = op.type not in TRANSFER_OPS
        if not is_shared or not should_own_kernel(op.graph.function_library, op.type):
            return create_fn()
        kernel = self._segment.find_or_create(self._handle, op.name, create_fn)
        return kernel if is_kernel_of(op, kernel) else create_fn()

    def close(self) -> None:
        """Give up the hold."""
        self._segment.remove_hold(self._handle)


def should_own_kernel(library: FunctionLibraryDefinition, node_op: str) -> bool:
    """Whether kernels of an op belong in an OpSegment: the op is stateful, and no function."""
    if node_op in library:
        return False
    try:
        return library.look_up(node_op).op_def.is_stateful
    except NotFoundError:
        return False
