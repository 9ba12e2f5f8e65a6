"""kernel_function: the kernel of an op as a function, for programs that call kernels themselves."""

from collections.abc import Callable, Mapping
from typing import Any

from opkernel.device.local_device import CPU
from opkernel.errors import InvalidArgumentError
from opkernel.kernel import FunctionKernel, create_op_kernel
from opkernel.kernel.context.op_kernel_context import function_of_step
from opkernel.opdef import (
    add_defaults_to_node_def,
    attr_for_op,
    find_attr,
    global_op_registry,
    infer_attr_from_python,
    input_types_for_node,
)
from opkernel.proto import NodeDef, OpDef


def kernel_function(op: str, /, **attrs: Any) -> Callable[..., Any]:
    """The function that computes an op on the CPU, as the plans of sessions call it.

        matmul = kernel_function("MatMul", T=opkernel.float32, transpose_b=True)
        c = matmul(a, b)

    Args:
        op: its name.
        attrs: its attrs, as Python objects or AttrValues.

    Returns:
        A function of the op's inputs, with a list for each list argument. A kernel that has state or looks
        at the step gives a function of the step and of a tuple of all inputs instead, whose result is a
        list of all outputs. A result may be an input, or show its memory.

    Raises:
        NotFoundError: there is no such op, or no kernel for these attrs.
        InvalidArgumentError: the attrs do not fit the op.
    """
    kernel = create_op_kernel(CPU, node_of(global_op_registry().look_up_op_def(op), attrs))
    return kernel.function if isinstance(kernel, FunctionKernel) else function_of_step(kernel)


def node_of(op_def: OpDef, attrs: Mapping[str, Any]) -> NodeDef:
    """A node of an op by itself, for the CPU.

    Raises:
        InvalidArgumentError: the attrs do not fit the op.
    """
    node = NodeDef(name=op_def.name, op=op_def.name, device=CPU.name)
    for name, value in attrs.items():
        declared = find_attr(op_def, name)
        if declared is None and not name.startswith("_"):
            raise InvalidArgumentError(f"{op_def.name} has no attr {name!r}", op=op_def.name)
        found = (
            infer_attr_from_python(value)
            if declared is None
            else attr_for_op(op_def.name, declared, value)
        )
        node.attr[name].CopyFrom(found)
    add_defaults_to_node_def(node, op_def)
    node.input.extend(f"input_{i}" for i in range(len(input_types_for_node(node, op_def))))
    return node
