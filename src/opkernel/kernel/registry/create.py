"""`create_op_kernel`: from a node to the kernel that computes it.

Find the node's form (validity, reference kernel, types, memory types), ask the providers, construct, put
guards around the kernel. A node goes through these in one direction.
Source: CreateOpKernel in TensorFlow core/framework/op_kernel.cc.
"""

from collections.abc import Hashable, Sequence
from typing import Any

import numpy as np

from opkernel.device.budget import current_budget
from opkernel.device.device import Device
from opkernel.kernel.node_properties import NodeProperties
from opkernel.kernel.op_kernel import OpKernel
from opkernel.kernel.registry.construct import construct, guards
from opkernel.kernel.registry.kernel_registry import KernelRegistry, global_kernel_registry
from opkernel.kernel.registry.node_form import form_of_node
from opkernel.kernel.registry.provider import REFERENCE, KernelProvider, choose_kernel
from opkernel.opdef import GRAPH_DEF_VERSION, OpRegistry, global_op_registry
from opkernel.proto import NodeDef
from opkernel.types import PartialTensorShape


def create_op_kernel(
    device: Device,
    node_def: NodeDef,
    *,
    op_registry: OpRegistry | None = None,
    registry: KernelRegistry | None = None,
    graph_def_version: int = GRAPH_DEF_VERSION,
    function_library: Any = None,
    signature: Hashable | None = None,
    providers: Sequence[KernelProvider] | None = None,
    shapes: Sequence[PartialTensorShape] | None = None,
) -> OpKernel:
    """Construct the kernel of a node on a device.

    The node must have a value for every attr of its op (`add_defaults_to_node_def`). Where there is
    a `signature`, nodes that have the same one differ in nothing but names and the values of tensors.
    Where the budget of the thread limits memory, the kernel keeps to the budget of the thread that runs it.

    Args:
        device: The device.
        node_def: The node.
        op_registry: The ops; those of the process if None.
        registry: The reference kernels; if None, the kernels of the process and of its providers.
        graph_def_version: The version of GraphDef whose rules count.
        function_library: The library for kernels that call functions.
        signature: The form of the node, as far as its graph knows it.
        providers: The providers to ask, in turn (`choose_providers`); `default_providers` if None.
        shapes: The shapes of the inputs, as far as known.

    Raises:
        NotFoundError: the op is not registered, or has no kernel for this device and these attrs.
        InvalidArgumentError: the node does not fit its op, or two kernels fit it equally well.
        UnimplementedError: graphs of this version may no longer use the op.
        OpError: the error of the kernel's constructor (other exceptions become one), with the
            node's name.
    """
    ops = global_op_registry() if op_registry is None else op_registry
    kernels = global_kernel_registry() if registry is None else registry
    form = form_of_node(ops, device.device_type, node_def, kernels, signature)
    node = NodeProperties(form.op_def, node_def, *form.types_and_args)
    provider, registration = REFERENCE, form.registration
    if registry is None and device.array_namespace is np:
        provider, registration = choose_kernel(form, node, device.device_type, providers, shapes)
    kernel = construct(registration, device, node, form, graph_def_version, function_library)
    kernel.provider = provider
    budget = current_budget()
    if budget is not None:
        budget.check_time("making the kernel of", node_def.name)
    for guard in guards(kernel.contract, device, budget):
        kernel = guard(kernel, ops.look_up(node_def.op))
    return kernel
