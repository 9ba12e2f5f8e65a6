"""BranchingPlan: the strategy for branches, which runs a graph by one plan, or in stages with branches, whichever is faster.

A compiled plan runs node after node. Where two nodes take long and do not need each other, their branches may run side by
side. Only a trial tells whether that is faster: it depends on how much kernels leave of the processors and of the
interpreter's lock. So a BranchingPlan measures the nodes first, and `stages` forms branches from them. Then it measures
these branches one after the other and side by side. A graph whose expensive nodes form a chain gains nothing, and a short
step runs as it is. What is found out holds for feeds of about the same size.
"""

from __future__ import annotations

import math
import time
from collections.abc import Generator, Sequence
from functools import partial
from itertools import repeat
from typing import Any

from opkernel.graph import Operation, Tensor
from opkernel.graph.core.garbage_collection import paused_garbage_collection
from opkernel.graph.edit.subgraph import Needs
from opkernel.kernel import ContextParams, OpKernel, Step, global_kernel_registry, intra_op_threads
from opkernel.records import replace
from opkernel.runtime.adaptive.adaptive import Adaptive, Candidate, Patience, Search, take_turns
from opkernel.runtime.adaptive.stages import Stage, StagedPlan, find_stages, without_branches
from opkernel.runtime.plan.compiled_plan import compile_plan, plan_repr
from opkernel.runtime.program.executors import Executor, is_independent
from opkernel.runtime.program.request import ExecutorArgs
from opkernel.runtime.watch.kernel_watcher import CallWatcher, KernelWatcher, Runner
from opkernel.runtime.watch.watched_computation import computation
from opkernel.types import NUMBER_TYPES

_LONG_STEP_S = 300e-6  # a shorter one is not worth the measurement
_SHORT_STEPS = 100  # after which there is no hope of long ones
_COMPILING_S = 100e-6  # a node, of a plan that is measured and one in stages
_TIMED = 2
_TRIALS = 5
_FEWEST_TRIALS = 2
_TRIALS_S = 0.5  # after which the fewest will do
_FASTER = 0.9  # of the time one after the other: what side by side must be below


