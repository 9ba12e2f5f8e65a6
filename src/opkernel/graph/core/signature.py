"""SignatureResolver: checks nodes against their ops, and finds the types of inputs and outputs: a NodeSignature.

Most nodes of a graph have the attrs of another node of the same op. Nodes with the same op, number of
inputs and attrs share the result of one check. Any two tensors count as the same attr.

State: `_known` maps an op to the registration that its entries were made for, and those entries.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from opkernel.errors import InvalidArgumentError
from opkernel.opdef import OpRegistrationData, OpTraits, in_out_types_for_node, validate_node_def
from opkernel.opdef.core.op_traits import NO_TRAITS
from opkernel.records import dataclass, field
from opkernel.types import DataType

if TYPE_CHECKING:
    from opkernel.proto import AttrValue, NodeDef


@dataclass(frozen=True, slots=True, eq=False)
class NodeSignature:
    """The facts that nodes of one op with the same attrs share.

    Attributes:
        op_type: the name of the op.
        registration: the op; None where it is not registered, and the types are DT_INVALID.
        input_types, output_types: one for each tensor.
    """

    op_type: str
    registration: OpRegistrationData | None
    input_types: tuple[DataType, ...]
    output_types: tuple[DataType, ...]

    @property
    def traits(self) -> OpTraits:
        """The traits of the op: facts that passes may assume."""
        return NO_TRAITS if self.registration is None else self.registration.traits


NO_SIGNATURE = NodeSignature("", None, (), ())
"""The signature of an operation that is still being made."""


def types_compatible(expected: DataType, actual: DataType) -> bool:
    """Whether an input of one type takes a tensor of another: references pass as values."""
    if expected == actual or DataType.DT_INVALID in (expected, actual):
        return True
    return not expected.is_ref and expected == actual.base


def input_type_error(
    node: str, signature: NodeSignature, index: int, tensor: str, dtype: DataType
) -> InvalidArgumentError:
    """The error for an input that gets a tensor of the wrong type."""
    return InvalidArgumentError(
        f"Input {index} of node {node} was passed {dtype.string} from {tensor} "
        f"incompatible with expected {signature.input_types[index].string}.",
        node=node,
        op=signature.op_type,
    )


_MAX_ENTRIES_PER_OP = 4096

_AttrKey = tuple[int, frozenset[tuple[str, str | bytes]]]


@dataclass(frozen=True, slots=True, eq=False)
class _Entry:
    signature: NodeSignature
    defaults: tuple[tuple[str, AttrValue], ...]


@dataclass(slots=True, eq=False)
class _KnownOp:
    registration: OpRegistrationData
    declared: frozenset[str]
    entries: dict[_AttrKey, _Entry] = field(default_factory=dict)


class SignatureResolver:
    """Resolves nodes with the ops of one registry."""

    def __init__(
        self,
        look_up: Callable[[str], OpRegistrationData],
        *,
        validate: bool = True,
        fill_empty: bool = False,
    ) -> None:
        """With `validate` off only the types are worked out, as TensorFlow's sessions do it.

        With `fill_empty` an attr that has an AttrValue without a value counts as missing.
        """
        self._look_up = look_up
        self._validate = validate
        self._fill_empty = fill_empty
        self._known: dict[str, _KnownOp] = {}

    def resolve(
        self, node: NodeDef, num_inputs: int, registration: OpRegistrationData | None = None
    ) -> NodeSignature:
        """The signature of a node with `num_inputs` data inputs; missing defaults are added to it.

        The op is looked up when it is first met, unless the caller gives its `registration`.

        Raises:
            NotFoundError: its op is not registered.
            InvalidArgumentError: it breaks a rule of its op.
        """
        known = self._known.get(node.op)
        if known is None or (registration is not None and registration is not known.registration):
            registration = registration or self._look_up(node.op)
            declared = frozenset(attr.name for attr in registration.op_def.attr)
            known = self._known[node.op] = _KnownOp(registration, declared)
        key = (num_inputs, _attr_key(node, known.declared))
        entry = known.entries.get(key)
        if entry is None:
            entry = self._examine(node, known.registration)
            if len(known.entries) < _MAX_ENTRIES_PER_OP:
                known.entries[key] = entry
        for name, default in entry.defaults:
            node.attr[name].CopyFrom(default)
        return entry.signature

    def _examine(self, node: NodeDef, registration: OpRegistrationData) -> _Entry:
        op_def = registration.op_def
        defaults = tuple(
            (attr.name, attr.default_value)
            for attr in op_def.attr
            if attr.HasField("default_value") and self._lacks(node, attr.name)
        )
        for name, default in defaults:
            node.attr[name].CopyFrom(default)
        if self._validate:
            inputs, outputs = validate_node_def(node, op_def)
        else:
            inputs, outputs = in_out_types_for_node(node, op_def)
        return _Entry(NodeSignature(node.op, registration, tuple(inputs), tuple(outputs)), defaults)

    def _lacks(self, node: NodeDef, name: str) -> bool:
        value = node.attr.get(name)
        return value is None or (self._fill_empty and value.WhichOneof("value") is None)


def unregistered_signature(op_type: str, num_inputs: int, num_outputs: int) -> NodeSignature:
    """The signature of a node whose op is not registered: nothing is known of its types."""
    unknown = DataType.DT_INVALID
    return NodeSignature(op_type, None, (unknown,) * num_inputs, (unknown,) * num_outputs)


def _attr_key(node: NodeDef, declared: frozenset[str]) -> frozenset[tuple[str, str | bytes]]:
    return frozenset(
        [
            (
                name,
                "tensor" if value.HasField("tensor") else value.SerializeToString(),
            )
            for name, value in node.attr.items()
            if name[:1] != "_" or name in declared
        ]
    )
