"""Step: the state and services that all kernels of one execution of a graph share.

Source: OpKernelContext::Params in TensorFlow core/framework/op_kernel.h.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from opkernel.device.permissions import NO_PERMISSIONS, Permissions

if TYPE_CHECKING:
    from opkernel.kernel.services.cancellation import CancellationManager
    from opkernel.kernel.services.collective import CollectiveExecutor
    from opkernel.kernel.services.deferred_ops import DeferredOps
    from opkernel.kernel.services.graph_collector import GraphCollector
    from opkernel.kernel.services.rendezvous import Rendezvous
    from opkernel.state.resource_mgr import ResourceMgr, ScopedStepContainer


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
