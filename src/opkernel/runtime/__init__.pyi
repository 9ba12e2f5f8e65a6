from opkernel.device.local_device import CPU as CPU
from opkernel.device.local_device import DeviceAttributes as DeviceAttributes
from opkernel.device.local_device import LocalDevice as LocalDevice
from opkernel.runtime.calls.constants import evaluate_constant_tensor as evaluate_constant_tensor
from opkernel.runtime.calls.eager import execute as execute
from opkernel.runtime.calls.eager import kernel_function as kernel_function
from opkernel.runtime.calls.function_library_runtime import (
    FunctionLibraryRuntime as FunctionLibraryRuntime,
)
from opkernel.runtime.calls.function_options import canonicalize as canonicalize
from opkernel.runtime.calls.instantiated_function import (
    InstantiatedFunction as InstantiatedFunction,
)
from opkernel.runtime.calls.traced_calls import make_runner as make_runner
from opkernel.runtime.dataflow.run import DataflowExecutor as DataflowExecutor
from opkernel.runtime.placement.memory_types import ensure_memory_types as ensure_memory_types
from opkernel.runtime.placement.memory_types import memory_type_for_output as memory_type_for_output
from opkernel.runtime.placement.memory_types import validate_memory_types as validate_memory_types
from opkernel.runtime.plan.compiled_plan import CompiledPlan as CompiledPlan
from opkernel.runtime.plan.tree import PlanTree as PlanTree
from opkernel.runtime.program.call_frame import FunctionCallFrame as FunctionCallFrame
from opkernel.runtime.program.executors import Executor as Executor
from opkernel.runtime.program.executors import ExecutorFactory as ExecutorFactory
from opkernel.runtime.program.executors import register_executor as register_executor
from opkernel.runtime.program.executors import registered_executors as registered_executors
from opkernel.runtime.program.kernels import OpSegment as OpSegment
from opkernel.runtime.program.kernels import should_own_kernel as should_own_kernel
from opkernel.runtime.program.request import ExecutorArgs as ExecutorArgs
from opkernel.runtime.program.run_step import RunStep as RunStep
from opkernel.runtime.program.session_state import TensorHandle as TensorHandle
from opkernel.runtime.session.convert_to_constants import (
    convert_variables_to_constants as convert_variables_to_constants,
)
from opkernel.runtime.session.direct_session import DirectSession as DirectSession
from opkernel.runtime.session.session import Session as Session
from opkernel.runtime.session.session_config import CallableOptions as CallableOptions
from opkernel.runtime.session.session_config import RunOptions as RunOptions
from opkernel.runtime.session.session_config import SessionConfig as SessionConfig
from opkernel.runtime.session.session_config import SessionMetadata as SessionMetadata
from opkernel.runtime.session.session_config import TraceLevel as TraceLevel
from opkernel.runtime.watch.watchdog import BlockedKernel as BlockedKernel
from opkernel.runtime.watch.watchdog import BlockedKernelWatchdog as BlockedKernelWatchdog

__all__: list[str]
