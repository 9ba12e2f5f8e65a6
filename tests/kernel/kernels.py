"""What tests of kernels share: a kernel of an op that is declared for one test."""

from typing import Any

from opkernel.kernel import (
    KernelContract,
    KernelRegistry,
    OpKernel,
    create_op_kernel,
    register_kernel,
)
from opkernel.opdef import OpRegistry, add_defaults_to_node_def, register_op, unknown_shape
from opkernel.proto import NodeDef
from opkernel.runtime import CPU

UNCLAIMED = KernelContract()


def make_kernel(
    kernel: Any,
    *,
    contract: Any = UNCLAIMED,
    device: Any = CPU,
    pairs: Any = None,
    **declaration: Any,
) -> OpKernel:
    """The kernel of a node 'n' of an op 'Test' that is declared so.

    Args:
        kernel: The kernel.
        contract: The claims of the kernel, a KernelContract.
        device: The device.
        pairs: Further attrs of the node by name, lists of ints.
        declaration: The declaration of the op.
    """
    ops, kernels = OpRegistry(), KernelRegistry()
    declaration = {"shape_fn": unknown_shape, **declaration}
    handle = register_op("Test", registry=ops, **declaration)
    registered: dict[str, Any] = {"registry": kernels, "op_registry": ops, "contract": contract}
    register_kernel(handle, device="CPU", **registered)(kernel)
    inputs = sum(1 for _ in handle.op_def.input_arg)
    node = NodeDef(name="n", op="Test", input=[f"in{i}" for i in range(inputs)])
    add_defaults_to_node_def(node, handle.op_def)
    for attr, values in (pairs or {}).items():
        node.attr[attr].list.i.extend(values)
    return create_op_kernel(device, node, op_registry=ops, registry=kernels)
