"""What tests of kernels share: a kernel of an op that is declared for one test."""

from typing import Any

from opkernel.kernel import KernelRegistry, OpKernel, create_op_kernel, register_kernel
from opkernel.opdef import OpRegistry, add_defaults_to_node_def, register_op, unknown_shape
from opkernel.proto import NodeDef
from opkernel.runtime import CPU


def make_kernel(kernel: Any, **declaration: Any) -> OpKernel:
    """The kernel of a node 'n' of an op 'Test' that is declared so."""
    ops, kernels = OpRegistry(), KernelRegistry()
    handle = register_op("Test", shape_fn=unknown_shape, registry=ops, **declaration)
    register_kernel(handle, device="CPU", registry=kernels, op_registry=ops)(kernel)
    inputs = sum(1 for _ in handle.op_def.input_arg)
    node = NodeDef(name="n", op="Test", input=[f"in{i}" for i in range(inputs)])
    add_defaults_to_node_def(node, handle.op_def)
    return create_op_kernel(CPU, node, op_registry=ops, registry=kernels)
