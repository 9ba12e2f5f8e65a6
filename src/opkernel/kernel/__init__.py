"""What a kernel is: its registration, its construction, its computation."""

from opkernel.kernel.allocation import (
    allocate,
    allocating_from,
    allocation_limit,
    check_allocation,
)
from opkernel.kernel.allocation_ledger import AllocatorStats, AllocRecord
from opkernel.kernel.allocator import Allocator, AllocatorMemoryType, CpuAllocator, cpu_allocator
from opkernel.kernel.allocator_attributes import AllocatorAttributes
from opkernel.kernel.arg_lists import OpInputList, OpMutableInputList, OpOutputList
from opkernel.kernel.async_op_kernel import AsyncOpKernel, CoroutineKernel
from opkernel.kernel.blas_threads import MATRIX_PRODUCTS, one_blas_thread, openblas_functions
from opkernel.kernel.cancellation import (
    INVALID_TOKEN,
    CancellationManager,
    CancellationToken,
    Deadline,
    register_cancellation_callback,
)
from opkernel.kernel.collective import (
    CollectiveDone,
    CollectiveExecutor,
    CollectiveMember,
    CollectiveParams,
    CollectiveType,
)
from opkernel.kernel.construction import OpKernelConstruction
from opkernel.kernel.container_info import ContainerInfo
from opkernel.kernel.context import OpKernelContext
from opkernel.kernel.context_params import (
    NEVER_FORWARD,
    NO_RESERVATION,
    ContextParams,
    FrameAndIter,
)
from opkernel.kernel.create import create_op_kernel
from opkernel.kernel.deferred_ops import DeferredOps
from opkernel.kernel.device import Device
from opkernel.kernel.function_kernel import (
    FunctionKernel,
    FunctionKernelFactory,
    Kind,
    forward_input,
)
from opkernel.kernel.function_library import (
    CallFrame,
    FunctionDone,
    FunctionRunOptions,
    FunctionRuntime,
    InstantiateOptions,
)
from opkernel.kernel.intra_op import intra_op_parallelism, intra_op_threads, shard
from opkernel.kernel.kernel_def import KernelDefBuilder, Name
from opkernel.kernel.local_collective_executor import LocalCollectiveExecutor
from opkernel.kernel.lookup import (
    find_kernel_def,
    find_kernel_registration,
    get_all_registered_kernels,
    get_filtered_registered_kernels,
    get_registered_kernels_for_op,
    kernel_def_available,
    kernels_registered_for_op,
    log_all_registered_kernels,
    supported_device_types_for_node,
)
from opkernel.kernel.memory_record import MemoryRecord
from opkernel.kernel.memory_types import MemoryType, memory_types_for_node
from opkernel.kernel.op_kernel import Arg, NodeProperties, OpKernel
from opkernel.kernel.recycling import forget_recycled, is_recycled, recycled
from opkernel.kernel.ref_counted import RefCounted
from opkernel.kernel.register_kernel import OpKernelFactory, register_kernel
from opkernel.kernel.registry import KernelRegistration, KernelRegistry, global_kernel_registry
from opkernel.kernel.rendezvous import (
    DoneCallback,
    LocalRendezvous,
    Rendezvous,
    RendezvousArgs,
)
from opkernel.kernel.rendezvous_key import ParsedKey, create_key, parse_key
from opkernel.kernel.resource_access import (
    ResourceContext,
    create_resource,
    delete_resource,
    lookup_or_create_resource,
    lookup_resource,
    lookup_resources,
    validate_device,
)
from opkernel.kernel.resource_base import ResourceBase, TypeIndex
from opkernel.kernel.resource_handle import (
    ANONYMOUS_NAME,
    handle_from_input,
    make_ref_counting_handle,
    make_resource_handle,
    tensor_of_handle,
    validate_type,
)
from opkernel.kernel.resource_mgr import ResourceMgr, ScopedStepContainer
from opkernel.kernel.scratch import scratch
from opkernel.kernel.session_state import (
    TENSOR_HANDLE,
    SessionState,
    TensorAndKey,
    TensorStore,
)
from opkernel.kernel.step import Step
from opkernel.kernel.tensor_ref import TensorRef
from opkernel.kernel.tracking_allocator import AllocatedSizes, TrackingAllocator
from opkernel.kernel.validate_registrations import validate_kernel_registrations

__all__ = [
    "AllocatorStats",
    "AllocRecord",
    "Allocator",
    "AllocatorMemoryType",
    "CpuAllocator",
    "cpu_allocator",
    "INVALID_TOKEN",
    "CancellationManager",
    "CancellationToken",
    "Deadline",
    "register_cancellation_callback",
    "CollectiveDone",
    "CollectiveExecutor",
    "CollectiveMember",
    "CollectiveParams",
    "CollectiveType",
    "LocalCollectiveExecutor",
    "ContainerInfo",
    "RefCounted",
    "DoneCallback",
    "LocalRendezvous",
    "Rendezvous",
    "RendezvousArgs",
    "ParsedKey",
    "create_key",
    "parse_key",
    "ResourceContext",
    "create_resource",
    "delete_resource",
    "lookup_or_create_resource",
    "lookup_resource",
    "lookup_resources",
    "validate_device",
    "ResourceBase",
    "TypeIndex",
    "ANONYMOUS_NAME",
    "handle_from_input",
    "make_ref_counting_handle",
    "make_resource_handle",
    "tensor_of_handle",
    "validate_type",
    "ResourceMgr",
    "ScopedStepContainer",
    "AllocatedSizes",
    "TrackingAllocator",
    "TENSOR_HANDLE",
    "SessionState",
    "TensorAndKey",
    "TensorStore",
    "TensorRef",
    "MATRIX_PRODUCTS",
    "MemoryRecord",
    "FrameAndIter",
    "ContextParams",
    "NO_RESERVATION",
    "NEVER_FORWARD",
    "OpOutputList",
    "OpMutableInputList",
    "OpInputList",
    "AllocatorAttributes",
    "CoroutineKernel",
    "AsyncOpKernel",
    "Arg",
    "DeferredOps",
    "Device",
    "CallFrame",
    "FunctionDone",
    "FunctionKernel",
    "FunctionKernelFactory",
    "FunctionRunOptions",
    "FunctionRuntime",
    "InstantiateOptions",
    "KernelDefBuilder",
    "KernelRegistration",
    "KernelRegistry",
    "Kind",
    "MemoryType",
    "Name",
    "NodeProperties",
    "OpKernel",
    "OpKernelConstruction",
    "OpKernelContext",
    "OpKernelFactory",
    "Step",
    "allocate",
    "allocating_from",
    "allocation_limit",
    "check_allocation",
    "create_op_kernel",
    "find_kernel_def",
    "find_kernel_registration",
    "forget_recycled",
    "forward_input",
    "get_all_registered_kernels",
    "get_filtered_registered_kernels",
    "get_registered_kernels_for_op",
    "global_kernel_registry",
    "intra_op_parallelism",
    "intra_op_threads",
    "is_recycled",
    "kernel_def_available",
    "kernels_registered_for_op",
    "log_all_registered_kernels",
    "memory_types_for_node",
    "one_blas_thread",
    "openblas_functions",
    "recycled",
    "register_kernel",
    "scratch",
    "shard",
    "supported_device_types_for_node",
    "validate_kernel_registrations",
]
