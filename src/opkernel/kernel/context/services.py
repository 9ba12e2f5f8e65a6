"""Services for a computation: its step, its device, its records of memory.

Source: TensorFlow core/framework/op_kernel.h.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from opkernel.device.local_device import AllocatorAttributes, Device
from opkernel.device.permissions import Permissions, permissions_of
from opkernel.errors import FailedPreconditionError, InternalError
from opkernel.kernel.context.construction import KernelFacts
from opkernel.kernel.context.inputs import ContextParams, FrameAndIter
from opkernel.kernel.node_properties import MemoryType, delegated_to
from opkernel.kernel.services.step import Step

if TYPE_CHECKING:
    from opkernel.device.allocator import Allocator, TrackingAllocator
    from opkernel.kernel.context.memory_record import MemoryRecord
    from opkernel.kernel.services.cancellation import CancellationManager
    from opkernel.kernel.services.rendezvous import Rendezvous
    from opkernel.kernel.services.step import GraphCollector
    from opkernel.state.resource_mgr import ResourceMgr, ScopedStepContainer


_ON_HOST, _ANYWHERE = AllocatorAttributes(on_host=True), AllocatorAttributes()


def alloc_attr_of(memory_type: MemoryType) -> AllocatorAttributes:
    """Where a session allocates a tensor of an argument that is in memory of a type."""
    return _ON_HOST if memory_type is MemoryType.HOST_MEMORY else _ANYWHERE


class ContextServices:
    """Passes on the services of the step, the device and the executor; None for a missing service."""

    __slots__ = ()
    kernel: KernelFacts
    inputs: Sequence[Any]
    step: Step
    params: ContextParams
    memory: MemoryRecord | None

    # The step

    step_id: int = delegated_to("step.step_id")
    """A number that no other step of the process has."""

    start_time_usecs: int = delegated_to("step.start_time_usecs")
    """When the step began, in microseconds since the epoch."""

    deadline: float | None = delegated_to("step.deadline")
    """The time by which the step must end, by `time.monotonic()`; None for none."""

    session_handle: str = delegated_to("step.session_handle")
    """The name of the session; empty outside of a session."""

    session_metadata: Any = delegated_to("step.session_metadata")
    """The owner's data about the session."""

    session_state: Any = delegated_to("step.session_state")
    """Tensors that outlive the step, by handle."""

    @property
    def permissions(self) -> Permissions:
        """Which files the kernel may read and write, by the origin of its node; it opens them through this."""
        step = self.step
        return permissions_of(self.kernel.node_def, step.program_permissions, step.permissions)

    tensor_store: Any = delegated_to("step.tensor_store")
    """Tensors that are to outlive the step, by name."""

    step_container: ScopedStepContainer | None = delegated_to("step.step_container")
    """Resources of this step alone, gone at its end."""

    @property
    def resource_manager(self) -> ResourceMgr | None:
        """The resources that steps share."""
        return self.step.resource_manager or self.device.resource_manager

    rendezvous: Rendezvous | None = delegated_to("step.rendezvous")
    """Where `_Send` and `_Recv` meet."""

    collective_executor: Any = delegated_to("step.collective_executor")
    """Runs collective ops together with other devices."""

    cancellation_manager: CancellationManager | None = delegated_to("step.cancellation_manager")
    """Tells kernels that wait that the step was cancelled."""

    function_library: Any = delegated_to("step.function_library")
    """Instantiates and runs functions."""

    runner: Callable[[Callable[[], None]], None] | None = delegated_to("step.runner")
    """Runs a closure on a thread of the step's pool."""

    @property
    def call_frame(self) -> Any:
        """Arguments and results of the function that is running.

        Raises:
            InternalError: the kernel claims that it asks for nothing of its call.
        """
        self._check_asks_for_call("call_frame")
        return self.step.call_frame

    stats_collector: Any = delegated_to("step.stats_collector")
    """Takes the statistics of nodes."""

    graph_collector: GraphCollector | None = delegated_to("step.graph_collector")
    """Takes the graphs that are made of functions that kernels instantiate, where that is asked for."""

    run_all_kernels_inline: bool = delegated_to("step.run_all_kernels_inline")
    """Whether kernels of called functions run on the thread that calls."""

    @property
    def executor_type(self) -> str:
        """The registered name of the executor; empty for the default one. Raises as `call_frame` does."""
        self._check_asks_for_call("executor_type")
        return self.step.executor_type

    def _check_asks_for_call(self, what: str) -> None:
        if self.kernel.contract.ignores_call:
            raise InternalError(f"the kernel asks for the {what}, though it claims ignores_call")

    slice_reader_cache: Any = delegated_to("step.slice_reader_cache")
    """Open readers of checkpoints."""

    coordination_service_agent: Any = delegated_to("step.coordination_service_agent")
    """The agent of the coordination service."""

    # The place in the graph

    frame_iter: FrameAndIter = delegated_to("params.frame_iter")
    """Where in the graph's loops the computation stands."""

    is_input_dead: bool = delegated_to("params.is_input_dead")
    """Whether an input is dead; only ops of control flow are run then."""

    @property
    def stack_trace(self) -> Any:
        """Where the node was defined, or an eager call was made; None if it is not known."""
        if self.params.stack_trace is not None:
            return self.params.stack_trace
        find = self.kernel.node_traceback
        return self.step.stack_trace if find is None else find()

    # The device

    device: Device = delegated_to("kernel.device")
    """The device that the kernel runs on."""

    @property
    def op_device_context(self) -> Any:
        """The device's data for running the kernel, as the executor or the device says it."""
        own = self.params.op_device_context
        return self.device.try_get_device_context() if own is None else own

    def input_device_context(self, index: int) -> Any:
        """The device context with which the kernel that gave an input was run."""
        given = self.params.input_device_contexts
        return self.op_device_context if given is None else given[index]

    env: Any = delegated_to("device.env")
    """The clock and the files that kernels may use."""

    intra_op_pool: Any = delegated_to("device.intra_op_pool")
    """The threads that a kernel may spread its work over: a `concurrent.futures.Executor`."""

    def get_allocator(self, attr: AllocatorAttributes | None = None) -> Allocator:
        """The allocator of the device for memory of the given kind, or of a field of the step.

        Where the step tracks allocations it is wrapped, once, in a TrackingAllocator.

        Raises:
            InternalError: the step has no field of the `scope_id` that `attr` names.
        """
        if attr is not None and attr.scope_id > 0:
            allocator = self.device.get_scoped_allocator(attr, self.step_id)
        else:
            allocator = self.device.get_allocator(attr or AllocatorAttributes())
        if self.memory is None or not self.track_allocations:
            return allocator
        return self.memory.wrapped(allocator)

    def consume_wrapped_allocators(self) -> list[tuple[Allocator, TrackingAllocator]]:
        """The allocators that `get_allocator` gave, each with its wrapper; then they are forgotten."""
        return [] if self.memory is None else self.memory.consume_wrapped_allocators()

    def allocate_on_host(self, attr: AllocatorAttributes) -> bool:
        """Whether memory of the given kind is memory of the host."""
        return attr.on_host or self.device.device_type == "CPU"

    def input_alloc_attr(self, index: int) -> AllocatorAttributes:
        """Where an input was allocated: on the host, if its argument is in host memory."""
        attrs = self.params.input_alloc_attrs
        return (
            alloc_attr_of(self.kernel.input_memory_types[index]) if attrs is None else attrs[index]
        )

    # Deferred kernels, whose work goes on after `compute` has returned

    def inc_num_deferred_ops_function(self) -> Callable[[], None]:
        """The function to call before deferred work begins; each call pairs with one of the other.

        Raises:
            FailedPreconditionError: the kernel did not say that it is deferred.
        """
        self._check_deferred()
        counter = self.step.deferred_ops
        default = _nothing if counter is None else counter.inc
        return self.params.inc_num_deferred_ops_function or default

    def dec_num_deferred_ops_function(self) -> Callable[[], None]:
        """The function to call when deferred work is done; raises as the other does."""
        self._check_deferred()
        counter = self.step.deferred_ops
        default = _nothing if counter is None else counter.dec
        return self.params.dec_num_deferred_ops_function or default

    def _check_deferred(self) -> None:
        if not self.kernel.is_deferred:
            raise FailedPreconditionError(f"{self.kernel.type_string} is not a deferred kernel")

    # Records of memory, where the step tracks allocations

    track_allocations: bool = delegated_to("step.track_allocations")
    """Whether what the kernel allocates is followed."""

    def record_temp_memory_allocation(self, size: int, tensor: np.ndarray[Any, Any]) -> None:
        """Record temporary memory that the kernel did not get from `allocate_temp`."""
        if self.memory is not None:
            self.memory.record_temp(tensor, size)

    def record_persistent_memory_allocation(
        self, size: int, alloc_id: int = -1, memory_type: MemoryType = MemoryType.DEVICE_MEMORY
    ) -> None:
        """Record memory that the kernel keeps; a negative size says that it was given back."""
        if self.memory is not None:
            self.memory.record_persistent(size, alloc_id, memory_type)

    def temp_memory_allocated(self) -> int:
        """The recorded bytes of temporary memory."""
        return 0 if self.memory is None else self.memory.temp_memory_allocated

    def persistent_memory_allocated(self, memory_type: MemoryType | None = None) -> int:
        """The recorded bytes of persistent memory: of host memory, of the device's, or of both."""
        return 0 if self.memory is None else self.memory.persistent_memory_allocated(memory_type)

    def persistent_alloc_ids(self, memory_type: MemoryType | None = None) -> list[int]:
        """The numbers that persistent memory was recorded with: of host memory, of the device's, or of both."""
        return [] if self.memory is None else self.memory.persistent_alloc_ids(memory_type)

    def record_tensor_reference(self, tensor: Any) -> None:
        """Have a tensor kept, where memory is recorded, until work on it is over."""
        if self.memory is not None:
            self.memory.references.append(tensor)

    def retrieve_accessed_tensors(self) -> list[Any]:
        """The inputs, and the tensors allocated or recorded. The records are then forgotten."""
        if self.memory is None:
            return []
        references, self.memory.references = self.memory.references, []
        return [*(value for value in self.inputs if value is not None), *references]

    def clear_recorded_memory(self) -> None:
        """Forget the sizes that were recorded."""
        if self.memory is not None:
            self.memory.clear()


def _nothing() -> None:
    """A callback that does nothing, for steps that count nothing."""
