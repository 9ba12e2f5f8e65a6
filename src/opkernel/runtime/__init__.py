"""Execution: from a graph to numbers."""

from opkernel.runtime.device import CPU, LocalDevice
from opkernel.runtime.eager import execute
from opkernel.runtime.memory_types import (
    ensure_memory_types,
    memory_type_for_output,
    validate_memory_types,
)
from opkernel.runtime.op_segment import OpSegment, should_own_kernel
from opkernel.runtime.plan import CompiledPlan
from opkernel.runtime.session import RunOptions, Session
from opkernel.runtime.watchdog import BlockedKernel, BlockedKernelWatchdog

__all__ = [
    "CPU",
    "BlockedKernel",
    "BlockedKernelWatchdog",
    "CompiledPlan",
    "LocalDevice",
    "OpSegment",
    "RunOptions",
    "Session",
    "ensure_memory_types",
    "execute",
    "memory_type_for_output",
    "should_own_kernel",
    "validate_memory_types",
]
