"""Services for a computation: its step, its device, its records of memory.

Source: TensorFlow core/framework/op_kernel.h.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from opkernel.device.allocator_attributes import AllocatorAttributes
from opkernel.device.device import Device
from opkernel.device.origins import permissions_of
from opkernel.device.permissions import Permissions
from opkernel.errors import FailedPreconditionError, InternalError
from opkernel.kernel.context.params import ContextParams, FrameAndIter
from opkernel.kernel.kernel_facts import KernelFacts
from opkernel.kernel.registry.memory_types import MemoryType
from opkernel.kernel.services.step import Step

if TYPE_CHECKING:
    from opkernel.device.allocator import Allocator
    from opkernel.device.tracking_allocator import TrackingAllocator
    from opkernel.kernel.context.memory_record import MemoryRecord
    from opkernel.kernel.services.cancellation import CancellationManager
    from opkernel.kernel.services.graph_collector import GraphCollector
    from opkernel.kernel.services.rendezvous import Rendezvous
    from opkernel.state.resource_mgr import ResourceMgr, ScopedStepContainer

__all__ = ["ContextServices"]


class ContextServices:
    """Passes on the services of the step, the device and the executor; None for a missing service."""

    __slots__ = ()
    kernel: KernelFacts
    inputs: Sequence[Any]
    step: Step
    params: ContextParams
    memory: MemoryRecord | None

    # The step

    @property
    def step_id(self) -> int:
        """A number that no other step of the process has."""
        return self.step.step_id

    @property
    def start_time_usecs(self) -> int:
        """When the step began, in microseconds since the epoch."""
        return self.step.start_time_usecs

    @property
    def deadline(self) -> float | None:
        """The time by which the step must end, by `time.monotonic()`; None for none."""
        return self.step.deadline

    @property
    def session_handle(self) -> str:
        """The name of the session; empty outside of a session."""
        return self.step.session_handle

    @property
    def session_metadata(self) -> Any:
        """The owner's data about the session."""
        return self.step.session_metadata

    @property
    def session_state(self) -> Any:
        """Tensors that outlive the step, by handle."""
        return self.step.session_state

    @property
    def permissions(self) -> Permissions:
        """Which files the kernel may read and write, by the origin of its node; it opens them through this."""
        step = self.step
        return permissions_of(self.kernel.node_def, step.program_permissions, step.permissions)

    @property
    def tensor_store(self) -> Any:
        """Tensors that are to outlive the step, by name."""
        return self.step.tensor_store

    @property
    def step_container(self) -> ScopedStepContainer | None:
        """Resources of this step alone, gone at its end."""
        return self.step.step_container

    @property
    def resource_manager(self) -> ResourceMgr | None:
        """The resources that steps share."""
        return self.step.resource_manager or self.device.resource_manager

    @property
    def rendezvous(self) -> Rendezvous | None:
        """Where `_Send` and `_Recv` meet."""
        return self.step.rendezvous

    @property
    def collective_executor(self) -> Any:
        """Runs collective ops together with other devices."""
        return self.step.collective_executor

    @property
    def cancellation_manager(self) -> CancellationManager | None:
        """Tells kernels that wait that the step was cancelled."""
        return self.step.cancellation_manager

    @property
    def function_library(self) -> Any:
        """Instantiates and runs functions."""
        return self.step.function_library

    @property
    def runner(self) -> Callable[[Callable[[], None]], None] | None:
        """Runs a closure on a thread of the step's pool."""
        return self.step.runner

    @property
    def call_frame(self) -> Any:
        """Arguments and results of the function that is running.

        Raises:
            InternalError: the kernel claims that it asks for nothing of its call.
        """
        self._check_asks_for_call("call_frame")
        return self.step.call_frame

    @property
    def stats_collector(self) -> Any:
        """Takes the statistics of nodes."""
        return self.step.stats_collector

    @property
    def graph_collector(self) -> GraphCollector | None:
        """Takes the graphs that are made of functions that kernels instantiate, where that is asked for."""
        return self.step.graph_collector

    @property
    def run_all_kernels_inline(self) -> bool:
        """Whether kernels of called functions run on the thread that calls."""
        return self.step.run_all_kernels_inline

    @property
    def executor_type(self) -> str:
        """The registered name of the executor; empty for the default one. Raises as `call_frame` does."""
        self._check_asks_for_call("executor_type")
        return self.step.executor_type

    def _check_asks_for_call(self, what: str) -> None:
        if self.kernel.contract.ignores_call:
            raise InternalError(f"the kernel asks for the {what}, though it claims ignores_call")

    @property
    def slice_reader_cache(self) -> Any:
        """Open readers of checkpoints."""
        return self.step.slice_reader_cache

    @property
    def coordination_service_agent(self) -> Any:
        """The agent of the coordination service."""
        return self.step.coordination_service_agent

    # The place in the graph

    @property
    def frame_iter(self) -> FrameAndIter:
        """Where in the graph's loops the computation stands."""
        return self.params.frame_iter

    @property
    def is_input_dead(self) -> bool:
        """Whether an input is dead; only ops of control flow are run then."""
        return self.params.is_input_dead

    @property
    def stack_trace(self) -> Any:
        """Where the node was defined, or an eager call was made; None if it is not known."""
        if self.params.stack_trace is not None:
            return self.params.stack_trace
        find = self.kernel.node_traceback
        return self.step.stack_trace if find is None else find()

    # The device

    @property
    def device(self) -> Device:
        """The device that the kernel runs on."""
        return self.kernel.device

    @property
    def op_device_context(self) -> Any:
        """The device's data for running the kernel, as the executor or the device says it."""
        own = self.params.op_device_context
        return self.device.try_get_device_context() if own is None else own

    def input_device_context(self, index: int) -> Any:
        """The device context with which the kernel that gave an input was run."""
        given = self.params.input_device_contexts
        return self.op_device_context if given is None else given[index]

    @property
    def env(self) -> Any:
        """The clock and the files that kernels may use."""
        return self.device.env

    @property
    def intra_op_pool(self) -> Any:
        """The threads that a kernel may spread its work over: a `concurrent.futures.Executor`."""
        return self.device.intra_op_pool

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
        """Where an input was allocated."""
        attrs = self.params.input_alloc_attrs
        return AllocatorAttributes() if attrs is None else attrs[index]

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

    @property
    def track_allocations(self) -> bool:
        """Whether what the kernel allocates is followed."""
        return self.step.track_allocations

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

    def persistent_alloc_ids(self) -> list[int]:
        """The numbers that persistent memory was recorded with."""
        return [] if self.memory is None else self.memory.persistent_alloc_ids

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
