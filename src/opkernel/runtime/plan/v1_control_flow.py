"""Control flow of TensorFlow 1 for certain feeds: its frames, the contexts of operations, and the tree that it becomes.

Switch, Merge, Enter, Exit and their like say when a value exists; a program says when to run an operation. The
context of an operation tells on which branches of which Switches it stands. It is a conjunction, with a pair
`(predicate, branch)` for each Switch that the operation is behind. Predicates have numbers, and stand in their
order. A predicate that is computed behind others has a greater number than these, so that contexts nest in this
order.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from itertools import combinations
from typing import Literal

from opkernel.graph import Operation, Tensor
from opkernel.graph.core.frame_loops import (
    ROOT,
    ControlFlowFormError,
    LoopFrame,
    Variable,
    control_flow_info,
)
from opkernel.graph.core.structural_ops import ENTER_OPS, EXIT_OPS, SWITCH_OPS
from opkernel.graph.edit.subgraph import Needs
from opkernel.records import dataclass
from opkernel.runtime.plan.keys import Key, key_of

Context = tuple[tuple[int, int], ...]

ALWAYS: Context = ()


@dataclass(frozen=True, slots=True)
class BranchPredicate:
    """The tensor that decides between branches.

    Attributes:
        number: Its place among the predicates of the graph.
        kind: `bool` chooses branch 1 or 0, `index` a branch by its number, as `_SwitchN` does;
            `alive` is 1 where the value of a Merge is alive.
        tensor: The tensor that is looked at.
        branches: The number of branches.
        op: The Switch or Merge.
    """

    number: int
    kind: Literal["bool", "index", "alive"]
    tensor: Tensor
    branches: int
    op: Operation


def both(a: Context | None, b: Context | None) -> Context | None:
    """Where two contexts hold; None for nowhere."""
    if a is None or b is None:
        return None
    if a == b or not b:
        return a
    if not a:
        return b
    chosen = dict(a)
    for number, branch in b:
        if chosen.setdefault(number, branch) != branch:
            return None
    return tuple(sorted(chosen.items()))


def all_of(contexts: Iterable[Context | None]) -> Context | None:
    """Where all of some contexts hold."""
    found: Context | None = ALWAYS
    for context in contexts:
        found = both(found, context)
    return found


def either(contexts: Collection[Context], predicates: Sequence[BranchPredicate]) -> Context | None:
    """The context that holds where any of some does; None if there is no such conjunction."""
    found = _without_implied(set(contexts))
    while len(found) > 1:
        for context in found:
            rest = _without_a_choice(context, found, predicates)
            if rest is not None:
                found = _without_implied(found | {rest})
                break
        else:
            return None
    return found.pop()


def _without_implied(contexts: set[Context]) -> set[Context]:
    """The contexts, without those that hold only where another one holds."""
    return {c for c in contexts if not any(o != c and both(o, c) == c for o in contexts)}


def _without_a_choice(
    context: Context, found: set[Context], predicates: Sequence[BranchPredicate]
) -> Context | None:
    """A context less one of its predicates, where all branches of that are there."""
    for place, (number, _) in enumerate(context):
        before, behind = context[:place], context[place + 1 :]
        branches = range(predicates[number].branches)
        if all((*before, (number, branch), *behind) in found for branch in branches):
            return before + behind
    return None


def are_exclusive(contexts: Collection[Context]) -> bool:
    """Whether no two of some contexts hold at a time."""
    return all(both(a, b) is None for a, b in combinations(contexts, 2))


_Kind = Literal["bool", "index", "alive"]


class Flow:
    """The frames of operations, and their contexts as they become known.

    The context of an operation holds within its frame; the context of a loop holds within its parent.

    Args:
        order: The operations.
        needs: What they wait for.
        aliases: The tensors that are other names for tensors.
        is_written: Whether an operation gives statements.
    """

    def __init__(
        self,
        order: Sequence[Operation],
        needs: Needs,
        aliases: dict[Key, Tensor],
        is_written: Callable[[Operation], bool],
    ) -> None:
        self.needs = needs
        self.aliases = aliases
        self.is_written = is_written
        self.frames = control_flow_info(order, needs)
        self.positions = {op.name: position for position, op in enumerate(order)}
        self.loops = {frame.name: frame for frame in self.frames.values() if frame is not ROOT}
        self.contexts: dict[str, Context | None] = {}
        self.loop_contexts: dict[LoopFrame, Context | None] = {}
        self.predicates: list[BranchPredicate] = []
        self.members: dict[LoopFrame, list[Operation]] = {}
        self.children: dict[LoopFrame, list[LoopFrame]] = {}
        self._numbers: dict[tuple[Key, LoopFrame, str, int], int] = {}
        for op in order:
            frame = self.frames[op.name]
            self.members.setdefault(frame, []).append(op)
        for loop in self.loops.values():
            self.children.setdefault(loop.parent or ROOT, []).append(loop)

    def context(self, tensor: Tensor, frame: LoopFrame) -> Context | None:
        """Where a tensor is alive, as the operations of a frame see it."""
        if self.needs.is_fed(tensor):
            return ALWAYS
        context = self.context_of_op(tensor.op, frame)
        if tensor.op.type not in SWITCH_OPS:
            return context
        switch = tensor.op
        kind: _Kind = "index" if switch.type == "_SwitchN" else "bool"
        predicate = self.predicate(kind, switch.inputs[1], len(switch.outputs), switch)
        return both(context, ((predicate.number, tensor.value_index),))

    def context_of_op(self, op: Operation, frame: LoopFrame) -> Context | None:
        """Where an operation is run, as the operations of a frame see it."""
        if op.type in ENTER_OPS and self.frames[op.name] is not frame:
            return ALWAYS
        if op.type in EXIT_OPS:
            return self.loop_contexts[self.frames[op.name]]
        return self.contexts[op.name]

    def context_of_inputs(self, op: Operation) -> Context | None:
        """Where all inputs and control inputs of an operation are alive."""
        frame = self.frames[op.name]
        found = [self.context(tensor, frame) for tensor in op.inputs]
        found += [self.context_of_op(control, frame) for control in self.needs.controls(op)]
        return all_of(found)

    def predicate(
        self, kind: _Kind, tensor: Tensor, branches: int, op: Operation
    ) -> BranchPredicate:
        """What a tensor decides, for an operation that sees it: a Switch, the condition of a loop, or a Merge.

        Raises:
            ControlFlowFormError: the tensor is a reference, whose value may change between two looks.
        """
        if tensor.dtype.is_ref and kind != "alive":
            raise ControlFlowFormError("a reference decides", op)
        key = self.resolved(tensor), self.frames[op.name], kind, branches
        number = self._numbers.setdefault(key, len(self.predicates))
        if number == len(self.predicates):
            self.predicates.append(BranchPredicate(number, kind, tensor, branches, op))
        return self.predicates[number]

    def resolved(self, tensor: Tensor) -> Key:
        """The tensor that a tensor is another name for."""
        while not self.needs.is_fed(tensor) and key_of(tensor) in self.aliases:
            tensor = self.aliases[key_of(tensor)]
        return key_of(tensor)


@dataclass(frozen=True, slots=True)
class Choose:
    """On this branch the value of a Merge is that input."""

    op: Operation
    index: int


@dataclass(frozen=True, slots=True)
class FirstAlive:
    """A Merge whose inputs stand in any contexts: its value is the first input that is alive."""

    op: Operation
    contexts: Sequence[Context | None]


@dataclass(frozen=True, slots=True)
class Conditional:
    """The items of each branch of a predicate."""

    predicate: BranchPredicate
    branches: dict[int, list[Item]]


@dataclass(frozen=True, slots=True)
class Loop:
    """A loop: `condition` in every turn, `body` where the test holds, `after` once where not."""

    variables: Sequence[Variable]
    test: Operation
    condition: list[Item]
    body: list[Item]
    after: list[Item]


Item = Operation | Choose | FirstAlive | Conditional | Loop


@dataclass(frozen=True, slots=True)
class Arrangement:
    """A graph as a program.

    Attributes:
        items: What is run, in order.
        fetched_in: Where each fetch is alive; None for nowhere.
        predicates: The predicates that decide between branches; their places are their numbers.
    """

    items: Sequence[Item]
    fetched_in: Sequence[Context | None]
    predicates: Sequence[BranchPredicate]
