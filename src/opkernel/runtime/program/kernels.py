"""The kernels of a graph's nodes, or of calls without a graph, made once and kept.

Those with state may be shared by the graphs of a session (`OpSegment`).

Source: TensorFlow core/framework/op_segment.{h,cc}.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Hashable, Sequence
from functools import partial
from typing import Any, overload

from opkernel.device.local_device import CPU
from opkernel.errors import NotFoundError
from opkernel.graph import FunctionLibraryDefinition, Operation
from opkernel.graph.core.structural_ops import TRANSFER_OPS
from opkernel.kernel import (
    Device,
    FunctionKernel,
    KernelProvider,
    OpKernel,
    global_kernel_registry,
)
from opkernel.kernel.registry.create import create_op_kernel
from opkernel.opdef import OpRegistry
from opkernel.proto import NodeDef
from opkernel.records import dataclass, field
from opkernel.state.keyed_lock import KeyedLock
from opkernel.types import PartialTensorShape


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
    return node_op not in library and has_state(library, node_op)


def has_state(library: FunctionLibraryDefinition, name: str, *, if_unknown: bool = False) -> bool:
    """Whether the function, or op, of a name has state."""
    try:
        return library.look_up(name).op_def.is_stateful
    except NotFoundError:
        return if_unknown


_PLACES = ("_scoped_allocator", "_forward_input")
"""The attrs that say in which memory outputs are to be."""

AnyVersion = int | Callable[[], int]
"""A version of GraphDef, or what tells it."""


def version_of(version: AnyVersion) -> int:
    """The version of GraphDef at this moment."""
    return version() if callable(version) else version


class KernelCache:
    """Makes each kernel when it is first asked for, anew where a kernel of its op changed.

    The kernels of a graph are kept by the names of its nodes. The kernels of eager calls (`EagerKernels`)
    are kept by op and attrs.

    The lock is held while a kernel is made, so that there is one for each; it may be taken
    again by the same thread.

    Args:
        graph_def_version: The version of GraphDef whose rules count, or a function that gives it: an
            import may change the version of a graph.
        op_registry: The ops.
        device: Where the nodes run.
        function_library: The library for kernels that call functions.
        providers: The providers that are asked for kernels; `default_providers` if None.
        op_segment: Where kernels with state are kept, for other graphs that have the same nodes.

    Attributes:
        asks_for_call: Whether a kernel among them may ask its context for the call that it is in.
    """

    def __init__(
        self,
        graph_def_version: AnyVersion,
        op_registry: OpRegistry,
        device: Device = CPU,
        function_library: Any = None,
        providers: Sequence[KernelProvider] | None = None,
        op_segment: SessionSegment | None = None,
    ) -> None:
        self._providers = providers
        self._op_segment = op_segment
        self._function_library = function_library
        self._version = graph_def_version
        self._op_registry = op_registry
        self._device = device
        self._elsewhere: dict[Device, KernelCache] = {}
        self._kernels: dict[Hashable, OpKernel] = {}
        self._made_at: dict[Hashable, int] = {}  # versions other than 0
        self._lock = threading.RLock()
        self.asks_for_call = False

    def on(self, device: Device) -> KernelCache:
        """The kernels of nodes that run on another device."""
        if device is self._device:
            return self
        with self._lock:
            if device not in self._elsewhere:
                self._elsewhere[device] = KernelCache(
                    self._version,
                    self._op_registry,
                    device,
                    self._function_library,
                    self._providers,
                    self._op_segment,
                )
            return self._elsewhere[device]

    def share(self, op: Operation, kernel: OpKernel) -> None:
        """Have a node use a kernel that was made for the same node of another graph."""
        self._kernels[op.name] = kernel

    def kernel(self, op: Operation) -> OpKernel:
        """The kernel of a node; the same one for the same node.

        Raises:
            NotFoundError: no kernel is registered for the node.
        """
        version = global_kernel_registry().version_of(op.type)
        kernel = self._kernels.get(op.name)
        if not version and kernel is not None and kernel.properties.node_def is op.slim_node_def:
            return kernel
        # If there is one, a kernel was registered anew, or an attr was set.
        return self._kept(op.name, version, partial(is_kernel_of, op), partial(self._make_for, op))

    def _kept(
        self,
        key: Hashable,
        version: int,
        is_right: Callable[[OpKernel], bool],
        make: Callable[[], OpKernel],
    ) -> OpKernel:
        """The kernel that is kept under a key; made if there is none that is right, of this version."""
        with self._lock:
            kernel = self._kernels.get(key)
            made_at = self._made_at.get(key, 0)
            if kernel is None or made_at != version or not is_right(kernel):
                kernel = self._kernels[key] = make()
                if made_at != version:
                    self._made_at[key] = version
        return kernel

    def _make_for(self, op: Operation) -> OpKernel:
        node_def, registration = op.slim_node_def, op.signature.registration
        is_plain = registration is not None and len(node_def.attr) == len(registration.op_def.attr)
        signature = op.signature if is_plain else None
        make = partial(self._make, node_def, signature, _ShapesOfInputs(op))
        kernel = make() if self._op_segment is None else self._op_segment.kernel_of(op, make)
        if not kernel.contract.ignores_call and not isinstance(kernel, FunctionKernel):
            self.asks_for_call = True
        if not is_plain and any(name in node_def.attr for name in _PLACES):
            from opkernel.kernel.stand_in import with_scoped_outputs

            kernel = with_scoped_outputs(kernel)
        if op.definition_site is not None:
            kernel.node_traceback = lambda: op.traceback
        return kernel

    def _make(
        self,
        node_def: NodeDef,
        signature: Hashable | None = None,
        shapes: Sequence[PartialTensorShape] | None = None,
    ) -> OpKernel:
        """A new kernel."""
        return create_op_kernel(
            self._device,
            node_def,
            op_registry=self._op_registry,
            graph_def_version=version_of(self._version),
            function_library=self._function_library,
            signature=signature,
            providers=self._providers,
            shapes=shapes,
        )


class _ShapesOfInputs(Sequence[PartialTensorShape]):
    """The shapes of a node's inputs, inferred where a provider looks at them."""

    def __init__(self, op: Operation) -> None:
        self._op = op

    def __len__(self) -> int:
        return len(self._op.inputs)

    @overload
    def __getitem__(self, index: int) -> PartialTensorShape: ...

    @overload
    def __getitem__(self, index: slice) -> Sequence[PartialTensorShape]: ...

    def __getitem__(self, index: int | slice) -> Any:
        if isinstance(index, slice):
            return [tensor.shape for tensor in self._op.inputs[index]]
        return self._op.inputs[index].shape


def is_kernel_of(op: Operation, kernel: OpKernel) -> bool:
    """Whether a kernel was made for a node, or for one that differs in nothing but its inputs."""
    made_for, node = kernel.node_def, op.slim_node_def
    return made_for is node or (
        made_for.op == node.op
        and made_for.device == node.device
        and dict(made_for.attr) == dict(node.attr)
    )
