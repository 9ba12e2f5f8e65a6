"""`create_op_kernel`: from a node to the kernel that computes it.

Find the node's form (validity, reference kernel, types, memory types), ask the providers, construct, put
guards around the kernel. A node goes through these in one direction.
Source: CreateOpKernel in TensorFlow core/framework/op_kernel.cc.
"""

import os
from collections.abc import Callable, Hashable, Sequence
from typing import Any

import numpy as np

from opkernel.device.budget import Budget, current_budget
from opkernel.device.local_device import Device
from opkernel.errors import InternalError, as_op_error
from opkernel.kernel.context.construction import OpKernelConstruction
from opkernel.kernel.contract import KernelContract
from opkernel.kernel.function_kernel import FunctionKernelFactory
from opkernel.kernel.node_properties import NodeProperties
from opkernel.kernel.op_kernel import OpKernel
from opkernel.kernel.registry.kernel_registry import KernelRegistry, global_kernel_registry
from opkernel.kernel.registry.lookup import NodeForm, form_of_node
from opkernel.kernel.registry.provider import REFERENCE, KernelProvider, choose_kernel
from opkernel.kernel.registry.registration import KernelRegistration
from opkernel.opdef import (
    GRAPH_DEF_VERSION,
    OpRegistrationData,
    OpRegistry,
    check_op_deprecation,
    global_op_registry,
)
from opkernel.proto import NodeDef
from opkernel.types import PartialTensorShape

_Guard = Callable[[OpKernel, OpRegistrationData], OpKernel]
"""Makes of a kernel, given its op, the one that takes its place."""

_CHECKS_CONTRACTS = os.environ.get("OPKERNEL_CHECK_CONTRACTS", "0") not in ("", "0")
"""Whether all that kernels claim is verified at every call; told when this is imported."""


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
    kernel = _construct(registration, device, node, form, graph_def_version, function_library)
    kernel.provider = provider
    if any(form.provided.values()):
        kernel.is_chosen_by_node = True
    budget = current_budget()
    if budget is not None:
        budget.check_time("making the kernel of", node_def.name)
    for guard in _guards(kernel.contract, device, budget):
        kernel = guard(kernel, ops.look_up(node_def.op))
    return kernel


def _construct(
    registration: KernelRegistration,
    device: Device,
    node: NodeProperties,
    form: NodeForm,
    graph_def_version: int,
    function_library: Any,
) -> OpKernel:
    """The kernel that a registration makes for a node of a form.

    Raises:
        UnimplementedError: graphs of this version may no longer use the op.
        OpError: the error of the kernel's constructor (other exceptions become one), with the
            node's name.
    """
    construction = OpKernelConstruction(
        device,
        node,
        form.memory_types,
        graph_def_version,
        function_library,
        known_attrs=form.attrs,
        contract=registration.contract,
    )
    check_op_deprecation(form.op_def, graph_def_version)
    factory = registration.factory
    try:
        if isinstance(factory, FunctionKernelFactory):
            keywords = factory.keywords_for(form.op_def)
            values = construction.keyword_values(keywords) if keywords else {}
            kernel = factory.kernel(construction, values)
        else:
            with np.errstate(all="ignore"):  # as kernels run: an attr may be NaN or out of range
                kernel = factory(construction)
        if construction.status is not None:
            raise construction.status
        if getattr(kernel, "properties", None) is None:
            raise InternalError(
                f"{registration.class_name} made {type(kernel).__name__}, and no kernel: does its "
                "__init__ call that of OpKernel?"
            )
    except Exception as error:
        raised = as_op_error(error)
        raised.add_node(node.node_def.name, node.node_def.op)
        raise raised from (error.__cause__ if raised is error else error)
    return kernel


def _guards(contract: KernelContract, device: Device, budget: Budget | None) -> list[_Guard]:
    """What is put around a kernel of a contract, from the inside to the outside: mostly nothing."""
    found: list[_Guard] = []
    if _CHECKS_CONTRACTS:
        from opkernel.kernel.verification import verified  # only for tests of claims

        found.append(verified)
    elif not contract.outputs_as_declared:
        from opkernel.kernel.verification import checked  # the catalogue's kernels claim it

        found.append(checked)
    if budget is not None and budget.memory_limit_bytes is not None:
        from opkernel.kernel.bounded import bounded  # where memory is limited

        found.append(bounded)
    if device.overrides_compute:
        from opkernel.kernel.stand_in import stand_in_for  # few devices do

        found.append(lambda kernel, op: stand_in_for(kernel))
    return found