class BranchingPlan(Adaptive):
    """An executor that finds out which way of running a graph is the fastest.

    Args:
        plan: Runs the nodes one after the other.
        args: What it was made from.

    Attributes:
        uses_step: Whether anything looks at the step: a trial does.
        run: Runs one step: `run(step, *feeds)` gives the fetches.
    """

    uses_step = True
    name, most_kept = "branches", 32

    def __init__(self, plan: Executor, args: ExecutorArgs) -> None:
        super().__init__(plan.run, args.part.names, args.findings, Patience(repeat(1)))
        self._plan = plan
        self._args = args
        self._made_at = self._versions()
        self._sized = [i for i, feed in enumerate(args.feeds) if _may_vary(feed)]
        self._faster: dict[StagedPlan, None] = {}

    def __repr__(self) -> str:
        args = self._args
        return plan_repr(self, f"{len(args.order):,} operations", args.feeds, args.fetches)

    @property
    def source(self) -> str:
        """The text of the plan that runs one node after the other, and of a faster plan if there is one."""
        return "\n".join(plan.source for plan in (self._plan, *self._faster))

    def key_of(self, values: Sequence[Any]) -> int:
        """The magnitude of the feeds: half the bits of the number of elements that may vary."""
        size = 0
        for index in self._sized:
            size += values[index].size
        return size.bit_length() >> 1

    def describe(self, magnitude: int) -> str:
        """Say which feeds are of a magnitude."""
        if not self._sized:
            return "whatever is fed"
        return f"fed {(1 << 2 * magnitude) >> 1:,} to {(2 << 2 * magnitude) - 1:,} elements"

    def may_measure(self, step: Step) -> bool:
        """Whether a step may have branches on threads."""
        return not step.run_all_kernels_inline

    def search(self, magnitude: int) -> Search:
        """Try branches out, once steps have taken as long as compiling would."""
        plan = Candidate("plan", self.general)
        takes_long = yield from self._takes_long(plan)
        if takes_long and intra_op_threads() > 1 and self._versions() == self._made_at:
            stages = yield from self._find_stages()
            if stages:
                return (yield from self._fastest(plan, stages))
        return plan

    def _versions(self) -> tuple[int, int]:
        """A value that changes when a new plan would be of another graph."""
        order = self._args.order
        return order[0].graph.edits if order else 0, global_kernel_registry().version

    def _takes_long(self, plan: Candidate) -> Generator[Candidate, float, bool]:
        """Run steps until they have taken as long as compiling would; whether they ever do."""
        spent, short = 0.0, 0  # the time of long steps, the number of others
        while short < _SHORT_STEPS:
            took = yield plan
            if took < _LONG_STEP_S:
                short += 1
                continue
            spent += took
            if spent >= _COMPILING_S * len(self._args.order):
                return True
        return False

    def _find_stages(self) -> Generator[Candidate, float, list[Stage]]:
        """Measure the nodes, and cut the graph into stages."""
        seconds: dict[str, float] = {}
        args = self._args
        watched = replace(args, watcher=_Stopwatch(seconds, args.watcher))
        with paused_garbage_collection():
            timed = compile_plan(watched)
        for _ in range(_TIMED):
            yield Candidate("plan with timed nodes", timed.run)
        sources = Needs(args.feeds).sources
        return find_stages(args.order, sources, seconds, is_independent, intra_op_threads())

    def _fastest(self, plan: Candidate, stages: Sequence[Stage]) -> Search:
        """Try the branches of the stages out."""
        staged = self._staged(stages)
        apart = Candidate("branches one after the other", staged.try_out(together=False))
        together = Candidate("branches side by side", staged.try_out(together=True))
        until = time.monotonic() + _TRIALS_S
        for number in range(_TRIALS):
            if number >= _FEWEST_TRIALS and time.monotonic() > until:
                break
            yield from take_turns([plan, apart, together])
        kept, lost = staged.verdict(_FASTER)
        if not any(kept) or min(together.times) - lost > _FASTER * min(plan.times):
            return plan
        fewer = without_branches(stages, kept)
        if len(fewer) < len(stages):
            staged = self._staged(fewer)
        self._faster[staged] = None
        return Candidate("branches side by side where that is faster", staged.run)

    def _staged(self, stages: Sequence[Stage]) -> StagedPlan:
        with paused_garbage_collection():
            return StagedPlan(stages, self._args)


def _may_vary(feed: Tensor) -> bool:
    """Whether arrays of several sizes may be fed."""
    return feed.dtype in NUMBER_TYPES and not feed.shape.is_fully_defined()


class _Stopwatch(KernelWatcher):
    """Notes the least time that each node took.

    Args:
        seconds: Takes them, by name.
        inner: Runs the kernels, where given: another watcher.
    """

    def __init__(self, seconds: dict[str, float], inner: KernelWatcher | None) -> None:
        self._seconds = seconds
        self._inner = inner

    def runner(self, op: Operation, kernel: OpKernel, params: ContextParams) -> Runner:
        """The function that runs a kernel, and notes how long it takes."""
        compute, watcher = computation(op, kernel, self._inner, params), self.call_watcher(op)
        return partial(watcher.call, lambda step, *inputs: compute(step, inputs, None))

    def call_watcher(self, op: Operation) -> CallWatcher:
        """The watcher that measures the time of a node that calls functions."""
        return _NodeTimer(op.name, self._seconds)


class _NodeTimer:
    """Notes the least time that a node took."""

    def __init__(self, name: str, seconds: dict[str, float]) -> None:
        self._name = name
        self._seconds = seconds

    def call(self, function: Runner, *arguments: Any) -> Sequence[Any]:
        """Compute the node."""
        start = time.perf_counter()
        results = function(*arguments)
        seconds = time.perf_counter() - start
        self._seconds[self._name] = min(self._seconds.get(self._name, math.inf), seconds)
        return results

    def requests(self, requests: Any) -> Any:
        """The calls that the dataflow executor asks for; it runs no plans."""
        return requests
