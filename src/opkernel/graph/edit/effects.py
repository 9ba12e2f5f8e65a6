"""Which operations have effects, and which only see them.

Source: TensorFlow core/grappler/op_types.cc (IsFreeOfSideEffect).
"""

from __future__ import annotations

from enum import IntEnum

from opkernel.graph.core.control_flow_ops import LOW_LEVEL_CONTROL_FLOW
from opkernel.graph.core.node_signature import NodeSignature
from opkernel.graph.core.structural_ops import STRUCTURAL_OPS
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
    return Effect.PURE if _makes_handle(signature) else Effect.ACTS


def _makes_handle(signature: NodeSignature) -> bool:
    """Whether all that an op does is to name a resource or variable."""
    types = signature.output_types
    handles = [dtype.is_ref or dtype == DataType.DT_RESOURCE for dtype in types]
    return bool(types) and all(handles) and not signature.input_types
