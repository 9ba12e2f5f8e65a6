from opkernel.device.allocation import allocate as allocate
from opkernel.device.allocation import allocating_from as allocating_from
from opkernel.device.allocation import allocation_limit as allocation_limit
from opkernel.device.allocation import check_allocation as check_allocation
from opkernel.device.allocation import counted as counted
from opkernel.device.allocation import scratch as scratch
from opkernel.device.allocation import under_budget as under_budget
from opkernel.device.allocator import AllocatedSizes as AllocatedSizes
from opkernel.device.allocator import Allocator as Allocator
from opkernel.device.allocator import AllocatorMemoryType as AllocatorMemoryType
from opkernel.device.allocator import CpuAllocator as CpuAllocator
from opkernel.device.allocator import TrackingAllocator as TrackingAllocator
from opkernel.device.allocator import cpu_allocator as cpu_allocator
from opkernel.device.budget import AllocatorStats as AllocatorStats
from opkernel.device.budget import AllocRecord as AllocRecord
from opkernel.device.intra_op import cut as cut
from opkernel.device.intra_op import intra_op_parallelism as intra_op_parallelism
from opkernel.device.intra_op import intra_op_threads as intra_op_threads
from opkernel.device.intra_op import one_blas_thread as one_blas_thread
from opkernel.device.intra_op import openblas_functions as openblas_functions
from opkernel.device.intra_op import shard as shard
from opkernel.device.local_device import AllocatorAttributes as AllocatorAttributes
from opkernel.device.local_device import Device as Device
from opkernel.device.ownership import forget_recycled as forget_recycled
from opkernel.device.ownership import is_recycled as is_recycled
from opkernel.device.ownership import recycled as recycled
from opkernel.kernel.async_op_kernel import AsyncOpKernel as AsyncOpKernel
from opkernel.kernel.async_op_kernel import CoroutineKernel as CoroutineKernel
from opkernel.kernel.bounded import by_rows as by_rows
from opkernel.kernel.bounded import in_pieces as in_pieces
from opkernel.kernel.context.construction import OpKernelConstruction as OpKernelConstruction
from opkernel.kernel.context.inputs import NEVER_FORWARD as NEVER_FORWARD
from opkernel.kernel.context.inputs import NO_RESERVATION as NO_RESERVATION
from opkernel.kernel.context.inputs import ContextParams as ContextParams
from opkernel.kernel.context.inputs import FrameAndIter as FrameAndIter
from opkernel.kernel.context.inputs import OpInputList as OpInputList
from opkernel.kernel.context.inputs import OpMutableInputList as OpMutableInputList
from opkernel.kernel.context.inputs import TensorRef as TensorRef
from opkernel.kernel.context.memory_record import MemoryRecord as MemoryRecord
from opkernel.kernel.context.memory_record import PersistentTensor as PersistentTensor
from opkernel.kernel.context.op_kernel_context import OpKernelContext as OpKernelContext
from opkernel.kernel.context.outputs import OpOutputList as OpOutputList
from opkernel.kernel.contract import KernelContract as KernelContract
from opkernel.kernel.contract import Kind as Kind
from opkernel.kernel.function_kernel import FunctionKernel as FunctionKernel
from opkernel.kernel.function_kernel import FunctionKernelFactory as FunctionKernelFactory
from opkernel.kernel.function_kernel import forward_input as forward_input
from opkernel.kernel.function_kernel import from_attrs as from_attrs
from opkernel.kernel.node_properties import Arg as Arg
from opkernel.kernel.node_properties import MemoryType as MemoryType
from opkernel.kernel.node_properties import NodeProperties as NodeProperties
from opkernel.kernel.op_kernel import OpKernel as OpKernel
from opkernel.kernel.registry.create import create_op_kernel as create_op_kernel
from opkernel.kernel.registry.kernel_def import KernelDefBuilder as KernelDefBuilder
from opkernel.kernel.registry.kernel_def import Name as Name
from opkernel.kernel.registry.kernel_registry import KernelRegistry as KernelRegistry
from opkernel.kernel.registry.kernel_registry import (
    global_kernel_registry as global_kernel_registry,
)
from opkernel.kernel.registry.lookup import find_kernel_def as find_kernel_def
from opkernel.kernel.registry.lookup import find_kernel_registration as find_kernel_registration
from opkernel.kernel.registry.lookup import get_all_registered_kernels as get_all_registered_kernels
from opkernel.kernel.registry.lookup import (
    get_filtered_registered_kernels as get_filtered_registered_kernels,
)
from opkernel.kernel.registry.lookup import (
    get_registered_kernels_for_op as get_registered_kernels_for_op,
)
from opkernel.kernel.registry.lookup import kernel_def_available as kernel_def_available
from opkernel.kernel.registry.lookup import kernels_registered_for_op as kernels_registered_for_op
from opkernel.kernel.registry.lookup import log_all_registered_kernels as log_all_registered_kernels
from opkernel.kernel.registry.lookup import memory_types_for_node as memory_types_for_node
from opkernel.kernel.registry.lookup import (
    supported_device_types_for_node as supported_device_types_for_node,
)
from opkernel.kernel.registry.provider import REFERENCE as REFERENCE
from opkernel.kernel.registry.provider import KernelProvider as KernelProvider
from opkernel.kernel.registry.provider import choose_providers as choose_providers
from opkernel.kernel.registry.provider import default_providers as default_providers
from opkernel.kernel.registry.provider import register_provider as register_provider
from opkernel.kernel.registry.provider import registered_providers as registered_providers
from opkernel.kernel.registry.provider import unregister_provider as unregister_provider
from opkernel.kernel.registry.register_kernel import OpKernelFactory as OpKernelFactory
from opkernel.kernel.registry.register_kernel import register_kernel as register_kernel
from opkernel.kernel.registry.registration import KernelRegistration as KernelRegistration
from opkernel.kernel.registry.validate_registrations import (
    validate_kernel_registrations as validate_kernel_registrations,
)
from opkernel.kernel.services.cancellation import INVALID_TOKEN as INVALID_TOKEN
from opkernel.kernel.services.cancellation import CancellationManager as CancellationManager
from opkernel.kernel.services.cancellation import CancellationToken as CancellationToken
from opkernel.kernel.services.cancellation import Deadline as Deadline
from opkernel.kernel.services.cancellation import (
    register_cancellation_callback as register_cancellation_callback,
)
from opkernel.kernel.services.collective import CollectiveDone as CollectiveDone
from opkernel.kernel.services.collective import CollectiveExecutor as CollectiveExecutor
from opkernel.kernel.services.collective import CollectiveMember as CollectiveMember
from opkernel.kernel.services.collective import CollectiveParams as CollectiveParams
from opkernel.kernel.services.collective import CollectiveType as CollectiveType
from opkernel.kernel.services.function_library import CallFrame as CallFrame
from opkernel.kernel.services.function_library import FunctionDone as FunctionDone
from opkernel.kernel.services.function_library import FunctionHandle as FunctionHandle
from opkernel.kernel.services.function_library import FunctionRunOptions as FunctionRunOptions
from opkernel.kernel.services.function_library import FunctionRuntime as FunctionRuntime
from opkernel.kernel.services.function_library import InstantiateOptions as InstantiateOptions
from opkernel.kernel.services.local_collective_executor import (
    LocalCollectiveExecutor as LocalCollectiveExecutor,
)
from opkernel.kernel.services.rendezvous import DoneCallback as DoneCallback
from opkernel.kernel.services.rendezvous import LocalRendezvous as LocalRendezvous
from opkernel.kernel.services.rendezvous import ParsedKey as ParsedKey
from opkernel.kernel.services.rendezvous import Rendezvous as Rendezvous
from opkernel.kernel.services.rendezvous import RendezvousArgs as RendezvousArgs
from opkernel.kernel.services.rendezvous import create_key as create_key
from opkernel.kernel.services.rendezvous import parse_key as parse_key
from opkernel.kernel.services.step import TENSOR_HANDLE as TENSOR_HANDLE
from opkernel.kernel.services.step import DeferredOps as DeferredOps
from opkernel.kernel.services.step import GraphCollector as GraphCollector
from opkernel.kernel.services.step import SessionState as SessionState
from opkernel.kernel.services.step import Step as Step
from opkernel.kernel.services.step import TensorAndKey as TensorAndKey
from opkernel.kernel.services.step import TensorStore as TensorStore
from opkernel.state.resource_access import ContainerInfo as ContainerInfo
from opkernel.state.resource_access import ResourceContext as ResourceContext
from opkernel.state.resource_access import create_resource as create_resource
from opkernel.state.resource_access import delete_resource as delete_resource
from opkernel.state.resource_access import lookup_or_create_resource as lookup_or_create_resource
from opkernel.state.resource_access import lookup_resource as lookup_resource
from opkernel.state.resource_access import lookup_resources as lookup_resources
from opkernel.state.resource_access import validate_device as validate_device
from opkernel.state.resource_handle import ANONYMOUS_NAME as ANONYMOUS_NAME
from opkernel.state.resource_handle import RefCounted as RefCounted
from opkernel.state.resource_handle import ResourceBase as ResourceBase
from opkernel.state.resource_handle import TypeIndex as TypeIndex
from opkernel.state.resource_handle import handle_from_input as handle_from_input
from opkernel.state.resource_handle import make_ref_counting_handle as make_ref_counting_handle
from opkernel.state.resource_handle import make_resource_handle as make_resource_handle
from opkernel.state.resource_handle import tensor_of_handle as tensor_of_handle
from opkernel.state.resource_handle import validate_type as validate_type
from opkernel.state.resource_mgr import ResourceMgr as ResourceMgr
from opkernel.state.resource_mgr import ScopedStepContainer as ScopedStepContainer

__all__: list[str]
