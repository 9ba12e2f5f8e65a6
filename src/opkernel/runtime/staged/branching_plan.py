"""BranchingPlan: runs a graph by one plan, or in stages with branches, whichever is faster.

What is found out holds for feeds of about the same size. A step at a time is measured; others that
run meanwhile, and all once it is decided, just run.
"""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable, Generator, Sequence
from functools import partial
from typing import Any

from opkernel.errors import OpError
from opkernel.graph import Operation, Tensor
from opkernel.graph.core.garbage_collection import paused_garbage_collection
from opkernel.graph.edit.prune import Needs
from opkernel.interrupts import trying
from opkernel.kernel import (
    ContextParams,
    OpKernel,
    Step,
    global_kernel_registry,
    intra_op_threads,
)
from opkernel.runtime.plan.compiled_plan import CompiledPlan, compile_plan
from opkernel.runtime.program.executors import Executor, ExecutorArgs
from opkernel.runtime.staged.candidates import is_independent
from opkernel.runtime.staged.staged_plan import StagedPlan
from opkernel.runtime.staged.stages import Stage, find_stages, without_branches
from opkernel.runtime.step.kernel_watcher import CallWatcher, KernelWatcher, Runner
from opkernel.runtime.watch.watched_computation import computation
from opkernel.types import NUMBER_TYPES

__all__ = ["BranchingPlan"]

_LONG_STEP_S = 300e-6  # a shorter one is not worth the measurement
_SHORT_STEPS = 100  # after which there is no hope of long ones
_COMPILING_S = 100e-6  # a node, of a plan that is measured and one in stages
_TIMED = 2
_TRIALS = 5
_FEWEST_TRIALS = 2
_TRIALS_S = 0.5  # after which the fewest will do
_FASTER = 0.9  # of the time one after the other: what side by side must be below

_Run = Callable[..., Sequence[Any]]


