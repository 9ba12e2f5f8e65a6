"""Errors of a running plan, told with the failing node and its inputs.

InvalidArgumentError: MatMul: Matrix size-incompatible: In[0]: [2,3], In[1]: [5,4]
(node 'dense/MatMul', inputs float32[2,3], float32[5,4])

The error of a step that needs a variable without value, or a table that is not filled, tells what would set it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from types import TracebackType
from typing import Any, NoReturn

import numpy as np

from opkernel.errors import (
    Code,
    InternalError,
    InvalidArgumentError,
    OpError,
    ResourceExhaustedError,
    as_op_error,
)
from opkernel.graph import Graph, Operation, Tensor
from opkernel.graph.edit.subgraph import prune_and_order
from opkernel.kernel.context.declared_outputs import kind_of
from opkernel.proto import OpDef
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
        translated = of_network_only(translated, op.name, op.op_def)
        translated.add_node(op.name, op.type, inputs)
    return translated


def of_network_only(error: OpError, name: str, op_def: OpDef) -> OpError:
    """The error of a node; INTERNAL in the place of UNAVAILABLE unless its op talks to other processes.

    Callers that try again after a failure of the network do not try again after other failures. An error that names
    a node already stays as it is.

    Source: ReplaceErrorFromNonCommunicationOps in TensorFlow core/platform/errors.h.
    """
    is_of_network = error.code == Code.UNAVAILABLE and error.node is None
    if not is_of_network or op_def.is_distributed_communication:
        return error
    return InternalError(
        f"{error.message}\n{name!r} does not communicate with other processes. Its UnavailableError became an "
        "InternalError, so that nobody takes it for a failure of the network"
    )


def raise_reported(error: Exception, graph: Graph | None = None) -> NoReturn:
    """Raise what `report` makes of an exception, with the exception itself as its cause.

    The graph of the step, where it is given, says what would set a variable without value.
    """
    raised = report(error)
    if raised.resource is not None and graph is not None:
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


def at_node(
    error: Exception, name: str, op: str, inputs: list[Any], *, op_def: OpDef | None = None
) -> OpError:
    """The exception of a kernel that was called outside a plan, as `report` would tell it."""
    translated = _translate(error)
    if op_def is not None:
        translated = of_network_only(translated, name, op_def)
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


_VARIABLE_OPS = frozenset({"VarHandleOp", "VariableV2", "Variable"})
_ASSIGN_OPS = frozenset({"AssignVariableOp", "Assign"})
_RESTORE_OPS = frozenset({"RestoreV2", "Restore", "RestoreSlice"})
_MAX_ASSIGNMENTS = 20
"""So many assignments are looked at, which are more than initialise one variable."""


def tell_initializer(error: OpError, graph: Graph) -> None:
    """Say in an error about a resource without value what of the graph would give it one."""
    variable = None if error.resource is None else _variable(graph, error.resource)
    if variable is None:
        return
    hint = "; or ".join(_ways(variable, error))
    if hint not in error.message:
        error.message = f"{error.message.rstrip('.')}; {hint}"
        error.args = (error.message,)


def initializer_of(graph: Graph, resource: str) -> Operation | None:
    """The operation to run before a variable or table is used; None where the graph has none."""
    variable = _variable(graph, resource)
    found = None if variable is None else next(_initializing(variable), None)
    return None if found is None else _group(found)


def _variable(graph: Graph, name: str) -> Operation | None:
    """The variable, or the table that the graph fills, of a name; None where it is something else."""
    for op in graph.get_operations():
        if op.type in _VARIABLE_OPS and name in (op.name, op.attr["shared_name"].s.decode()):
            return op
        if op.name == name and any(_sets(one) for out in op.outputs[:1] for one in out.consumers()):
            return op
    return None


def _sets(op: Operation) -> bool:
    """Whether an operation sets the variable, or fills the table, that is its first input."""
    return op.type in _ASSIGN_OPS or op.traits.initializes_table


def _ways(variable: Operation, error: OpError) -> Iterator[str]:
    """What would help: a clause each."""
    assign = next(_initializing(variable), None)
    if assign is not None:
        first = _group(assign)
        by = "" if first is assign else f" (by {assign.name!r})"
        yield f"run {first.name!r} first, which sets {variable.name!r}{by}"
    restoring = next(_restoring(variable), None)
    if restoring is not None:
        assign, restore = restoring
        yield (
            f"run {_group(assign).name!r} first with the path of a checkpoint fed as "
            f"{restore.inputs[0].name!r}, which restores {variable.name!r} (allow the session to read it: "
            "Permissions(read=[...]))"
        )
    elif assign is None:
        yield f"freeze the graph with its values: nothing in it sets {variable.name!r}"
    if variable.type in _VARIABLE_OPS - {"VarHandleOp"}:
        yield f"feed {variable.outputs[0].name!r}"
    elif error.op == "ReadVariableOp":
        yield f"feed '{error.node}:0'"


def _initializing(variable: Operation) -> Iterator[Operation]:
    """The operations that set a variable to a value that comes neither from itself nor from a checkpoint."""
    for assign, needed in _assignments(variable):
        if all(op is not variable and op.type not in _RESTORE_OPS for op in needed):
            yield assign


def _restoring(variable: Operation) -> Iterator[tuple[Operation, Operation]]:
    """The operations that set a variable from a checkpoint, each with the one that reads it."""
    for assign, needed in _assignments(variable):
        yield from [(assign, op) for op in needed if op.type in _RESTORE_OPS]


def _assignments(variable: Operation) -> Iterator[tuple[Operation, list[Operation]]]:
    """The operations that set a variable, each with what its value needs."""
    handle = variable.outputs[0]
    takers = [op for op in handle.consumers() if _sets(op) and op.inputs[0] == handle]
    for op in takers[:_MAX_ASSIGNMENTS]:
        yield op, prune_and_order([op.inputs[1]], (), ())


def _group(op: Operation) -> Operation:
    """The NoOp that waits for an operation, maybe with others, as `tf.group` makes them; or itself."""
    seen = {op}
    while True:
        waiting = (other for other, at in op.consumer_edges() if at < 0)
        above = next((one for one in waiting if one.type == "NoOp" and one not in seen), None)
        if above is None:
            return op
        seen.add(above)
        op = above
