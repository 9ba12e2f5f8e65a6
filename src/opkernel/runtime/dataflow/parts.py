"""Parts: pieces of a graph that the dataflow executor runs as compiled plans, each as if it were one node.

A part is a loop, or a set of nodes without control flow, in which nothing waits. A loop may wait at nodes where nothing
else of it could have an effect meanwhile (`awaiting_loops`): its plan is suspended there. Two nodes are in one such set if they
wait for the same nodes outside of sets, and the same nodes that may wait come after them. Hence all nodes of a
part become ready at one moment, all are dead or none is, no node from outside stands between two of them, and no node
that may wait starts later than it would without parts.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from functools import cache
from graphlib import CycleError, TopologicalSorter
from typing import Any

from opkernel.errors import InvalidArgumentError
from opkernel.graph import Operation, Tensor
from opkernel.graph.core.edges import edges_of, is_head_of_loop
from opkernel.graph.core.frame_loops import ROOT, LoopFrame, frame_name
from opkernel.graph.core.structural_ops import (
    ENTER_OPS,
    LOW_LEVEL_CONTROL_FLOW,
    NEXT_ITERATION_OPS,
    SWITCH_OPS,
    TRANSFER_OPS,
)
from opkernel.graph.edit.subgraph import Needs
from opkernel.kernel import Step
from opkernel.records import dataclass
from opkernel.runtime.dataflow.awaiting_loops import AwaitingLoop
from opkernel.runtime.plan.builder import NotRaisedError
from opkernel.runtime.plan.compiled_plan import CompiledPlan, compile_plan
from opkernel.runtime.plan.functional_ops import RUN_BY_EXECUTORS, calls_functions
from opkernel.runtime.plan.keys import Key, key_of, keys_of_inputs
from opkernel.runtime.plan.services import first_alive
from opkernel.runtime.program.request import ExecutorArgs, Subgraph
from opkernel.runtime.program.waiting import any_call_waits

_FEWEST = (
    4  # nodes that a plan is made for: to make it takes as long as some hundred runs of two nodes
)
_FEWEST_IN_LOOPS = 2


@dataclass(slots=True, eq=False)
class Part:
    """A part of a graph.

    Attributes:
        operations: Its nodes, inputs before consumers, without the constants that it takes.
        plan: Computes `outputs`, given `inputs`.
        inputs: The tensors that it takes.
        outputs: The tensors that others take from it.
        suspends: Whether the plan is a generator that yields where a kernel has to wait.
    """

    operations: Sequence[Operation]
    plan: CompiledPlan
    inputs: Sequence[Tensor]
    outputs: Sequence[Tensor]
    suspends: bool = False

    def reader(self, names: Iterable[str]) -> Operation:
        """The first node that takes one of these tensors; the first of all if none does."""
        wanted = set(names)
        found = (op for op in self.operations if any(tensor.name in wanted for tensor in op.inputs))
        return next(found, self.operations[0])

    def function(self) -> Callable[[Step, list[Any]], Any]:
        """Runs the plan on a list of the inputs, which it empties: a value is freed after its last use."""
        run, call = self.plan.run, _with_last_references(len(self.inputs))
        return lambda step, inputs: call(run, step, inputs)


@cache
def _with_last_references(count: int) -> Callable[..., Sequence[Any]]:
    """Calls a function with so many items of a list, so that only the callee refers to them.

    A call with `*inputs` would keep a tuple of them until its end.
    """
    items = "".join(f", pop({'0' if index < count - 1 else ''})" for index in range(count))
    source = f"def call(run, step, inputs):\n pop = inputs.pop\n return run(step{items})\n"
    names: dict[str, Any] = {}
    exec(source, names)  # the text depends on a number only
    call: Callable[..., Sequence[Any]] = names["call"]
    return call


def find_parts(args: ExecutorArgs, frame_of: Mapping[str, LoopFrame], needs: Needs) -> list[Part]:
    """The parts of a graph, which have no node in common.

    Args:
        args: The graph.
        frame_of: The loop of each operation, by name.
        needs: What operations need, with the feeds of the graph.

    Raises:
        NotFoundError: a node has no kernel.
        InvalidArgumentError: a node is invalid.
    """
    return _Finder(args, frame_of, needs).parts()


class _Finder:
    def __init__(self, args: ExecutorArgs, frame_of: Mapping[str, LoopFrame], needs: Needs) -> None:
        self._args = args
        self._order = args.order
        self._frame_of = frame_of
        self._needs = needs
        self._fed = {key_of(tensor) for tensor in args.feeds}
        self._constants: dict[str, Operation] = {}
        self._awaiting: set[str] = set()  # the nodes at which plans of loops may be suspended
        self._fit = {op.name for op in self._order if self._fits(op)}
        self._readers: dict[Key, list[str]] = {}
        for op in self._order:
            for key in keys_of_inputs(op):
                self._readers.setdefault(key, []).append(op.name)
        for tensor in args.fetches:
            self._readers.setdefault(key_of(tensor), []).append("")

    def parts(self) -> list[Part]:
        """The loops, and the other parts."""
        loops = self._loops()
        units = self._units(loops)
        if units is None:  # a value goes from a loop back into the same loop
            loops, units = [], self._units([])
        return [*loops, *self._straight(units or [])]

    def _fits(self, op: Operation) -> bool:
        """Whether a plan may run a node: nothing waits in it. Also notes the constants that any plan may take."""
        if op.type in LOW_LEVEL_CONTROL_FLOW or op.type in TRANSFER_OPS:
            return False
        if any(t.is_ref for t in op.output_types) or any(t.dtype.is_ref for t in op.inputs):
            return False
        pool = self._args.pool
        if calls_functions(op):
            return pool is None and not any_call_waits([op], self._args.library)
        if op.type in RUN_BY_EXECUTORS:
            return True
        kernel = self._args.kernels.kernel(op)
        if kernel.const_tensor is not None:
            if not op.control_inputs:
                self._constants[op.name] = op
            return True
        if kernel.as_async() is not None:
            self._awaiting.add(op.name)
            return False
        return pool is None or not kernel.is_expensive

    def _loops(self) -> list[Part]:
        """The outermost loops that plans can run."""
        members: dict[LoopFrame, list[Operation]] = {}
        refused: set[LoopFrame] = set()
        frames = {frame.name: frame for frame in self._frame_of.values()}
        for op in self._order:
            frame = self._frame_of[op.name]
            around = [one for one in (frame, *frame.around) if one is not ROOT]
            entered = frames.get(frame_name(op)) if op.type in ENTER_OPS else None
            for one in around if entered is None else (entered, *around):
                members.setdefault(one, []).append(op)
            if entered is not None and op.control_inputs:
                refused.add(entered)
            if self._may_wait(op):
                refused.update(around[op.name in self._awaiting :])
        found: dict[LoopFrame, Part] = {}
        for frame in sorted(members, key=lambda frame: frame.depth):
            if frame not in refused and found.keys().isdisjoint(frame.around):
                try:
                    found[frame] = self._loop(frame, members[frame])
                except (NotRaisedError, InvalidArgumentError):
                    continue  # it runs turn by turn
        return [*found.values()]

    def _loop(self, frame: LoopFrame, members: Sequence[Operation]) -> Part:
        """A loop as a part; raises as `_part` does."""
        awaiting = {op for op in members if op.name in self._awaiting}
        if awaiting:
            inner = {op for op in members if self._frame_of[op.name] is frame}
            late = {op for op in self._order if self._may_wait(op)} - awaiting
            loop = AwaitingLoop(frame.name, members, inner, awaiting, self._needs)
            if not loop.may_suspend(late):
                raise NotRaisedError("other nodes go on while it waits", next(iter(awaiting)))
        return self._part(members, suspends=bool(awaiting))

    def _may_wait(self, op: Operation) -> bool:
        return op.name not in self._fit and op.type not in LOW_LEVEL_CONTROL_FLOW

    def _part(self, ops: Sequence[Operation], *, suspends: bool = False) -> Part:
        """A part of these nodes, which are in order.

        Raises:
            NotRaisedError: there is no form for its control flow.
            InvalidArgumentError: its loops are malformed.
        """
        names, constants = {op.name for op in ops}, dict[str, Operation]()
        inputs: dict[Key, Tensor] = {}
        for tensor in (tensor for op in ops for tensor in op.inputs):
            key, name = key_of(tensor), tensor.op.name
            if key in self._fed or name not in names:
                if key not in self._fed and name in self._constants:
                    constants[name] = tensor.op
                else:
                    inputs[key] = tensor
        outputs = [tensor for op in ops for tensor in op.outputs if self._is_read(tensor, names)]
        part = Subgraph([*inputs.values()], outputs, order=[*constants.values(), *ops])
        args = ExecutorArgs(part, self._args.kernels, self._args.library)
        plan = compile_plan(args, suspends=suspends)
        if suspends and (plan.is_cut or _chooses_first_alive(plan)):
            raise NotRaisedError("its plan cannot be suspended", ops[0])
        return Part(ops, plan, part.feeds, outputs, suspends)

    def _is_read(self, tensor: Tensor, names: Collection[str]) -> bool:
        """Whether a tensor of a part is fetched, or read by a node outside."""
        key = key_of(tensor)
        return key not in self._fed and any(one not in names for one in self._readers.get(key, ()))

    def _units(self, loops: Sequence[Part]) -> list[Sequence[Operation]] | None:
        """The loops and all other nodes, each behind those that it waits for; None if they wait in a circle."""
        if not loops:
            return [(op,) for op in self._order]
        loop_of = {op.name: loop.operations for loop in loops for op in loop.operations}
        units: dict[str, Sequence[Operation]] = {}
        waits: dict[str, set[str]] = {}
        for op in self._order:
            unit = loop_of.get(op.name, (op,))
            units[unit[0].name] = unit
            sources = {name for name, _ in self._sources(op)}
            names = {loop_of[name][0].name if name in loop_of else name for name in sources}
            waits.setdefault(unit[0].name, set()).update(names - {unit[0].name})
        try:
            return [units[name] for name in TopologicalSorter(waits).static_order()]
        except CycleError:
            return None

    def _sources(self, op: Operation) -> list[Key]:
        """The tensors that a node waits for, but for back edges; the number of a control input is -1."""
        edges = [(source.name, index) for source, index in edges_of(op)]
        if is_head_of_loop(op):
            backward = {
                source.name for source in op.edges[::2] if source.type in NEXT_ITERATION_OPS
            }
            edges = [edge for edge in edges if edge[0] not in backward]
        edges += [(source.name, -1) for source in self._needs.controls(op)]
        return [edge for edge in edges if edge not in self._fed]

    def _straight(self, units: Sequence[Sequence[Operation]]) -> list[Part]:
        """The parts without control flow: nodes that wait for the same, and for which the same nodes wait."""
        before, after = self._before(units), self._after(units)
        groups: dict[tuple[LoopFrame, int, int], list[Operation]] = {}
        for unit in units:
            op = unit[0]
            if len(unit) == 1 and op.name in self._fit and op.name not in self._constants:
                key = self._frame_of[op.name], before[op.name, -1], after.get(op.name, 0)
                groups.setdefault(key, []).append(op)
        return [
            self._part(ops)
            for (frame, _, _), ops in groups.items()
            if len(ops) >= (_FEWEST if frame is ROOT else _FEWEST_IN_LOOPS)
        ]

    def _before(self, units: Sequence[Sequence[Operation]]) -> dict[Key, int]:
        """What the readers of each tensor, and of each node (-1), wait for: a bit for each unit that is no fit node.

        The outputs of a Switch have further bits: not all are alive.
        """
        found: dict[Key, int] = {}
        same: dict[int, int] = {}  # many nodes share one number
        bits = 0
        for unit in units:
            names = {op.name for op in unit}
            mask = 0
            for name, index in (key for op in unit for key in self._sources(op)):
                if name not in names:
                    mask |= found.get((name, index), found[name, -1])
            if len(unit) > 1 or unit[0].name not in self._fit:
                mask |= 1 << bits
                bits += 1
            mask = same.setdefault(mask, mask)
            found.update(dict.fromkeys([(name, -1) for name in names], mask))
            if unit[0].type in SWITCH_OPS:
                for index in range(len(unit[0].output_types)):
                    found[unit[0].name, index] = mask | 1 << bits
                    bits += 1
        return found

    def _after(self, units: Sequence[Sequence[Operation]]) -> dict[str, int]:
        """Which nodes that may wait come after each node: a bit for each of them."""
        found: dict[str, int] = {}
        same: dict[int, int] = {}
        bits = 0
        for unit in reversed(units):
            names = {op.name for op in unit}
            mask = 0
            for name in names:
                mask |= found.get(name, 0)
            if any(map(self._may_wait, unit)):
                mask |= 1 << bits
                bits += 1
            mask = same.setdefault(mask, mask)
            for name in {name for op in unit for name, _ in self._sources(op)} - names:
                found[name] = found.get(name, 0) | mask
        return found


def _chooses_first_alive(plan: CompiledPlan) -> bool:
    """Whether a Merge of a plan may have more than one input that is alive: dataflow takes the first that comes."""
    return any(one.value is first_alive for one in plan.tree.globals.values())
