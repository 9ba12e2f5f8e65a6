"""NodeForm: the common facts of nodes of one op with equal attrs on devices of one type.

Most nodes of a graph are like another one. All that follows from the op, the attrs and the number of
inputs is worked out once: that the node is valid, its kernel's registration, types, arguments and
memory types. Of tensors, only that they are tensors counts.

Forms stand beside the kernels that were found for the op (`Choices`), and are dropped with them.
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any

from opkernel.kernel.node_properties import Arg, NodeProperties, args_in_ranges
from opkernel.kernel.registry.kernel_registry import KernelRegistry
from opkernel.kernel.registry.lookup import kernel_def_if_available, no_kernel_error
from opkernel.kernel.registry.memory_types import MemoryType, MemoryTypes, memory_types
from opkernel.kernel.registry.registration import Found, KernelRegistration
from opkernel.opdef import (
    OpRegistry,
    OpRegistryInterface,
    UnregisteredOpError,
    count_data_inputs,
    in_out_types_for_node,
    name_ranges_for_node,
    validate_node_def,
)
from opkernel.opdef import text as summaries
from opkernel.proto import AttrValue, NodeDef, OpDef
from opkernel.records import dataclass, field
from opkernel.types import DataType


@dataclass(frozen=True, slots=True, eq=False)
class NodeForm:
    """The kernel registration of nodes of an op with certain attrs, and the facts that follow.

    `types_and_args` completes the NodeProperties of such a node. `attrs` holds the numbers, strings and
    types that kernels have asked for so far. `provided` holds the kernels of the providers asked so far, by
    provider.
    """

    op_def: OpDef
    registration: KernelRegistration
    types_and_args: tuple[
        tuple[DataType, ...], tuple[DataType, ...], tuple[Arg, ...], tuple[Arg, ...]
    ]
    memory_types: MemoryTypes
    attrs: dict[str, Any] = field(default_factory=dict)
    provided: dict[str, KernelRegistration | None] = field(default_factory=dict)


def form_of_node(
    op_registry: OpRegistry,
    device_type: str,
    node_def: NodeDef,
    registry: KernelRegistry,
    signature: Hashable | None = None,
) -> NodeForm:
    """The form of a node.

    The node must have a value for every attr of its op (`add_defaults_to_node_def`). Where there is
    a `signature`, nodes that have the same one have the same form.

    Raises:
        NotFoundError: the op is not registered, or has no kernel for this device and these attrs.
        InvalidArgumentError: the node does not fit its op, or two kernels fit it equally well.
    """
    try:
        op_def = op_registry.look_up_op_def(node_def.op)
    except UnregisteredOpError as error:
        error.add_context(f"In {summaries.format_node_def_for_error(node_def)}")
        raise
    choices = registry.choices(node_def.op)
    forms: Found[NodeForm] = choices.forms
    form = None if signature is None else forms.get((device_type, signature))
    if form is not None and form.op_def is op_def:
        return form
    attrs = node_def.attr
    values = frozenset([(name, _value_key(attrs[name])) for name in attrs])
    key = device_type, count_data_inputs(node_def), values
    form = forms.get(key)
    if form is None or form.op_def is not op_def:
        inputs, outputs = validate_node_def(node_def, op_def)
        args = args_in_ranges(op_def, *name_ranges_for_node(node_def, op_def))
        types_and_args = tuple(inputs), tuple(outputs), *args
        registration, mismatches = choices.match(device_type, node_def)
        if registration is None:
            raise no_kernel_error(registry, device_type, node_def, mismatches)
        node = NodeProperties(op_def, node_def, *types_and_args)
        memory = memory_types(node, device_type, registration.kernel_def)
        form = NodeForm(op_def, registration, types_and_args, memory)
        forms.keep(key, form)
    if signature is not None:
        forms.keep((device_type, signature), form)
    return form


def _value_key(value: AttrValue) -> str | bytes:
    return "tensor" if value.HasField("tensor") else value.SerializeToString()


def memory_types_for_node(
    op_registry: OpRegistryInterface,
    device_type: str,
    node_def: NodeDef,
    *,
    registry: KernelRegistry | None = None,
) -> tuple[list[MemoryType], list[MemoryType]]:
    """The memory types of the flat lists of a node's inputs and outputs.

    `memory_types` has the rules. The node need not be valid, nor have a kernel.

    Raises:
        NotFoundError: the op is not registered, or the node lacks an attr.
        InvalidArgumentError: the kernel names HostMemory arguments that the op does not have.
    """
    op_def = op_registry.look_up_op_def(node_def.op)
    node = NodeProperties.of(node_def, op_def, *in_out_types_for_node(node_def, op_def))
    kernel_def = kernel_def_if_available(device_type, node_def, registry=registry)
    inputs, outputs = memory_types(node, device_type, kernel_def)
    return list(inputs), list(outputs)
