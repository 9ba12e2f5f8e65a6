"""Execution: from a graph to numbers."""

from opkernel.runtime.dataflow import DataflowExecutor
from opkernel.runtime.device import CPU, LocalDevice
from opkernel.runtime.eager import execute
from opkernel.runtime.executors import (
    Executor,
    ExecutorArgs,
    ExecutorFactory,
    register_executor,
    registered_executors,
)
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
    "DataflowExecutor",
    "Executor",
    "ExecutorArgs",
    "ExecutorFactory",
    "LocalDevice",
    "OpSegment",
    "RunOptions",
    "Session",
    "ensure_memory_types",
    "execute",
    "memory_type_for_output",
    "register_executor",
    "registered_executors",
    "should_own_kernel",
    "validate_memory_types",
]
