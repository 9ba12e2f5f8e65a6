"""NodeForm: the common facts of nodes of one op with equal attrs on devices of one type.

Most nodes of a graph are like another one. All that follows from the op, the attrs and the number of
inputs is worked out once: that the node is valid, its kernel's registration, types, arguments and
memory types. Of tensors, only that they are tensors counts.

Forms stand beside the kernels that were found for the op (`Choices`), and are dropped with them.
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any

from opkernel.kernel.op_kernel import Arg, args_of_node
from opkernel.kernel.registry.kernel_registry import KernelRegistration, KernelRegistry
from opkernel.kernel.registry.lookup import find_kernel_registration
from opkernel.kernel.registry.memory_types import MemoryType, memory_types_for_node
from opkernel.opdef import (
    OpRegistry,
    count_data_inputs,
    in_out_types_for_node,
    validate_node_def,
)
from opkernel.proto import AttrValue, NodeDef, OpDef
from opkernel.records import dataclass, field
from opkernel.types import DataType

__all__ = ["NodeForm", "form_of_node"]


@dataclass(frozen=True, slots=True, eq=False)
class NodeForm:
    """The kernel registration of nodes of an op with certain attrs, and the facts that follow.

    Each tensor has a type and a memory type. `attrs` holds the numbers, strings and types that kernels have
    asked for so far. `provided` holds the kernels of the providers asked so far, by provider.
    """

    op_def: OpDef
    registration: KernelRegistration
    input_types: tuple[DataType, ...]
    output_types: tuple[DataType, ...]
    input_args: tuple[Arg, ...]
    output_args: tuple[Arg, ...]
    input_memory_types: tuple[MemoryType, ...]
    output_memory_types: tuple[MemoryType, ...]
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
    op_def = op_registry.look_up_op_def(node_def.op)
    forms = registry.choices(node_def.op).forms
    form = None if signature is None else forms.get((device_type, signature))
    if form is not None and form.op_def is op_def:
        return form
    key = device_type, count_data_inputs(node_def), _attrs_key(node_def)
    form = forms.get(key)
    if form is None or form.op_def is not op_def:
        form = _form(op_registry, op_def, device_type, node_def, registry)
        forms.keep(key, form)
    if signature is not None:
        forms.keep((device_type, signature), form)
    return form


def _attrs_key(node_def: NodeDef) -> Hashable:
    attrs = node_def.attr
    return frozenset([(name, _value_key(attrs[name])) for name in attrs])


def _value_key(value: AttrValue) -> str | bytes:
    return "tensor" if value.HasField("tensor") else value.SerializeToString()


def _form(
    op_registry: OpRegistry,
    op_def: OpDef,
    device_type: str,
    node_def: NodeDef,
    registry: KernelRegistry,
) -> NodeForm:
    validate_node_def(node_def, op_def)
    registration = find_kernel_registration(device_type, node_def, registry=registry)
    inputs, outputs = in_out_types_for_node(node_def, op_def)
    memory_types = memory_types_for_node(op_registry, device_type, node_def, registry=registry)
    return NodeForm(
        op_def,
        registration,
        tuple(inputs),
        tuple(outputs),
        *args_of_node(node_def, op_def),
        tuple(memory_types[0]),
        tuple(memory_types[1]),
    )
