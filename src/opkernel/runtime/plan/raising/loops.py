"""The loops of a graph: their variables, and whether they have the form of a `while` statement."""

from collections.abc import Sequence

from opkernel.graph import Operation, Tensor
from opkernel.graph.core.control_flow_info import ROOT, LoopFrame, frame_name
from opkernel.graph.core.control_flow_ops import ENTER_OPS, EXIT_OPS, NEXT_ITERATION_OPS
from opkernel.graph.core.edges import is_head_of_loop
from opkernel.graph.edit.prune import Needs
from opkernel.runtime.plan.raising.items import NotRaisedError, Variable

__all__ = ["check_borders", "is_constant_enter", "loop_test", "loop_variables"]

_MAX_DEPTH = 100


def is_constant_enter(op: Operation) -> bool:
    """Whether an operation gives a value to all turns of a loop."""
    return op.type in ENTER_OPS and bool(op.node_def.attr["is_constant"].b)


def check_borders(
    order: Sequence[Operation],
    fetches: Sequence[Tensor],
    feeds: Sequence[Tensor],
    frames: dict[str, LoopFrame],
    needs: Needs,
) -> None:
    """Raise NotRaisedError where values cross the border of a loop otherwise than by its variables."""
    for tensor in feeds:
        if frames.get(tensor.op.name, ROOT) is not ROOT:
            raise NotRaisedError("a tensor inside a loop is fed", tensor.op)
    for tensor in fetches:
        op, frame = tensor.op, frames.get(tensor.op.name, ROOT)
        is_inside = op.type in ENTER_OPS or (
            frame is not ROOT and not (op.type in EXIT_OPS and frame.parent is ROOT)
        )
        if is_inside and not needs.is_fed(tensor):
            raise NotRaisedError("a tensor inside a loop is fetched", op)
    for op in order:
        _check_sources(op, needs)


def _check_sources(op: Operation, needs: Needs) -> None:
    """Raise NotRaisedError where an operation reads a value that exists only in certain turns."""
    is_head = is_head_of_loop(op)
    for tensor in op.inputs:
        source = tensor.op
        if needs.is_fed(tensor):
            continue
        if source.type in ENTER_OPS and is_head == is_constant_enter(source):
            raise NotRaisedError("a value enters only some turns of a loop", source)
        if source.type in NEXT_ITERATION_OPS and not is_head:
            raise NotRaisedError("a value of the turn before is read, which is no variable", source)
        if is_head_of_loop(source) and tensor.value_index:
            raise NotRaisedError("it is asked where the value of a variable comes from", source)
    for control in needs.controls(op):
        if control.type in NEXT_ITERATION_OPS or (
            control.type in ENTER_OPS and not is_constant_enter(control)
        ):
            raise NotRaisedError("an operation waits for an edge between turns", control)


def loop_variables(
    frame: LoopFrame, members: Sequence[Operation], frames: dict[str, LoopFrame], needs: Needs
) -> list[Variable]:
    """The variables of a loop, given the operations in it."""
    if frame.depth > _MAX_DEPTH:
        raise NotRaisedError("loops are nested too deeply", members[0])
    return [_variable(op, frame, frames, needs) for op in members if is_head_of_loop(op)]


def _variable(
    head: Operation, frame: LoopFrame, frames: dict[str, LoopFrame], needs: Needs
) -> Variable:
    if len(head.inputs) != 2 or needs.controls(head) or any(map(needs.is_fed, head.inputs)):
        raise NotRaisedError("it is no plain head of a loop", head)
    start, following = sorted(head.inputs, key=lambda tensor: tensor.op.type in NEXT_ITERATION_OPS)
    is_start = start.op.type in ENTER_OPS and frame_name(start.op) == frame.name
    is_next = following.op.type in NEXT_ITERATION_OPS and frames[following.op.name] is frame
    if not (is_start and is_next):
        raise NotRaisedError("it is no plain head of a loop", head)
    return Variable(head, start, following)


def loop_test(members: Sequence[Operation]) -> Operation:
    """The operation that tells whether a loop goes on."""
    tests = [op for op in members if op.type == "LoopCond"]
    if len(tests) != 1:
        raise NotRaisedError(f"the loop has {len(tests)} tests", members[0])
    return tests[0]
