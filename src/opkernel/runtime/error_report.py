"""Errors of a running plan, told with the node that failed and what it was given.

InvalidArgumentError: MatMul: Matrix size-incompatible: In[0]: [2,3], In[1]: [5,4]
(node 'dense/MatMul', inputs float32[2,3], float32[5,4])
"""

from types import TracebackType
from typing import Any

import numpy as np

from opkernel.errors import (
    InternalError,
    InvalidArgumentError,
    OpError,
    ResourceExhaustedError,
    UnimplementedError,
)
from opkernel.graph import Operation
from opkernel.runtime.plan import CompiledPlan
from opkernel.types import as_dtype

__all__ = ["at_node", "describe_value", "op_error", "report"]


def report(error: Exception) -> OpError:
    """The error to raise for an exception that left a plan: an OpError that names the node."""
    found = _failing_node(error.__traceback__)
    translated = op_error(error)
    if found is not None and translated.node is None:
        op, inputs = found
        _add_node(translated, op.name, op.type, inputs)
    return translated


def op_error(error: Exception) -> OpError:
    """An exception of a kernel as an OpError of the code that fits; OpErrors stay themselves."""
    if isinstance(error, OpError):
        return error
    if isinstance(error, MemoryError):
        kind: type[OpError] = ResourceExhaustedError
    elif isinstance(error, NotImplementedError):
        kind = UnimplementedError
    elif isinstance(error, ValueError | TypeError | IndexError | OverflowError):
        kind = InvalidArgumentError
    else:
        kind = InternalError
    return kind(f"{type(error).__name__}: {error}")


def at_node(error: Exception, name: str, op: str, inputs: list[Any]) -> OpError:
    """The exception of a kernel that was called outside a plan, as `report` would tell it."""
    translated = op_error(error)
    if translated.node is None:
        _add_node(translated, name, op, [describe_value(value) for value in inputs])
    return translated


def describe_value(value: Any) -> str:
    """The type and shape of a value: `float32[2,3]`."""
    if not isinstance(value, np.ndarray | np.generic):
        return type(value).__name__
    shape = ",".join(map(str, value.shape))
    kind = "object" if value.dtype == object else as_dtype(value.dtype).tf_name
    return f"{kind}[{shape}]"


def _add_node(error: OpError, name: str, op: str, inputs: list[str]) -> None:
    error.node, error.op = name, op
    subject = "" if error.message.startswith(op) else f"{op}: "
    given = f", inputs {', '.join(inputs)}" if inputs else ""
    error.message = f"{subject}{error.message} (node {name!r}{given})"
    error.args = (error.message,)


def _failing_node(traceback: TracebackType | None) -> tuple[Operation, list[str]] | None:
    """The node of the innermost plan on the stack, and descriptions of its inputs."""
    found = None
    while traceback is not None:
        frame = traceback.tb_frame
        plan = CompiledPlan.of_frame(frame)
        if plan is not None:
            at = plan.node_at(frame.f_code.co_filename, traceback.tb_lineno)
            if at is not None:
                op, names = at
                values = {**frame.f_globals, **frame.f_locals}
                found = op, [describe_value(values[name]) for name in names if name in values]
        traceback = traceback.tb_next
    return found
