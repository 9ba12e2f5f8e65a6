"""Flow: a graph's control flow for certain feeds: frames, contexts, predicates."""

from collections.abc import Callable, Sequence
from typing import Literal

from opkernel.graph import Operation, Tensor
from opkernel.graph.core.control_flow_info import ROOT, LoopFrame, control_flow_info
from opkernel.graph.core.control_flow_ops import ENTER_OPS, EXIT_OPS, SWITCH_OPS
from opkernel.graph.edit.prune import Needs
from opkernel.runtime.plan.functionalize.contexts import ALWAYS, Context, Predicate, all_of, both
from opkernel.runtime.plan.keys import Key, key_of


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
        self.predicates: list[Predicate] = []
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
        choice = self.predicate(tensor.op).number, tensor.value_index
        return both(context, (choice,))

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

    def predicate(self, switch: Operation) -> Predicate:
        """The predicate of a Switch."""
        branches = len(switch.outputs)
        if switch.type == "_SwitchN":
            return self._predicate("index", switch.inputs[1], branches, switch)
        return self._predicate("bool", switch.inputs[1], branches, switch)

    def test(self, loop_cond: Operation) -> Predicate:
        """The condition under which a loop goes on."""
        return self._predicate("bool", loop_cond.outputs[0], 2, loop_cond)

    def aliveness(self, merge: Operation) -> Predicate:
        """Whether a Merge has a value."""
        return self._predicate("alive", merge.outputs[0], 2, merge)

    def _predicate(
        self,
        kind: Literal["bool", "index", "alive"],
        tensor: Tensor,
        branches: int,
        op: Operation,
    ) -> Predicate:
        key = self.resolved(tensor), self.frames[op.name], kind, branches
        number = self._numbers.setdefault(key, len(self.predicates))
        if number == len(self.predicates):
            self.predicates.append(Predicate(number, kind, tensor, branches, op))
        return self.predicates[number]

    def resolved(self, tensor: Tensor) -> Key:
        """The tensor that a tensor is another name for."""
        while not self.needs.is_fed(tensor) and key_of(tensor) in self.aliases:
            tensor = self.aliases[key_of(tensor)]
        return key_of(tensor)
