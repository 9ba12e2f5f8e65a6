"""`create_op_kernel`: from a node to the kernel that computes it.

Find the node's form (validity, registration, types, memory types), construct. Source: CreateOpKernel in TensorFlow core/framework/op_kernel.cc.
"""

from collections.abc import Callable, Hashable
from typing import Any

import numpy as np

from opkernel.errors import InternalError, as_op_error
from opkernel.kernel.construction import OpKernelConstruction
from opkernel.kernel.device import Device
from opkernel.kernel.function_kernel import FunctionKernelFactory
from opkernel.kernel.node_form import form_of_node
from opkernel.kernel.op_kernel import NodeProperties, OpKernel
from opkernel.kernel.registry import KernelRegistry, global_kernel_registry
from opkernel.opdef import (
    GRAPH_DEF_VERSION,
    OpRegistry,
    check_op_deprecation,
    global_op_registry,
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
    signature: Hashable | None = None,
) -> OpKernel:
    """Construct the kernel of a node on a device.

    The node must have a value for every attr of its op (`add_defaults_to_node_def`). Where there is
    a `signature`, nodes that have the same one differ in nothing but names and the values of tensors.

    Raises:
        NotFoundError: the op is not registered, or has no kernel for this device and these attrs.
        InvalidArgumentError: the node does not fit its op, or two kernels fit it equally well.
        UnimplementedError: graphs of this version may no longer use the op.
        OpError: what the kernel's constructor raises (other exceptions become one), with the
            node's name.
    """
    ops = global_op_registry() if op_registry is None else op_registry
    kernels = global_kernel_registry() if registry is None else registry
    form = form_of_node(ops, device.device_type, node_def, kernels, signature)
    registration = form.registration
    construction = OpKernelConstruction(
        device,
        NodeProperties(
            form.op_def,
            node_def,
            form.input_types,
            form.output_types,
            form.input_args,
            form.output_args,
        ),
        form.input_memory_types,
        form.output_memory_types,
        graph_def_version,
        function_library,
        form.attrs,
    )
    check_op_deprecation(form.op_def, graph_def_version)
    try:
        kernel = _construct(registration.factory, construction)
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


def _construct(
    factory: Callable[[OpKernelConstruction], OpKernel], construction: OpKernelConstruction
) -> OpKernel:
    if isinstance(factory, FunctionKernelFactory) and not factory.is_maker:
        return factory(construction)
    with np.errstate(all="ignore"):  # as kernels run: an attr may be NaN or out of range
        return factory(construction)