class BranchingPlan:
    """An executor that finds out which way of running a graph is the fastest.

    Args:
        plan: Runs the nodes one after the other.
        args: What it was made from.

    Attributes:
        uses_step: Whether anything looks at the step: a trial does.
        run: Runs one step: `run(step, *feeds)` gives the fetches.
    """

    uses_step = True

    def __init__(self, plan: Executor, args: ExecutorArgs) -> None:
        self._plan = plan
        self._args = args
        self._made_at = self._versions()
        self._trials: dict[int, _Trial] = {}
        self.run = self._by_magnitude()

    def _by_magnitude(self) -> _Run:
        """The function that runs a step in the way found best for feeds of about its size."""
        sized = [i for i, feed in enumerate(self._args.feeds) if _may_vary(feed)]
        trials, new_trial = self._trials, partial(_Trial, self._plan, self._find_out)

        def run(step: Step, *feeds: Any) -> Sequence[Any]:
            size = 0
            for index in sized:
                size += feeds[index].size
            magnitude = size.bit_length() >> 1
            trial = trials.get(magnitude) or trials.setdefault(magnitude, new_trial())
            return trial.run(step, *feeds)

        return run

    def __repr__(self) -> str:
        feeds, fetches = len(self._args.feeds), len(self._args.fetches)
        return (
            f"<opkernel.BranchingPlan of {len(self._args.order):,} operations: {feeds:,} fed, "
            f"{fetches:,} fetched; `.source` is its text>"
        )

    @property
    def source(self) -> str:
        """The text of the plan that runs one node after the other, and of a faster plan if there is one."""
        plans: dict[Executor, None] = {self._plan: None}
        plans.update(
            (trial.fastest, None) for trial in list(self._trials.values()) if trial.fastest
        )
        return "\n".join(plan.source for plan in plans)

    def _versions(self) -> tuple[int, int]:
        """A value that changes when a new plan would be of another graph."""
        order = self._args.order
        return order[0].graph.edits if order else 0, global_kernel_registry().version

    def _find_out(self) -> Generator[_Run, float, Executor]:
        """Yields the plan for the next step, and takes the seconds of that step; returns the fastest."""
        if (yield from self._takes_long()) and self._may_compile():
            stages = yield from self._find_stages()
            if stages:
                return (yield from self._fastest(stages))
        return self._plan

    def _takes_long(self) -> Generator[_Run, float, bool]:
        """Run steps until they have taken as long as compiling would; whether they ever do."""
        spent, short = 0.0, 0  # the time of long steps, the number of others
        while short < _SHORT_STEPS:
            took = yield self._plan.run
            if took < _LONG_STEP_S:
                short += 1
                continue
            spent += took
            if spent >= _COMPILING_S * len(self._args.order):
                return True
        return False

    def _may_compile(self) -> bool:
        return intra_op_threads() > 1 and self._versions() == self._made_at

    def _find_stages(self) -> Generator[_Run, float, list[Stage]]:
        """Measure the nodes, and cut the graph into stages."""
        seconds: dict[str, float] = {}
        timed = self._compiled(_Stopwatch(seconds, self._args.watcher))
        for _ in range(_TIMED):
            yield timed.run
        args = self._args
        sources = Needs(args.feeds).sources
        return find_stages(args.order, sources, seconds, is_independent, intra_op_threads())

    def _fastest(self, stages: Sequence[Stage]) -> Generator[_Run, float, Executor]:
        """Try the branches of the stages out."""
        staged = self._staged(stages)
        in_order = together = math.inf
        until = time.monotonic() + _TRIALS_S
        for number in range(_TRIALS):
            if number >= _FEWEST_TRIALS and time.monotonic() > until:
                break
            in_order = min(in_order, (yield self._plan.run))
            yield staged.try_out(together=False)
            together = min(together, (yield staged.try_out(together=True)))
        kept, lost = staged.verdict(_FASTER)
        if not any(kept) or together - lost > _FASTER * in_order:
            return self._plan
        fewer = without_branches(stages, kept)
        return staged if len(fewer) == len(stages) else self._staged(fewer)

    def _compiled(self, watcher: KernelWatcher) -> CompiledPlan:
        """The graph as a plan, node after node, whose kernels are watched."""
        args = self._args
        with paused_garbage_collection():
            return compile_plan(
                args.order, args.feeds, args.fetches, args.kernels, args.library, watcher
            )

    def _staged(self, stages: Sequence[Stage]) -> StagedPlan:
        with paused_garbage_collection():
            return StagedPlan(stages, self._args)


def _may_vary(feed: Tensor) -> bool:
    """Whether arrays of several sizes may be fed."""
    return feed.dtype in NUMBER_TYPES and not feed.shape.is_fully_defined()


class _Trial:
    """A trial with feeds of one size.

    Args:
        plan: The plan that runs where nothing is measured.
        find_out: Yields the plans to be measured, and returns the fastest in the end.

    Attributes:
        run: Runs a step.
        fastest: The fastest plan, once it is known.
    """

    def __init__(
        self, plan: Executor, find_out: Callable[[], Generator[_Run, float, Executor]]
    ) -> None:
        self.run: _Run = self._measure
        self.fastest: Executor | None = None
        self._plan = plan
        self._lock = threading.Lock()
        self._find_out = find_out()
        self._next = next(self._find_out)

    def _measure(self, step: Step, *feeds: Any) -> Sequence[Any]:
        if step.run_all_kernels_inline:
            return self._plan.run(step, *feeds)
        with trying(self._lock) as is_ours:
            if not is_ours:
                return self._plan.run(step, *feeds)
            start = time.perf_counter()
            results = self._next(step, *feeds)
            self._go_on(time.perf_counter() - start)
            return results

    def _go_on(self, seconds: float) -> None:
        try:
            self._next = self._find_out.send(seconds)
            return
        except StopIteration as end:
            self.fastest = end.value or self._plan  # where an interrupt has ended the trial
        except OpError:  # the trial cannot be compiled
            self.fastest = self._plan
        self.run = self.fastest.run


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
