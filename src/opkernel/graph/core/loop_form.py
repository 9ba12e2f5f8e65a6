"""The form of a loop of TensorFlow 1 that is a `while` statement: its variables, and its test.

Its variables go round: Enter, Merge, Switch, NextIteration and back to the Merge. Its constants enter by an Enter that
gives a value to all turns.

Source: TensorFlow core/graph/control_flow.cc, compiler/tf2xla/functionalize_while.cc.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from opkernel.errors import UnimplementedError
from opkernel.graph.core.control_flow_info import LoopFrame, frame_name
from opkernel.graph.core.control_flow_ops import ENTER_OPS, NEXT_ITERATION_OPS
from opkernel.graph.core.edges import is_head_of_loop
from opkernel.graph.core.operation import Operation
from opkernel.graph.core.tensor import Tensor
from opkernel.graph.edit.prune import Needs
from opkernel.records import dataclass

_MAX_DEPTH = 100


class ControlFlowFormError(UnimplementedError):
    """Control flow of TensorFlow 1 is neither a `while` nor an `if` statement.

    Attributes:
        reason: What is odd.
        at: Where.
    """

    def __init__(self, reason: str, at: Operation) -> None:
        super().__init__(f"{at.type}: {reason} (node {at.name!r})", node=at.name, op=at.type)
        self.reason, self.at = reason, at


@dataclass(frozen=True, slots=True)
class Variable:
    """A variable of a loop: the Merge that holds it, its first value, and its next value."""

    head: Operation
    start: Tensor
    next: Tensor


def is_constant_enter(op: Operation) -> bool:
    """Whether an operation gives a value to all turns of a loop."""
    return op.type in ENTER_OPS and bool(op.node_def.attr["is_constant"].b)


def check_sources(op: Operation, needs: Needs) -> None:
    """Raise ControlFlowFormError where an operation reads a value that exists only in certain turns."""
    is_head = is_head_of_loop(op)
    for tensor in op.inputs:
        source = tensor.op
        if needs.is_fed(tensor):
            continue
        if source.type in ENTER_OPS and is_head == is_constant_enter(source):
            raise ControlFlowFormError("a value enters only some turns of a loop", source)
        if source.type in NEXT_ITERATION_OPS and not is_head:
            raise ControlFlowFormError(
                "a value of the turn before is read, which is no variable", source
            )
        if is_head_of_loop(source) and tensor.value_index:
            raise ControlFlowFormError(
                "it is asked where the value of a variable comes from", source
            )
    for control in needs.controls(op):
        if control.type in NEXT_ITERATION_OPS or (
            control.type in ENTER_OPS and not is_constant_enter(control)
        ):
            raise ControlFlowFormError("an operation waits for an edge between turns", control)


def loop_variables(
    frame: LoopFrame, members: Sequence[Operation], frames: Mapping[str, LoopFrame], needs: Needs
) -> list[Variable]:
    """The variables of a loop, given the operations in it."""
    if frame.depth > _MAX_DEPTH:
        raise ControlFlowFormError("loops are nested too deeply", members[0])
    return [_variable(op, frame, frames, needs) for op in members if is_head_of_loop(op)]


def _variable(
    head: Operation, frame: LoopFrame, frames: Mapping[str, LoopFrame], needs: Needs
) -> Variable:
    if len(head.inputs) != 2 or needs.controls(head) or any(map(needs.is_fed, head.inputs)):
        raise ControlFlowFormError("it is no plain head of a loop", head)
    start, following = sorted(head.inputs, key=lambda tensor: tensor.op.type in NEXT_ITERATION_OPS)
    is_start = start.op.type in ENTER_OPS and frame_name(start.op) == frame.name
    is_next = following.op.type in NEXT_ITERATION_OPS and frames[following.op.name] is frame
    if not (is_start and is_next):
        raise ControlFlowFormError("it is no plain head of a loop", head)
    return Variable(head, start, following)


def loop_test(members: Sequence[Operation]) -> Operation:
    """The operation that tells whether a loop goes on."""
    tests = [op for op in members if op.type == "LoopCond"]
    if len(tests) != 1:
        raise ControlFlowFormError(f"the loop has {len(tests)} tests", members[0])
    return tests[0]
