"""What a kernel is: its registration, its construction, its computation."""

from opkernel.kernel.allocation import allocate, allocation_limit, check_allocation
from opkernel.kernel.construction import OpKernelConstruction
from opkernel.kernel.context import OpKernelContext
from opkernel.kernel.create import create_op_kernel
from opkernel.kernel.device import Device, Step
from opkernel.kernel.function_kernel import FunctionKernel, Kind, forward_input
from opkernel.kernel.kernel_def import KernelDefBuilder, Name
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
    validate_kernel_registrations,
)
from opkernel.kernel.memory_types import MemoryType, memory_types_for_node
from opkernel.kernel.op_kernel import Arg, NodeProperties, OpKernel
from opkernel.kernel.register_kernel import register_kernel
from opkernel.kernel.registry import KernelRegistration, KernelRegistry, global_kernel_registry

__all__ = [
    "Arg",
    "Device",
    "FunctionKernel",
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
    "Step",
    "allocate",
    "allocation_limit",
    "check_allocation",
    "create_op_kernel",
    "find_kernel_def",
    "find_kernel_registration",
    "forward_input",
    "get_all_registered_kernels",
    "get_filtered_registered_kernels",
    "get_registered_kernels_for_op",
    "global_kernel_registry",
    "kernel_def_available",
    "kernels_registered_for_op",
    "log_all_registered_kernels",
    "memory_types_for_node",
    "register_kernel",
    "supported_device_types_for_node",
    "validate_kernel_registrations",
]
