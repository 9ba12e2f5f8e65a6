"""What reads the value of a variable by its handle, as an op of the value."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from opkernel.graph.core.operation import Operation
from opkernel.proto import AttrValue, TensorProto
from opkernel.types import DataType


class Reading(NamedTuple):
    """What takes the place of a node that reads a variable.

    Attributes:
        op_type: its op.
        attrs: its attrs.
        takes_inputs: whether it takes the inputs of the node, or nothing.
        axis: a last input, which is a constant; None for none.
    """

    op_type: str
    attrs: dict[str, AttrValue]
    takes_inputs: bool = True
    axis: int | None = None


def reading(op: Operation, dtype: DataType) -> Reading | None:
    """What takes the place of a node that takes the handle of a variable; None if it does not simply read.

    Args:
        op: the node.
        dtype: the type of the variable.
    """
    read = _READINGS.get(op.type)
    return None if read is None else read(op, dtype)


def _read(op: Operation, _: DataType) -> Reading:
    return Reading("Identity", {"T": op.attr["dtype"]})


def _read_several(op: Operation, _: DataType) -> Reading:
    return Reading("IdentityN", {"T": op.attr["dtypes"]})


def _shape(op: Operation, dtype: DataType) -> Reading:
    return Reading("Shape", {"T": AttrValue(type=dtype), "out_type": op.attr["out_type"]})


def _gather(op: Operation, _: DataType) -> Reading:
    attrs = {
        "Tparams": op.attr["dtype"],
        "Tindices": op.attr["Tindices"],
        "Taxis": AttrValue(type=DataType.DT_INT32),
        "batch_dims": op.attr["batch_dims"],
    }
    return Reading("GatherV2", attrs, axis=op.attr["batch_dims"].i)


def _gather_nd(op: Operation, _: DataType) -> Reading:
    attrs = {"Tparams": op.attr["dtype"], "Tindices": op.attr["Tindices"]}
    return Reading("GatherNd", attrs)


def _is_initialized(op: Operation, _: DataType) -> Reading:
    yes = TensorProto(dtype=DataType.DT_BOOL, bool_val=[True])
    attrs = {"dtype": AttrValue(type=DataType.DT_BOOL), "value": AttrValue(tensor=yes)}
    return Reading("Const", attrs, takes_inputs=False)


def _nothing(op: Operation, _: DataType) -> Reading:
    return Reading("NoOp", {}, takes_inputs=False)


_READINGS: dict[str, Callable[[Operation, DataType], Reading]] = {
    "DisableCopyOnRead": _nothing,
    "IsVariableInitialized": _is_initialized,
    "ReadVariableOp": _read,
    "ResourceGather": _gather,
    "ResourceGatherNd": _gather_nd,
    "VarIsInitializedOp": _is_initialized,
    "VariableShape": _shape,
    "_ReadVariablesOp": _read_several,
}

READING = frozenset(_READINGS)
"""The ops that simply read a variable."""
