"""NodeSignature: an op with the types of its nodes' inputs and outputs; which tensors fit them."""

from __future__ import annotations

from opkernel.errors import InvalidArgumentError
from opkernel.opdef import OpRegistrationData, OpTraits
from opkernel.opdef.core.op_traits import NO_TRAITS
from opkernel.records import dataclass
from opkernel.types import DataType


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
