from opkernel.xla.compiler import XlaCompiler as XlaCompiler
from opkernel.xla.computation import OutputDescription as OutputDescription
from opkernel.xla.computation import ResourceUpdate as ResourceUpdate
from opkernel.xla.computation import XlaArgument as XlaArgument
from opkernel.xla.computation import XlaCompilationResult as XlaCompilationResult
from opkernel.xla.context import XlaOpKernel as XlaOpKernel
from opkernel.xla.context import XlaOpKernelContext as XlaOpKernelContext
from opkernel.xla.jax_functions import JaxFunction as JaxFunction
from opkernel.xla.jax_functions import jax_function as jax_function
from opkernel.xla.op_registry import AutoclusteringPolicy as AutoclusteringPolicy
from opkernel.xla.op_registry import DeviceRegistration as DeviceRegistration
from opkernel.xla.op_registry import XlaOpRegistry as XlaOpRegistry
from opkernel.xla.op_registry import global_xla_op_registry as global_xla_op_registry
from opkernel.xla.register_kernel import register_xla_kernel as register_xla_kernel
from opkernel.xla.resource import XlaResource as XlaResource

__all__: list[str]
