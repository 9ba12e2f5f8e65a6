"""Which operations have effects, and which only see them.

Source: TensorFlow core/grappler/op_types.cc (IsFreeOfSideEffect).
"""

from __future__ import annotations

from enum import IntEnum

from opkernel.graph.core.signature import NodeSignature
from opkernel.graph.core.structural_ops import LOW_LEVEL_CONTROL_FLOW, STRUCTURAL_OPS
from opkernel.types import DataType


class Effect(IntEnum):
    """The relation of an operation to effects."""

    PURE = 0
    """Nothing."""
    SEES = 1
    """It reads state that others change."""
    ACTS = 2
    """It changes something, or may, or fails where something is wrong."""
    LEADS = 3
    """It is control flow of TensorFlow 1."""


def effect_of(signature: NodeSignature) -> Effect:
    """The relation of nodes of a signature to effects."""
    op_type, registration = signature.op_type, signature.registration
    if op_type in LOW_LEVEL_CONTROL_FLOW:
        return Effect.LEADS
    traits = signature.traits
    if registration is None or op_type in STRUCTURAL_OPS or traits.has_no_effect:
        return Effect.PURE
    takes_references = any(dtype.is_ref for dtype in signature.input_types)
    if not registration.op_def.is_stateful and not takes_references:
        return Effect.PURE
    if traits.only_reads_state or traits.state_of_step:
        return Effect.SEES
    if signature.input_types or not signature.output_types:
        return Effect.ACTS
    handles = [dtype.is_ref or dtype == DataType.DT_RESOURCE for dtype in signature.output_types]
    return Effect.PURE if all(handles) else Effect.ACTS  # it names a resource or variable
