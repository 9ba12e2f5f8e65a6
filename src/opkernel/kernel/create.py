"""`create_op_kernel`: from a node to the kernel that computes it.

Look up the op, validate the node, find the registration, resolve types and memory types,
construct. Source: CreateOpKernel in TensorFlow core/framework/op_kernel.cc.
"""

from typing import Any

import numpy as np

from opkernel.errors import InternalError, as_op_error
from opkernel.kernel.construction import OpKernelConstruction
from opkernel.kernel.device import Device
from opkernel.kernel.lookup import find_kernel_registration
from opkernel.kernel.memory_types import memory_types_for_node
from opkernel.kernel.op_kernel import NodeProperties, OpKernel
from opkernel.kernel.registry import KernelRegistry
from opkernel.opdef import (
    GRAPH_DEF_VERSION,
    OpRegistry,
    check_op_deprecation,
    global_op_registry,
    in_out_types_for_node,
    validate_node_def,
)
from opkernel.proto import NodeDef

__all__ = ["create_op_kernel"]


def create_op_kernel(
    device: Device,
    node_def: NodeDef,
    *,
    op_registry: OpRegistry | None = None,
    registry: KernelRegistry | None = None,
    graph_def_version: int = GRAPH_DEF_VERSION,
    function_library: Any = None,
) -> OpKernel:
    """Construct the kernel of a node on a device.

    The node must have a value for every attr of its op (`add_defaults_to_node_def`).

    Raises:
        NotFoundError: the op is not registered, or has no kernel for this device and these attrs.
        InvalidArgumentError: the node does not fit its op, or two kernels fit it equally well.
        UnimplementedError: graphs of this version may no longer use the op.
        OpError: what the kernel's constructor raises (other exceptions become one), with the
            node's name.
    """
    ops = global_op_registry() if op_registry is None else op_registry
    op_def = ops.look_up_op_def(node_def.op)
    validate_node_def(node_def, op_def)
    registration = find_kernel_registration(device.device_type, node_def, registry=registry)
    input_types, output_types = in_out_types_for_node(node_def, op_def)
    input_memory, output_memory = memory_types_for_node(
        ops, device.device_type, node_def, registry=registry
    )
    properties = NodeProperties.of(node_def, op_def, input_types, output_types)
    construction = OpKernelConstruction(
        device, properties, input_memory, output_memory, graph_def_version, function_library
    )
    check_op_deprecation(op_def, graph_def_version)
    try:
        with np.errstate(all="ignore"):  # as kernels run: an attr may be NaN or out of range
            kernel = registration.factory(construction)
        construction.requires_ok(construction.status)
        if getattr(kernel, "properties", None) is None:
            raise InternalError(
                f"{registration.class_name} made {type(kernel).__name__}, and no kernel: does its "
                "__init__ call that of OpKernel?"
            )
    except Exception as error:
        raised = as_op_error(error)
        raised.add_node(node_def.name, node_def.op)
        raise raised from (error.__cause__ if raised is error else error)
    kernel.is_trusted = registration.owner.startswith("opkernel.ops.")
    return kernel
