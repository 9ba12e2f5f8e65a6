"""The values that take the place of handles, and the ops that pass handles on or read them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from opkernel.graph.core.control_flow_ops import (
    ENTER_OPS,
    EXIT_OPS,
    MERGE_OPS,
    NEXT_ITERATION_OPS,
    SWITCH_OPS,
)
from opkernel.graph.core.operation import Operation
from opkernel.graph.core.structural_ops import VARIABLE_OPS
from opkernel.graph.tracing.tensor_spec import most_general_shape
from opkernel.types import DataType, PartialTensorShape

REFERENCES = frozenset({"Variable", "VariableV2", "AutoReloadVariable"})
"""The ops that give a reference to a variable."""
VARIABLES = VARIABLE_OPS
PASS_FIRST_ON = SWITCH_OPS | ENTER_OPS | EXIT_OPS | NEXT_ITERATION_OPS | {"Identity", "RefIdentity"}
"""Ops that give their first input at each output; without `Ref`, they do so with a value."""
PASS_ON = PASS_FIRST_ON | MERGE_OPS | {"IdentityN"}
"""Ops that give handles or references that they take, and do nothing else with them."""


class HeldValue(NamedTuple):
    """What takes the place of a handle or reference.

    Attributes:
        dtype: its type.
        shape: the known part of its shape.
        variable: the name of the variable, or of one of those that it may be.
    """

    dtype: DataType
    shape: PartialTensorShape
    variable: str


def is_handle(dtype: DataType) -> bool:
    """Whether tensors of a type stand for what has a value: handles and references."""
    return dtype.is_ref or dtype is DataType.DT_RESOURCE


def variable_name(variable: Operation) -> str:
    """The name under which a variable keeps its value: the attr `shared_name`, or that of its node."""
    return variable.attr["shared_name"].s.decode("utf-8", "surrogateescape") or variable.name


def declared_value(variable: Operation) -> HeldValue:
    """The value of a variable, as its node declares it; a scalar Variable may have any shape."""
    shape = PartialTensorShape.from_proto(variable.attr["shape"].shape)
    if variable.type == "Variable" and shape.rank == 0:
        shape = PartialTensorShape()
    return HeldValue(DataType(variable.attr["dtype"].type), shape, variable_name(variable))


def joined(values: Iterable[HeldValue | None]) -> HeldValue | None:
    """The value that may be any of some; None where there are none, or their types differ."""
    known = [value for value in values if value is not None]
    if len({value.dtype for value in known}) != 1:
        return None
    first, *others = known
    for other in others:
        first = first._replace(shape=most_general_shape(first.shape, other.shape))
    return first
