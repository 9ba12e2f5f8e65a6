"""Constructing the kernel of a node once its registration is found, and the guards around it."""

import os
from collections.abc import Callable
from typing import Any

import numpy as np

from opkernel.device.budget import Budget
from opkernel.device.device import Device
from opkernel.errors import InternalError, as_op_error
from opkernel.kernel.context.construction import OpKernelConstruction
from opkernel.kernel.contract import KernelContract
from opkernel.kernel.function_kernel import FunctionKernelFactory
from opkernel.kernel.node_properties import NodeProperties
from opkernel.kernel.op_kernel import OpKernel
from opkernel.kernel.registry.node_form import NodeForm
from opkernel.kernel.registry.registration import KernelRegistration
from opkernel.opdef import OpRegistrationData, check_op_deprecation

Guard = Callable[[OpKernel, OpRegistrationData], OpKernel]
"""Makes of a kernel, given its op, the one that takes its place."""

_CHECKS_CONTRACTS = os.environ.get("OPKERNEL_CHECK_CONTRACTS", "0") not in ("", "0")
"""Whether all that kernels claim is verified at every call; told when this is imported."""


def construct(
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


def guards(contract: KernelContract, device: Device, budget: Budget | None) -> list[Guard]:
    """What is put around a kernel of a contract, from the inside to the outside: mostly nothing."""
    found: list[Guard] = []
    if _CHECKS_CONTRACTS:
        from opkernel.kernel.verification import verified  # only for tests of claims

        found.append(verified)
    elif not contract.outputs_as_declared:
        from opkernel.kernel.checked_kernels import checked  # the catalogue's kernels claim it

        found.append(checked)
    if budget is not None and budget.memory_limit_bytes is not None:
        from opkernel.kernel.bounded import bounded  # where memory is limited

        found.append(bounded)
    if device.overrides_compute:
        from opkernel.kernel.device_kernels import computed_by_device  # few devices do

        found.append(lambda kernel, op: computed_by_device(kernel))
    return found
