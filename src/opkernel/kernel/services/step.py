"""Step: the state and services that all kernels of one execution of a graph share.

The services count work that goes on after `compute` (`DeferredOps`), take the graphs that are made of called functions
(`GraphCollector`), and keep tensors that outlive steps.

Source: OpKernelContext::Params and GraphCollector in TensorFlow core/framework/op_kernel.h; SessionState and TensorStore in
core/framework/session_state.h.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Protocol

from opkernel.device.permissions import NO_PERMISSIONS, Permissions
from opkernel.errors import DeadlineExceededError, InternalError
from opkernel.proto import GraphDef
from opkernel.records import dataclass

if TYPE_CHECKING:
    from opkernel.kernel.services.cancellation import CancellationManager
    from opkernel.kernel.services.collective import CollectiveExecutor
    from opkernel.kernel.services.rendezvous import Rendezvous
    from opkernel.state.resource_mgr import ResourceMgr, ScopedStepContainer


class DeferredOps:
    """The deferred work of one step. Each `inc` pairs with one `dec`, from any thread."""

    def __init__(self) -> None:
        self._running = 0
        self._changed = threading.Condition()

    def inc(self) -> None:
        """Say that work begins."""
        with self._changed:
            self._running += 1

    def dec(self) -> None:
        """Say that work is done.

        Raises:
            InternalError: no work is running.
        """
        with self._changed:
            if self._running == 0:
                raise InternalError("A deferred kernel ended work that had not begun")
            self._running -= 1
            self._changed.notify_all()

    def wait(self, timeout_s: float | None = None) -> None:
        """Wait until no work is running.

        Raises:
            DeadlineExceededError: it was still running after the timeout.
        """
        with self._changed:
            if not self._changed.wait_for(lambda: self._running == 0, timeout_s):
                raise DeadlineExceededError(
                    f"Timed out: the work of {self._running} deferred kernels is not done"
                )


class GraphCollector:
    """The graphs that functions became; filled from any thread.

    A kernel that instantiates functions has its step's collector take theirs, too:

        options = InstantiateOptions(graph_collector=ctx.graph_collector)
        handle = ctx.function_library.instantiate(name, attrs, options)

    Attributes:
        raw_graph: The bodies as written; the bodies of several functions are in one graph.
        optimized_graph: The bodies as passes have left them, likewise.
        partitioned_graphs: The part of them that each device runs.
        dirty: Whether anything was collected since `clear_graphs`.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self.clear_graphs()

    def collect_raw_graph(self, graph_def: GraphDef) -> None:
        """Take a body as it is."""
        with self._lock:
            self.raw_graph.MergeFrom(graph_def)
            self.dirty = True

    def collect_optimized_graph(self, graph_def: GraphDef) -> None:
        """Take a body as passes have left it."""
        with self._lock:
            self.optimized_graph.MergeFrom(graph_def)
            self.dirty = True

    def collect_partitioned_graph(self, graph_def: GraphDef) -> None:
        """Take the graph that one device runs."""
        with self._lock:
            self.partitioned_graphs.append(graph_def)
            self.dirty = True

    def clear_graphs(self) -> None:
        """Forget everything."""
        with self._lock:
            self.raw_graph, self.optimized_graph = GraphDef(), GraphDef()
            self.partitioned_graphs: list[GraphDef] = []
            self.dirty = False


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


class Step:
    """One execution of a graph, as its kernels see it. Executors fill in the services that they have.

    A service that an executor does not offer is None, as in TensorFlow.

    Attributes:
        step_id: A number that no other step of the process has.
        start_time_usecs: When the step began, in microseconds since the epoch.
        deadline: The time by which the step must end, by `time.monotonic()`; None for none.
        session_handle: The name of the session; empty where there is none.
        session_metadata: The metadata that the session's owner has given.
        session_state: Tensors that outlive the step, by handle.
        permissions: Which files nodes without a mark may read and write (`device.origins`).
        program_permissions: Which files the program's own nodes may read and write.
        tensor_store: Tensors that are to outlive the step, by name.
        step_container: Resources of this step alone, gone at its end.
        resource_manager: The resources that steps share; the device's manager if None.
        rendezvous: Where `_Send` and `_Recv` meet.
        collective_executor: Runs collective ops together with other devices.
        cancellation_manager: Tells kernels that wait that the step was cancelled.
        deferred_ops: Counts the work of deferred kernels.
        function_library: Instantiates and runs functions.
        inter_op_pool: The threads that compute its expensive kernels; the calling one does if None.
        runner: Runs a closure on a thread of the step's pool.
        call_frame: Arguments and results of the function that this step runs.
        stats_collector: Takes the statistics of nodes.
        graph_collector: Takes the graphs that are made of functions that kernels instantiate.
        run_all_kernels_inline: Kernels of called functions run on the thread that calls.
        executor_type: The registered name of the executor; empty for the default one.
        stack_trace: Where an op was called eagerly; for kernels whose node is in no graph.
        slice_reader_cache: Open readers of checkpoints.
        coordination_service_agent: The agent of the coordination service.
        track_allocations: Whether contexts record what their kernels allocate.
        log_memory: Whether allocations are logged.
    """

    step_id: int = 0
    start_time_usecs: int = 0
    deadline: float | None = None
    session_handle: str = ""
    session_metadata: Any = None
    session_state: Any = None
    permissions: Permissions = NO_PERMISSIONS
    program_permissions: Permissions = NO_PERMISSIONS
    tensor_store: Any = None
    step_container: ScopedStepContainer | None = None
    resource_manager: ResourceMgr | None = None
    rendezvous: Rendezvous | None = None
    collective_executor: CollectiveExecutor | None = None
    cancellation_manager: CancellationManager | None = None
    deferred_ops: DeferredOps | None = None
    function_library: Any = None
    inter_op_pool: Any = None
    runner: Callable[[Callable[[], None]], None] | None = None
    call_frame: Any = None
    stats_collector: Any = None
    graph_collector: GraphCollector | None = None
    run_all_kernels_inline: bool = False
    executor_type: str = ""
    stack_trace: Any = None
    slice_reader_cache: Any = None
    coordination_service_agent: Any = None
    track_allocations: bool = False
    log_memory: bool = False

    def check(self) -> None:
        """Raise CancelledError or DeadlineExceededError where the step is to stop.

        Loops, and kernels that take long, call it from time to time.
        """

    def detached(self) -> Any:
        """A step with the services of the session, for work that goes on after this step; None where there is none.

        Its `cancel` stops the work; its `end` is to be called when the work is over.
        """
        return None
