"""Errors of a running plan, told with the failing node and its inputs.

InvalidArgumentError: MatMul: Matrix size-incompatible: In[0]: [2,3], In[1]: [5,4]
(node 'dense/MatMul', inputs float32[2,3], float32[5,4])
"""

import re
from collections.abc import Iterable, Sequence
from types import TracebackType
from typing import Any, NoReturn

import numpy as np

from opkernel.errors import (
    InternalError,
    InvalidArgumentError,
    OpError,
    ResourceExhaustedError,
    as_op_error,
)
from opkernel.graph import Graph, Operation, Tensor
from opkernel.kernel.context.declared_outputs import kind_of
from opkernel.runtime.plan.compiled_plan import CompiledPlan
from opkernel.types import as_dtype

_NOT_BROADCAST = re.compile(
    r"could not be broadcast together|cannot be broadcast to a single shape"
)
_SHAPE = re.compile(r"\(((?:\d+,)*(?:\d+)?)\)")
_NEGATIVE_POWER = "Integers to negative integer powers are not allowed"


def report(error: Exception) -> OpError:
    """The error to raise for an exception that left a plan: an OpError that names the node."""
    found = _failing_node(error.__traceback__)
    translated = _translate(error)
    if found is not None:
        op, inputs = found
        translated.add_node(op.name, op.type, inputs)
    return translated


def raise_reported(error: Exception, graph: Graph | None = None) -> NoReturn:
    """Raise what `report` makes of an exception, with the exception itself as its cause.

    The graph of the step, where it is given, says what would set a variable without value.
    """
    raised = report(error)
    if raised.resource is not None and graph is not None:
        from opkernel.runtime.program.initializers import tell_initializer  # rarely needed

        tell_initializer(raised, graph)
    raise raised from (error.__cause__ if raised is error else error)


def _translate(error: Exception) -> OpError:
    """An exception of a kernel as an OpError; of a ufunc's, with TensorFlow's message.

    Plans call ufuncs as they are, so nothing else could say it.
    """
    if isinstance(error, RecursionError):
        return ResourceExhaustedError(f"Functions call each other too deeply: {error}")
    message = None if isinstance(error, OpError) else _ufunc_message(str(error))
    return as_op_error(error) if message is None else InvalidArgumentError(message)


def _ufunc_message(text: str) -> str | None:
    """TensorFlow's message for operands that a ufunc refuses."""
    if _NOT_BROADCAST.search(text):
        shapes = dict.fromkeys(_SHAPE.findall(text.replace(" ", "")))
        return "Incompatible shapes: " + " vs. ".join(f"[{s.rstrip(',')}]" for s in shapes)
    return _NEGATIVE_POWER if text.startswith(_NEGATIVE_POWER) else None


def at_node(error: Exception, name: str, op: str, inputs: list[Any]) -> OpError:
    """The exception of a kernel that was called outside a plan, as `report` would tell it."""
    translated = _translate(error)
    translated.add_node(name, op, [describe_value(value) for value in inputs])
    return translated


def describe_value(value: Any) -> str:
    """The type and shape of a value: `float32[2,3]`."""
    if not (hasattr(value, "shape") and hasattr(value, "dtype")):
        return type(value).__name__
    shape = ",".join(map(str, value.shape))
    kind = "object" if value.dtype == object else as_dtype(value.dtype).tf_name
    return f"{kind}[{shape}]"


def check_results(fetches: Sequence[Tensor], results: Sequence[Any]) -> None:
    """Raise InternalError, with the node, for the first result of a step that is no tensor."""
    for tensor, value in zip(fetches, results, strict=True):
        if not isinstance(value, np.ndarray | np.generic):
            error = InternalError(
                f"output {tensor.value_index} must be {tensor.dtype.string}, the kernel set "
                f"{kind_of(value)}, against its claim"
            )
            error.add_node(tensor.op.name, tensor.op.type)
            raise error


def _described(values: Iterable[Any]) -> list[str]:
    """Descriptions of inputs, some of which may stand in lists."""
    flat = [v for value in values for v in (value if isinstance(value, list) else [value])]
    return [describe_value(value) for value in flat]


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
                found = op, _described(values[name] for name in names if name in values)
        traceback = traceback.tb_next
    return found
