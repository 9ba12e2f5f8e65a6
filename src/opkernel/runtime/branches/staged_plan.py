"""StagedPlan: compiled plans that run one after the other, some of them side by side.

Values go from plan to plan through the slots of a list; constants are in each plan that reads them.
Branches run on the threads that kernels share their work out to (`shard`): nobody waits for a thread
that has not begun, so that busy threads cost no more than what they would have saved.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable, Sequence
from contextvars import Context, copy_context
from typing import Any

from opkernel.graph import Operation, Tensor
from opkernel.kernel import Step, shard
from opkernel.runtime.branches.stages import Branch, Stage
from opkernel.runtime.control_flow import STRUCTURAL_OPS
from opkernel.runtime.executors import ExecutorArgs
from opkernel.runtime.plan import CompiledPlan, compile_plan
from opkernel.runtime.raising import key_of

__all__ = ["StagedPlan"]

_Slots = list[Any]


class _PlanOfBranch:
    """A plan that takes its inputs from slots, and puts its outputs there."""

    def __init__(self, plan: CompiledPlan, inputs: Sequence[int], outputs: Sequence[int]) -> None:
        self.plan = plan
        self.inputs = inputs
        self._outputs = outputs

    def __call__(self, step: Step, slots: _Slots) -> None:
        results = self.plan.run(step, *[slots[i] for i in self.inputs])
        for slot, result in zip(self._outputs, results, strict=True):
            slots[slot] = result


class _RunningStage:
    """The branches of a stage.

    Args:
        branches: Plans, in the order in which they run if none run side by side.
        longest_first: Their numbers.

    Attributes:
        branches: The plans.
        together: Whether they run side by side.
        seconds: The least that they have taken one after the other, and side by side.
        unused: The slots that nothing reads after it.
    """

    def __init__(self, branches: Sequence[_PlanOfBranch], longest_first: Sequence[int]) -> None:
        self.branches = branches
        self._longest_first = longest_first
        self.together = len(branches) > 1
        self.seconds = [math.inf, math.inf]
        self.unused: list[int] = []

    def run(self, step: Step, slots: _Slots) -> None:
        """Run the branches."""
        if self.together and not step.run_all_kernels_inline:
            self._run_together(step, slots)
        else:
            for branch in self.branches:
                branch(step, slots)
        for slot in self.unused:
            slots[slot] = None

    def try_out(self, step: Step, slots: _Slots) -> None:
        """Run the branches, and note how long they take."""
        start = time.perf_counter()
        self.run(step, slots)
        seconds = time.perf_counter() - start
        self.seconds[self.together] = min(self.seconds[self.together], seconds)

    def _run_together(self, step: Step, slots: _Slots) -> None:
        errors: list[tuple[int, Exception]] = []

        def work(part: tuple[int, Context]) -> None:
            number, context = part
            try:
                context.run(self.branches[number], step, slots)
            except Exception as error:
                errors.append((number, error))

        # Other threads lack the context variables of this one: the limit of memory is one.
        shard(work, [(number, copy_context()) for number in self._longest_first])
        try:
            if errors:
                raise min(errors, key=lambda one: one[0])[1]
        finally:
            errors.clear()  # they refer to this very list


class StagedPlan:
    """A graph in stages; `run(step, *feeds)` gives the fetches.

    Args:
        stages: The stages.
        args: The graph.

    Attributes:
        uses_step: Whether any node looks at the step.
    """

    def __init__(self, stages: Sequence[Stage], args: ExecutorArgs) -> None:
        self._args = args
        self._is_fed = set(map(key_of, args.feeds))
        self._slot_of = {key_of(tensor): slot for slot, tensor in enumerate(args.feeds)}
        self._constants = {op.name for op in args.order if _is_constant(op, args)}
        self._wanted = {key_of(t): t for t in args.fetches}
        for stage in stages:
            for branch in stage:
                self._wanted.update((key_of(t), t) for t in self._inputs(branch.ops))
        self._stages = [self._running(stage) for stage in stages]
        self._results = [self._slot_of[key_of(tensor)] for tensor in args.fetches]
        self.uses_step = any(
            branch.plan.uses_step for stage in self._stages for branch in stage.branches
        )
        self._find_unused()
        self._empty = [None] * (len(self._slot_of) - len(args.feeds))

    def verdict(self, faster: float) -> tuple[list[bool], float]:
        """What has been found out of the stages.

        Args:
            faster: Side by side must be below this part of the time one after the other.

        Returns:
            Which stages have branches that are to run side by side; what the others have lost by that.
        """
        pays = [stage.seconds[1] < faster * stage.seconds[0] for stage in self._stages]
        lost = [
            max(stage.seconds[1] - stage.seconds[0], 0.0)
            for stage, paid in zip(self._stages, pays, strict=True)
            if not paid and len(stage.branches) > 1
        ]
        return pays, sum(lost)

    @property
    def source(self) -> str:
        """The texts of the plans."""
        texts = []
        for number, stage in enumerate(self._stages):
            texts.append(f"# Stage {number}, of {len(stage.branches)} side by side\n")
            texts += [branch.plan.source for branch in stage.branches]
        return "\n".join(texts)

    def run(self, step: Step, *feeds: Any) -> Sequence[Any]:
        """Run one step; the fetched values."""
        slots = [*feeds, *self._empty]
        for stage in self._stages:
            stage.run(step, slots)
        return tuple([slots[i] for i in self._results])

    def try_out(self, together: bool) -> Callable[..., Sequence[Any]]:
        """What runs a step with all branches side by side, or none, and measures the stages."""

        def run(step: Step, *feeds: Any) -> Sequence[Any]:
            slots = [*feeds, *self._empty]
            for stage in self._stages:
                stage.together = together and len(stage.branches) > 1
                stage.try_out(step, slots)
            return tuple([slots[i] for i in self._results])

        return run

    def _running(self, stage: Stage) -> _RunningStage:
        longest_first = sorted(range(len(stage)), key=lambda number: -stage[number].seconds)
        return _RunningStage([self._compiled(branch) for branch in stage], longest_first)

    def _compiled(self, branch: Branch) -> _PlanOfBranch:
        args, ops = self._args, branch.ops
        own = {op.name for op in ops}
        inputs = self._inputs(ops)
        outputs = [
            tensor
            for op in ops
            for tensor in op.outputs
            if key_of(tensor) in self._wanted and key_of(tensor) not in self._is_fed
        ]
        constants = dict.fromkeys(
            t.op for op in ops for t in op.inputs if self._is_constant(t) and t.op.name not in own
        )
        plan = compile_plan(
            [*constants, *ops], inputs, outputs, args.kernels, args.library, args.watcher
        )
        for tensor in outputs:
            self._slot_of[key_of(tensor)] = len(self._slot_of)
        slots = [[self._slot_of[key_of(t)] for t in tensors] for tensors in (inputs, outputs)]
        return _PlanOfBranch(plan, *slots)

    def _inputs(self, ops: Iterable[Operation]) -> list[Tensor]:
        """What some operations take from others, constants aside."""
        own = {op.name for op in ops}
        tensors = {key_of(t): t for op in ops for t in op.inputs if not self._is_constant(t)}
        return [t for key, t in tensors.items() if key[0] not in own or key in self._is_fed]

    def _is_constant(self, tensor: Tensor) -> bool:
        return tensor.op.name in self._constants and key_of(tensor) not in self._is_fed

    def _find_unused(self) -> None:
        """Have each stage let go of what no later one reads, feeds and results aside."""
        seen = {*self._results, *range(len(self._args.feeds))}
        for stage in reversed(self._stages):
            read = {slot for branch in stage.branches for slot in branch.inputs}
            stage.unused = sorted(read - seen)
            seen |= read


def _is_constant(op: Operation, args: ExecutorArgs) -> bool:
    if op._edges or op.type in STRUCTURAL_OPS or args.library.function_of(op) is not None:
        return False
    return args.kernels.kernel(op).const_tensor is not None
