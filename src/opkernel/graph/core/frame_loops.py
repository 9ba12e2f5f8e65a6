"""Loops of TensorFlow 1: which loop each node of a graph is in, and the form of a loop that is a `while` statement.

Enter and Exit tell the loop of a node. The variables of a loop go round: Enter, Merge, Switch, NextIteration and back to
the Merge. Its constants enter by an Enter that gives a value to all turns.

Source: BuildControlFlowInfo in TensorFlow core/graph/control_flow.cc, compiler/tf2xla/functionalize_while.cc.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from opkernel.errors import InternalError, UnimplementedError
from opkernel.graph.core.edges import is_head_of_loop
from opkernel.graph.core.operation import Operation
from opkernel.graph.core.structural_ops import ENTER_OPS, EXIT_OPS, NEXT_ITERATION_OPS
from opkernel.graph.core.tensor import Tensor
from opkernel.graph.edit.subgraph import Needs
from opkernel.records import dataclass


@dataclass(frozen=True, eq=False)
class LoopFrame:
    """A loop of the graph; the root frame, which has no parent, is all that is in no loop.

    Attributes:
        name: The name that its Enters give it.
        parent: The loop that it is in.
        depth: How many loops it is in, itself included.
    """

    name: str
    parent: LoopFrame | None = None
    depth: int = 0

    @property
    def around(self) -> Iterator[LoopFrame]:
        """The frames that it is in, innermost first; the last is the root frame."""
        frame = self.parent
        while frame is not None:
            yield frame
            frame = frame.parent


ROOT = LoopFrame("")


def control_flow_info(order: Sequence[Operation], needs: Needs) -> dict[str, LoopFrame]:
    """The frame of each operation, by name; `order` has inputs before consumers, except for back edges.

    An Enter is in the frame around its loop, an Exit in the frame of its loop. Feeds come from the
    root frame.

    Raises:
        InvalidArgumentError: a node has inputs from different frames, an Exit is in no loop, or a loop
            has two conditions.
        InternalError: Enters lead into one frame from different ones.
    """
    return LoopFrames(order, needs).by_name


class LoopFrames:
    """The frames of some operations, in an order as `control_flow_info` takes them; it says the errors.

    Attributes:
        by_name: the frame of each operation, by name.
    """

    def __init__(self, order: Sequence[Operation], needs: Needs) -> None:
        self.by_name: dict[str, LoopFrame] = {}
        self._needs = needs
        self._enters: dict[str, Operation] = {}
        self._children: dict[str, LoopFrame] = {}
        for op in order:
            found = self._sources(op)
            self.by_name[op.name] = found[0][1] if found else ROOT
            if op.type in ENTER_OPS:
                self._enter(op, self.by_name[op.name])
        for op in order:  # now that those behind back edges are known, too
            self._check_sources(op)
            if op.type in EXIT_OPS and self.by_name[op.name] is ROOT:
                raise op.error(
                    f"{op.type} leads out of a loop, but is in no loop (node {op.name!r})"
                )
        tests: dict[LoopFrame, Operation] = {}
        for op in [op for op in order if op.type == "LoopCond"]:
            frame = self.by_name[op.name]
            other = tests.setdefault(frame, op)
            if other is not op:
                raise op.error(
                    f'Invalid loop structure: Loop "{frame.name}" has more than one LoopCond '
                    f"node: {{{{node {op.name}}}}} and {{{{node {other.name}}}}}"
                )

    def of(self, op: Operation) -> LoopFrame:
        """The frame that an operation is in."""
        return self.by_name.get(op.name, ROOT)

    def put(self, op: Operation, frame: LoopFrame) -> None:
        """Note the frame of an operation that was added."""
        self.by_name[op.name] = frame

    def behind(self, op: Operation) -> LoopFrame:
        """The frame of the consumers of an operation."""
        frame = self.of(op)
        if op.type in ENTER_OPS and op.name in self.by_name:
            return self._children[frame_name(op)]
        return frame.parent or ROOT if op.type in EXIT_OPS else frame

    def parallel_iterations(self, frame: LoopFrame) -> int:
        """How many turns of a loop may run at once."""
        return int(self._enters[frame.name].attr["parallel_iterations"].i)

    def _sources(self, op: Operation) -> list[tuple[Operation, LoopFrame]]:
        """What an operation takes, as far as it is known by now, with the frames that this comes from."""
        fed = [(tensor.op, ROOT) for tensor in op.inputs if self._needs.is_fed(tensor)]
        known = [source for source in self._needs.sources(op) if source.name in self.by_name]
        return fed + [(source, self.behind(source)) for source in known]

    def _enter(self, op: Operation, frame: LoopFrame) -> None:
        """Note the frame that an Enter leads into."""
        name = frame_name(op)
        if not name:
            raise op.error(f"The Enter {{{{node {op.name}}}}} must have a frame name.")
        self._enters[name] = op
        child = self._children.setdefault(name, LoopFrame(name, frame, frame.depth + 1))
        if child.parent is not frame:
            parent = "" if child.parent is None else child.parent.name
            raise op.error(
                f'Invalid loop structure: Mismatched parent frames for "{name}": "{frame.name}" vs '
                f'"{parent}", from where another Enter than {{{{node {op.name}}}}} leads into it',
                InternalError,
            )

    def _check_sources(self, op: Operation) -> None:
        """Raise InvalidArgumentError where inputs come from different frames."""
        found = self._sources(op)
        for source, frame in found:
            first, expected = found[0]
            if frame is not expected:
                raise op.error(
                    f"{{{{node {op.name}}}}} has inputs from different frames. The input "
                    f"{{{{node {source.name}}}}} is in frame '{frame.name}'. The input "
                    f"{{{{node {first.name}}}}} is in frame '{expected.name}'."
                )


def frame_name(enter: Operation) -> str:
    """The name of the frame that an Enter leads into."""
    name: bytes = enter.node_def.attr["frame_name"].s
    return name.decode(errors="backslashreplace")


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
    variables = []
    for head in filter(is_head_of_loop, members):
        if len(head.inputs) != 2 or needs.controls(head) or any(map(needs.is_fed, head.inputs)):
            raise ControlFlowFormError("it is no plain head of a loop", head)
        start, following = sorted(head.inputs, key=lambda one: one.op.type in NEXT_ITERATION_OPS)
        is_start = start.op.type in ENTER_OPS and frame_name(start.op) == frame.name
        is_next = following.op.type in NEXT_ITERATION_OPS and frames[following.op.name] is frame
        if not (is_start and is_next):
            raise ControlFlowFormError("it is no plain head of a loop", head)
        variables.append(Variable(head, start, following))
    return variables


def loop_test(members: Sequence[Operation]) -> Operation:
    """The operation that tells whether a loop goes on."""
    tests = [op for op in members if op.type == "LoopCond"]
    if len(tests) != 1:
        raise ControlFlowFormError(f"the loop has {len(tests)} tests", members[0])
    return tests[0]
