"""`create_op_kernel`: from a node to the kernel that computes it.

Find the node's form (validity, reference kernel, types, memory types), ask the providers, construct.
Source: CreateOpKernel in TensorFlow core/framework/op_kernel.cc.
"""

import os
from collections.abc import Callable, Hashable, Sequence
from typing import Any

import numpy as np

from opkernel.device.budget import current_budget
from opkernel.device.device import Device
from opkernel.errors import InternalError, as_op_error
from opkernel.kernel.context.construction import OpKernelConstruction
from opkernel.kernel.function_kernel import FunctionKernelFactory
from opkernel.kernel.op_kernel import NodeProperties, OpKernel
from opkernel.kernel.registry.kernel_registry import (
    KernelRegistration,
    KernelRegistry,
    global_kernel_registry,
)
from opkernel.kernel.registry.node_form import NodeForm, form_of_node
from opkernel.kernel.registry.provider import REFERENCE, KernelProvider, default_providers
from opkernel.opdef import (
    GRAPH_DEF_VERSION,
    OpRegistry,
    UnregisteredOpError,
    check_op_deprecation,
    global_op_registry,
)
from opkernel.proto import NodeDef
from opkernel.types import PartialTensorShape

__all__ = ["create_op_kernel"]

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
    try:
        form = form_of_node(ops, device.device_type, node_def, kernels, signature)
    except UnregisteredOpError as error:
        from opkernel.opdef import format_node_def_for_error  # for errors alone

        error.add_context(f"In {format_node_def_for_error(node_def)}")
        raise
    properties = NodeProperties(
        form.op_def,
        node_def,
        form.input_types,
        form.output_types,
        form.input_args,
        form.output_args,
    )
    provider, registration = REFERENCE, form.registration
    if (
        registry is None and device.array_namespace is np and not registration.kernel_def.priority
    ):  # a preferred kernel stays
        asked = default_providers() if providers is None else providers
        provider, registration = _provided(form, asked, device.device_type, properties, shapes)
    construction = OpKernelConstruction(
        device,
        properties,
        form.input_memory_types,
        form.output_memory_types,
        graph_def_version,
        function_library,
        form.attrs,
        registration.contract,
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
    kernel.provider = provider
    if _CHECKS_CONTRACTS:
        from opkernel.kernel.verification import verified  # only for tests of claims

        kernel = verified(kernel, ops.look_up(node_def.op))
    elif not kernel.contract.outputs_as_declared:
        from opkernel.kernel.checked_kernels import checked  # the catalogue's kernels claim it

        kernel = checked(kernel, ops.look_up(node_def.op))
    budget = current_budget()
    if budget is not None:
        budget.check_time("making the kernel of", node_def.name)
    if budget is not None and budget.memory_limit_bytes is not None:
        from opkernel.kernel.bounded import bounded  # where memory is limited

        kernel = bounded(kernel, ops.look_up(node_def.op))
    if device.overrides_compute:
        from opkernel.kernel.device_kernels import computed_by_device  # few devices do

        kernel = computed_by_device(kernel)
    return kernel


def _provided(
    form: NodeForm,
    providers: Sequence[KernelProvider],
    device_type: str,
    node: NodeProperties,
    shapes: Sequence[PartialTensorShape] | None,
) -> tuple[str, KernelRegistration]:
    """The first provider that has a kernel for a node and supports it, and that kernel."""
    for provider in providers:
        if provider.name == REFERENCE:
            break
        if provider.name not in form.provided:
            found = provider.registration(device_type, node.node_def)
            form.provided[provider.name] = found
        registration = form.provided[provider.name]
        if registration is not None:
            if shapes is None:
                shapes = [PartialTensorShape(None)] * len(node.input_types)
            if provider.supports(node, shapes):
                return provider.name, registration
    return REFERENCE, form.registration


def _construct(
    factory: Callable[[OpKernelConstruction], OpKernel], construction: OpKernelConstruction
) -> OpKernel:
    if isinstance(factory, FunctionKernelFactory) and not factory.is_maker:
        return factory(construction)
    with np.errstate(all="ignore"):  # as kernels run: an attr may be NaN or out of range
        return factory(construction)
