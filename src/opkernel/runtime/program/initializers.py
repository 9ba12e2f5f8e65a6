"""What would set a variable that has no value yet: told in the error of the step that needs it."""

from __future__ import annotations

from collections.abc import Iterator

from opkernel.errors import OpError
from opkernel.graph import Graph, Operation
from opkernel.graph.edit.prune import prune_and_order

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
    """The operation to run before a variable is used; None where the graph has none."""
    variable = _variable(graph, resource)
    found = None if variable is None else next(_initializing(variable), None)
    return None if found is None else _group(found)


def _variable(graph: Graph, name: str) -> Operation | None:
    """The variable that a resource is of; None where it is something else."""
    for op in graph.get_operations():
        if op.type in _VARIABLE_OPS and name in (op.name, op.attr["shared_name"].s.decode()):
            return op
    return None


def _ways(variable: Operation, error: OpError) -> Iterator[str]:
    """What would help: a clause each."""
    assign = next(_initializing(variable), None)
    if assign is not None:
        first = _group(assign)
        by = "" if first is assign else f" (by {assign.name!r})"
        yield f"run {first.name!r} first, which sets {variable.name!r}{by}"
    restoring = next(_restoring(variable), None)
    if restoring is not None:
        yield _restore_text(variable, *restoring)
    elif assign is None:
        yield f"freeze the graph with its values: nothing in it sets {variable.name!r}"
    if variable.type != "VarHandleOp":
        yield f"feed {variable.outputs[0].name!r}"
    elif error.op == "ReadVariableOp":
        yield f"feed '{error.node}:0'"


def _restore_text(variable: Operation, assign: Operation, restore: Operation) -> str:
    first = _group(assign).name
    return (
        f"run {first!r} first with the path of a checkpoint fed as {restore.inputs[0].name!r}, which "
        f"restores {variable.name!r} (allow the session to read it: Permissions(read=[...]))"
    )


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
    takers = [op for op in handle.consumers() if op.type in _ASSIGN_OPS and op.inputs[0] == handle]
    for op in takers[:_MAX_ASSIGNMENTS]:
        yield op, prune_and_order([op.inputs[1]], (), ())


def _group(op: Operation) -> Operation:
    """The NoOp that waits for an operation, maybe with others, as `tf.group` makes them; or itself."""
    seen = {op}
    while True:
        waiting = (one for one in _waiting(op) if one.type == "NoOp" and one not in seen)
        above = next(waiting, None)
        if above is None:
            return op
        seen.add(above)
        op = above


def _waiting(op: Operation) -> Iterator[Operation]:
    """The operations that have a control edge from it."""
    return (other for other, at in op.consumer_edges() if at < 0)
