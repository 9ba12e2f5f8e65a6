"""Plans in stages: a graph cut into what runs one after the other, and what may run side by side.

The nodes that take long decide. They are cut where all that come later need all before. Between two cuts,
nodes that do not need each other, directly or not, are in branches of their own. The other nodes go where
their inputs are: what needs only one branch is part of it, what needs several comes after them. Sets of
nodes that take long are the bits of integers.

A `StagedPlan` runs a compiled plan for each branch. Values go from plan to plan through the slots of a list;
constants are in each plan that reads them. Branches run on the threads with which kernels share their work
(`shard`). Nobody waits for a thread that has not begun, so that busy threads cost no more than they would
have saved.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextvars import Context, copy_context
from functools import reduce
from itertools import chain, groupby, pairwise
from operator import or_
from typing import Any, NamedTuple

from opkernel.graph import Operation, Tensor
from opkernel.graph.core.edges import Edge
from opkernel.kernel import Step, shard
from opkernel.records import replace
from opkernel.runtime.plan.compiled_plan import CompiledPlan, compile_plan, plan_repr
from opkernel.runtime.plan.functional_ops import RUN_BY_EXECUTORS
from opkernel.runtime.program.request import ExecutorArgs, Subgraph

_LONG_S = 20e-6  # a node that takes less is not worth the thought of it
_MOST_NODES = 1000
_LEAST_SAVED_S = 50e-6
_LEAST_SAVED = 0.15  # of the time that the branches take one after the other

Sources = Callable[[Operation], Iterable[Operation]]


class StageBranch(NamedTuple):
    """Nodes that run one after the other, and the seconds that the expensive ones take."""

    ops: list[Operation]
    seconds: float


Stage = list[StageBranch]
"""Branches that may run side by side; a single branch runs by itself."""

_Region = dict[str, int]
"""The nodes that take long of several branches, each with the number of its branch."""


def find_stages(
    order: Sequence[Operation],
    sources: Sources,
    seconds: Mapping[str, float],
    is_independent: Callable[[Operation], bool],
    threads: int,
) -> list[Stage]:
    """The stages of a graph; none where no branches would save time.

    Nodes that are not independent stay in stages of their own, in the order that they have.

    Args:
        order: The operations, inputs before consumers.
        sources: What an operation waits for.
        seconds: What nodes take, by name.
        is_independent: Whether a node may run beside others.
        threads: How many there are.
    """
    found = _regions(order, sources, seconds)
    regions = [region for region in found if _is_worthwhile(region, seconds, threads)]
    independent = {op.name for op in order if is_independent(op)}
    while regions:
        placed = _place(order, sources, regions, independent)
        if not isinstance(placed, int):
            kept = [op for op in order if op.name not in independent]
            if kept != [op for _, op in _by_place(placed, order) if op.name not in independent]:
                return []
            return _stages(placed, order, seconds)
        del regions[placed]
    return []


def without_branches(stages: Sequence[Stage], kept: Sequence[bool]) -> list[Stage]:
    """The stages in order; neighbours that are not kept become one stage of one branch."""
    found: list[Stage] = []
    for is_kept, run in groupby(zip(stages, kept, strict=True), lambda one: one[1]):
        together = [stage for stage, _ in run]
        if is_kept:
            found += together
        else:
            branches = [branch for stage in together for branch in stage]
            ops = [op for branch in branches for op in branch.ops]
            found.append([StageBranch(ops, sum(branch.seconds for branch in branches))])
    return found


def _regions(
    order: Sequence[Operation], sources: Sources, seconds: Mapping[str, float]
) -> list[_Region]:
    """The operations between two cuts, in branches."""
    limit = max(_LONG_S, sum(seconds.values()) / _MOST_NODES)
    needed = _needed(order, sources, {name for name, took in seconds.items() if took >= limit})
    names = list(needed)
    by_depth = sorted(range(len(names)), key=lambda number: needed[names[number]].bit_count())
    bits = [needed[names[number]] for number in by_depth]
    regions = []
    for start, stop in _between_cuts(by_depth, bits):
        groups = _components(by_depth[start:stop], bits[start:stop])
        if len(groups) > 1:
            branches = enumerate(groups)
            regions.append({names[n]: branch for branch, group in branches for n in group})
    return regions


def _needed(order: Sequence[Operation], sources: Sources, long: Collection[str]) -> dict[str, int]:
    """For each node that takes long, in order: which of these it needs, itself included."""
    found: dict[str, int] = {}
    by_all: dict[str, int] = {}
    for op in order:
        bits = reduce(or_, (by_all.get(source.name, 0) for source in sources(op)), 0)
        if op.name in long:
            bits |= 1 << len(found)
            found[op.name] = bits
        by_all[op.name] = bits
    return found


def _between_cuts(numbers: Sequence[int], needed: Sequence[int]) -> list[tuple[int, int]]:
    """The ranges of nodes between places where all later ones need all before."""
    common = [0] * len(numbers)  # to the nodes from each place on
    bits = -1
    for place in reversed(range(len(numbers))):
        bits &= needed[place]
        common[place] = bits
    cuts, before = [], 0
    for place, number in enumerate(numbers):
        if before & ~common[place] == 0:
            cuts.append(place)
        before |= 1 << number
    return list(pairwise([*cuts, len(numbers)]))


def _components(numbers: Sequence[int], needed: Sequence[int]) -> list[list[int]]:
    """Nodes in groups that do not need each other."""
    groups: list[int] = []
    inside = sum(1 << number for number in numbers)
    for number, bits in zip(numbers, needed, strict=True):
        group = (bits & inside) | 1 << number
        group |= reduce(or_, (other for other in groups if other & group), 0)
        groups = [other for other in groups if not other & group] + [group]
    return [[number for number in numbers if group >> number & 1] for group in groups]


def _is_worthwhile(region: _Region, seconds: Mapping[str, float], threads: int) -> bool:
    """Whether branches side by side would save time, if threads did not slow each other down."""
    branches: dict[int, float] = {}
    for name, branch in region.items():
        branches[branch] = branches.get(branch, 0.0) + seconds[name]
    total = sum(branches.values())
    saved = total - max(*branches.values(), total / threads)
    return saved >= max(_LEAST_SAVED_S, _LEAST_SAVED * total)


_Place = tuple[int, int]
"""A stage, and a branch in it; before, between and after the regions are stages of one branch."""


def _place(
    order: Sequence[Operation],
    sources: Sources,
    regions: Sequence[_Region],
    independent: Collection[str],
) -> dict[str, _Place] | int:
    """Where each node goes; the number of a region that this is not possible with."""
    fixed = {
        name: (2 * number + 1, branch)
        for number, region in enumerate(regions)
        for name, branch in region.items()
    }
    places: dict[str, _Place] = {}
    for op in order:
        ends = {places[source.name] for source in sources(op) if source.name in places}
        last = max((stage for stage, _ in ends), default=0)
        branches = {branch for stage, branch in ends if stage == last}
        is_free = op.name in independent
        if last % 2 and (len(branches) > 1 or not is_free):
            last, branches = last + 1, {0}
        place = last, min(branches, default=0)
        wanted = fixed.get(op.name)
        if wanted is not None and wanted != place:
            if last >= wanted[0] or not is_free:
                return wanted[0] // 2
            place = wanted
        places[op.name] = place
    return places


def _by_place(
    places: Mapping[str, _Place], order: Sequence[Operation]
) -> list[tuple[_Place, Operation]]:
    """The operations in the order in which they run if none run side by side."""
    placed = [(places[op.name], op) for op in order]
    return sorted(placed, key=lambda one: one[0][0])


def _stages(
    places: Mapping[str, _Place], order: Sequence[Operation], seconds: Mapping[str, float]
) -> list[Stage]:
    ops: dict[int, dict[int, list[Operation]]] = {}
    for (stage, branch), op in _by_place(places, order):
        ops.setdefault(stage, {}).setdefault(branch, []).append(op)
    return [
        [
            StageBranch(nodes, sum(seconds.get(op.name, 0.0) for op in nodes))
            for nodes in stage.values()
        ]
        for stage in ops.values()
    ]


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

    Raises:
        NotFoundError, InvalidArgumentError: as `compile_plan`.

    Attributes:
        uses_step: Whether any node looks at the step.
    """

    def __init__(self, stages: Sequence[Stage], args: ExecutorArgs) -> None:
        self._args = args
        self._slot_of = {_edge(tensor): slot for slot, tensor in enumerate(args.feeds)}
        self._fed = set(self._slot_of)
        self._fed_ops = {op for op, _ in self._fed}
        nodes = [[self._nodes(branch.ops) for branch in stage] for stage in stages]
        fetched = list(map(_edge, args.fetches))
        self._wanted: dict[Operation, set[int]] = {}
        for op, index in chain(fetched, *(branch.inputs for stage in nodes for branch in stage)):
            self._wanted.setdefault(op, set()).add(index)
        self._stages = []
        for stage, of_stage in zip(stages, nodes, strict=True):
            longest_first = sorted(range(len(stage)), key=lambda number: -stage[number].seconds)
            self._stages.append(_RunningStage(list(map(self._compiled, of_stage)), longest_first))
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
        args = self._args
        return plan_repr(self, f"{len(args.order):,} operations", args.feeds, args.fetches)

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

    def _compiled(self, nodes: _Nodes) -> _PlanOfBranch:
        outputs = [
            (op, index)
            for op in nodes.ops
            if op in self._wanted
            for index in sorted(self._wanted[op])
            if (op, index) not in self._fed
        ]
        part = Subgraph(
            [op.outputs[index] for op, index in nodes.inputs],
            [op.outputs[index] for op, index in outputs],
            order=[*nodes.constants, *nodes.ops],
        )
        plan = compile_plan(replace(self._args, part=part))
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
        constants = {e: e[0] for e in outside if e not in self._fed and self._is_constant(e[0])}
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
