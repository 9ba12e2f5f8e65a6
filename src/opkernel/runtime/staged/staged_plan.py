"""StagedPlan: compiled plans that run one after the other, some of them side by side.

Graphs with branches that run side by side become staged plans, and so do graphs with very many nodes.
Values go from plan to plan through the slots of a list; constants are in each plan that reads them.
Branches run on the threads with which kernels share their work (`shard`). Nobody waits for a thread that
has not begun, so that busy threads cost no more than they would have saved.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from contextvars import Context, copy_context
from itertools import chain
from typing import Any, NamedTuple

from opkernel.graph import Operation, Tensor
from opkernel.graph.core.edges import Edge
from opkernel.kernel import Step, shard
from opkernel.records import replace
from opkernel.runtime.plan.compiled_plan import CompiledPlan, compile_plan
from opkernel.runtime.plan.functional_ops import RUN_BY_EXECUTORS
from opkernel.runtime.program.subgraph import ExecutorArgs
from opkernel.runtime.staged.stages import Stage

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


class _Nodes(NamedTuple):
    """The operations of a branch, the constants from outside that they read, and their other inputs."""

    ops: list[Operation]
    constants: list[Operation]
    inputs: list[Edge]


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
        may_wait: Whether the plans may wait for asynchronous kernels.

    Raises:
        NotFoundError, InvalidArgumentError, KernelMayWaitError: as `compile_plan`.

    Attributes:
        uses_step: Whether any node looks at the step.
    """

    def __init__(
        self, stages: Sequence[Stage], args: ExecutorArgs, *, may_wait: bool = True
    ) -> None:
        self._args = args
        self._may_wait = may_wait
        self._slot_of = {_edge(tensor): slot for slot, tensor in enumerate(args.feeds)}
        self._fed = set(self._slot_of)
        self._fed_ops = {op for op, _ in self._fed}
        nodes = [[self._nodes(branch.ops) for branch in stage] for stage in stages]
        fetched = list(map(_edge, args.fetches))
        self._wanted: dict[Operation, set[int]] = {}
        for op, index in chain(fetched, *(branch.inputs for stage in nodes for branch in stage)):
            self._wanted.setdefault(op, set()).add(index)
        self._stages = [
            self._running(stage, of_stage) for stage, of_stage in zip(stages, nodes, strict=True)
        ]
        self._results = [self._slot_of[edge] for edge in fetched]
        self.uses_step = any(
            branch.plan.uses_step for stage in self._stages for branch in stage.branches
        )
        self._find_unused()
        self._empty = [None] * (len(self._slot_of) - len(args.feeds))

    def verdict(self, faster: float) -> tuple[list[bool], float]:
        """The verdict about the stages.

        Args:
            faster: Side by side must be below this part of the time one after the other.

        Returns:
            Which stages should run their branches side by side; and how much the other stages lost by it.
        """
        pays = [stage.seconds[1] < faster * stage.seconds[0] for stage in self._stages]
        lost = [
            max(stage.seconds[1] - stage.seconds[0], 0.0)
            for stage, paid in zip(self._stages, pays, strict=True)
            if not paid and len(stage.branches) > 1
        ]
        return pays, sum(lost)

    def __repr__(self) -> str:
        feeds, fetches = len(self._args.feeds), len(self._args.fetches)
        return (
            f"<opkernel.StagedPlan of {len(self._args.order):,} operations: {feeds:,} fed, "
            f"{fetches:,} fetched; `.source` is its text>"
        )

    @property
    def source(self) -> str:
        """The texts of the plans."""
        texts = []
        for number, stage in enumerate(self._stages):
            width = len(stage.branches)
            texts.append(f"# Stage {number}{f', of {width} side by side' if width > 1 else ''}\n")
            texts += [branch.plan.source for branch in stage.branches]
        return "\n".join(texts)

    def run(self, step: Step, *feeds: Any) -> Sequence[Any]:
        """Run one step; the fetched values."""
        slots = [*feeds, *self._empty]
        for stage in self._stages:
            stage.run(step, slots)
        return tuple([slots[i] for i in self._results])

    def try_out(self, together: bool) -> Callable[..., Sequence[Any]]:
        """The function that runs a step with all branches side by side, or none, and times it."""

        def run(step: Step, *feeds: Any) -> Sequence[Any]:
            slots = [*feeds, *self._empty]
            for stage in self._stages:
                stage.together = together and len(stage.branches) > 1
                stage.try_out(step, slots)
            return tuple([slots[i] for i in self._results])

        return run

    def _running(self, stage: Stage, nodes: Sequence[_Nodes]) -> _RunningStage:
        longest_first = sorted(range(len(stage)), key=lambda number: -stage[number].seconds)
        return _RunningStage(list(map(self._compiled, nodes)), longest_first)

    def _compiled(self, nodes: _Nodes) -> _PlanOfBranch:
        outputs = [
            (op, index)
            for op in nodes.ops
            if op in self._wanted
            for index in sorted(self._wanted[op])
            if (op, index) not in self._fed
        ]
        args = replace(
            self._args,
            feeds=[op.outputs[index] for op, index in nodes.inputs],
            fetches=[op.outputs[index] for op, index in outputs],
            targets=(),
            operations=[*nodes.constants, *nodes.ops],
        )
        plan = compile_plan(args, may_wait=self._may_wait)
        for edge in outputs:
            self._slot_of[edge] = len(self._slot_of)
        slots = [[self._slot_of[edge] for edge in edges] for edges in (nodes.inputs, outputs)]
        return _PlanOfBranch(plan, *slots)

    def _nodes(self, ops: list[Operation]) -> _Nodes:
        own, fed_ops, outside = set(ops), self._fed_ops, dict[Edge, None]()
        for op in ops:
            edges = op.edges
            for i in range(0, len(edges), 2):
                source = edges[i]
                if source not in own or (source in fed_ops and (source, edges[i + 1]) in self._fed):
                    outside[source, edges[i + 1]] = None
        constants = {
            edge: edge[0]
            for edge in outside
            if edge not in self._fed and self._is_constant(edge[0])
        }
        return _Nodes(ops, [*constants.values()], [e for e in outside if e not in constants])

    def _is_constant(self, op: Operation) -> bool:
        args = self._args
        if op.edges or op.type in RUN_BY_EXECUTORS or args.library.function_of(op) is not None:
            return False
        return args.kernels.kernel(op).const_tensor is not None

    def _find_unused(self) -> None:
        """Have each stage let go of what no later one reads, feeds and results aside."""
        seen = {*self._results, *range(len(self._args.feeds))}
        for stage in reversed(self._stages):
            read = {slot for branch in stage.branches for slot in branch.inputs}
            stage.unused = sorted(read - seen)
            seen |= read


def _edge(tensor: Tensor) -> Edge:
    return tensor.op, tensor.value_index
