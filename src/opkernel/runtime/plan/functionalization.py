"""Functionalization: a graph with control flow of TensorFlow 1 as a tree of statements, conditionals and loops.

The operations of one frame are ordered so that those of one context stand together. Ready operations on the
branch that was written last come first, then those nearest to it. That gives few conditionals, and keeps the
given order where there are none. Operations that wait for the test of a loop come after all others. A graph
without such a form is left to the dataflow executor, as a whole.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from heapq import heappop, heappush
from itertools import groupby
from typing import Generic, TypeVar

from opkernel.graph import Operation, Tensor
from opkernel.graph.core.edges import is_head_of_loop
from opkernel.graph.core.frame_loops import (
    ROOT,
    ControlFlowFormError,
    LoopFrame,
    Variable,
    check_sources,
    frame_name,
    loop_test,
    loop_variables,
)
from opkernel.graph.core.structural_ops import ENTER_OPS, EXIT_OPS, MERGE_OPS, TRANSFER_OPS
from opkernel.graph.edit.subgraph import Needs
from opkernel.runtime.plan.builder import NotRaisedError
from opkernel.runtime.plan.keys import Key
from opkernel.runtime.plan.v1_control_flow import (
    ALWAYS,
    Arrangement,
    BranchPredicate,
    Choose,
    Conditional,
    Context,
    FirstAlive,
    Flow,
    Item,
    Loop,
    all_of,
    are_exclusive,
    both,
    either,
)

T = TypeVar("T")

_Predicates = tuple[int, ...]

_MAX_DEPTH = 100

_Item = Operation | LoopFrame | Choose | FirstAlive

Placed = tuple[Context, _Item]
"""An item and its context; a frame stands for its loop."""


class _Task:
    """An item that waits for its place; `waits` counts its missing inputs, `then` lists its consumers."""

    __slots__ = ("context", "is_decided", "item", "number", "then", "waits")

    def __init__(self, number: int, item: _Item) -> None:
        self.number = number
        self.item = item
        self.waits = 0
        self.then: list[_Task] = []
        self.context: Context | None = None
        self.is_decided = False

    def wait_for(self, other: "_Task") -> None:
        self.waits += 1
        other.then.append(self)


def schedule(flow: Flow, frame: LoopFrame, test: BranchPredicate | None = None) -> list[Placed]:
    """The items of a frame in order, each with its context.

    Args:
        flow: What is known of the graph; the contexts are filled in.
        frame: The frame.
        test: What decides whether it goes on, if it is a loop.

    Raises:
        NotRaisedError: something of the frame waits for itself, or there is no form for it.
    """
    return list(_Schedule(flow, frame, test).run())


class _Ready(Generic[T]):
    """Gives an item of the context that was last taken from, or else of the nearest context.

    Near are contexts of the same predicates. Within a context, and between those that are equally
    near, the lowest number comes first.
    """

    def __init__(self) -> None:
        self._heaps: dict[Context, list[tuple[int, int, T]]] = {}
        self._under: dict[_Predicates, dict[Context, None]] = {}
        self._all: list[tuple[int, Context]] = []
        self._current: Context = ALWAYS
        self._puts = 0

    def put(self, number: int, context: Context, item: T) -> None:
        """Add an item."""
        self._puts += 1
        if context not in self._heaps:
            self._heaps[context] = []
            for predicates in _prefixes(context):
                self._under.setdefault(predicates, {})[context] = None
        heappush(self._heaps[context], (number, self._puts, item))
        heappush(self._all, (number, context))

    def take(self) -> T | None:
        """Remove and return the next item; None if there is none."""
        if not self._heaps:
            return None
        context = self._current = self._nearest()
        heap = self._heaps[context]
        _, _, item = heappop(heap)
        if not heap:
            del self._heaps[context]
            for predicates in _prefixes(context):
                del self._under[predicates][context]
        return item

    def _nearest(self) -> Context:
        if self._current in self._heaps:
            return self._current
        for predicates in reversed(_prefixes(self._current)):
            near = self._under.get(predicates)
            if near:
                return min(near, key=lambda context: self._heaps[context][0])
        if ALWAYS in self._heaps:
            return ALWAYS
        while self._all[0][1] not in self._heaps:
            heappop(self._all)
        return self._all[0][1]


def _prefixes(context: Context) -> list[_Predicates]:
    """The predicates of a context: the first, the first two, and so on."""
    numbers = tuple(number for number, _ in context)
    return [numbers[: length + 1] for length in range(len(numbers))]


class _Schedule:
    def __init__(self, flow: Flow, frame: LoopFrame, test: BranchPredicate | None) -> None:
        self._flow = flow
        self._frame = frame
        self._test = test
        self._ready: _Ready[_Task] = _Ready()
        self._behind_test: list[_Task] | None = []
        self._tasks = self._all_tasks()
        self._startable = [task for task in reversed(self._tasks) if not task.waits]

    def run(self) -> Iterator[Placed]:
        """Place everything."""
        while True:
            while self._startable:
                self._start(self._startable.pop())
            task = self._ready.take()
            if task is None:
                if not self._pass_test():
                    break
                continue
            assert task.context is not None
            yield task.context, task.item
            self._finish(task)
        for task in self._tasks:
            if task.waits:
                raise NotRaisedError("it waits for itself", _operation(self._flow, task))

    def _all_tasks(self) -> list[_Task]:
        """A task for each operation and loop of the frame, with the tasks that it waits for."""
        flow, positions = self._flow, self._flow.positions
        members = flow.members.get(self._frame, ())
        of_op = {op.name: _Task(positions[op.name], op) for op in members}
        of_loop = {
            loop.name: _Task(positions[flow.members[loop][0].name], loop)
            for loop in flow.children.get(self._frame, ())
        }
        for op in members:
            task = of_op[op.name]
            for source in () if is_head_of_loop(op) else flow.needs.sources(op):
                if source.type in EXIT_OPS:
                    task.wait_for(of_loop[flow.frames[source.name].name])
                elif source.type not in ENTER_OPS:
                    task.wait_for(of_op[source.name])
            if op.type in ENTER_OPS and frame_name(op) in of_loop:
                of_loop[frame_name(op)].wait_for(task)
        return [*of_op.values(), *of_loop.values()]

    def _start(self, task: _Task) -> None:
        """Find the context of a task that waits for nothing any more, and have it placed."""
        item = task.item
        if task.is_decided:
            self._finish(task)
        elif isinstance(item, LoopFrame):
            enters = [op for op in self._flow.members[self._frame] if op.type in ENTER_OPS]
            found = [self._flow.contexts[e.name] for e in enters if frame_name(e) == item.name]
            self._put(task, all_of(found))
        elif isinstance(item, Operation) and item.type in MERGE_OPS and not is_head_of_loop(item):
            self._start_merge(task, item)
        else:
            assert isinstance(item, Operation)
            is_never_dead = item.type == "ControlTrigger" or is_head_of_loop(item)
            context = ALWAYS if is_never_dead else self._flow.context_of_inputs(item)
            self._put(task, context, is_written=self._flow.is_written(item))

    def _start_merge(self, task: _Task, merge: Operation) -> None:
        """Have the parts of a Merge placed: on each branch its value, or the choice of one."""
        flow = self._flow
        contexts = [flow.context(tensor, self._frame) for tensor in merge.inputs]
        alive = [context for context in contexts if context is not None]
        task.is_decided = True
        task.context = either(alive, flow.predicates) if alive else None
        if not alive:
            self._finish(task)
        elif task.context is not None and are_exclusive(alive):
            for index, context in enumerate(contexts):
                if context is not None:
                    self._put_part(task, Choose(merge, index), context)
        else:
            common = tuple(c for c in alive[0] if all(c in context for context in alive))
            if task.context is None:
                task.context = both(
                    common, ((flow.predicate("alive", merge.outputs[0], 2, merge).number, 1),)
                )
            self._put_part(task, FirstAlive(merge, contexts), common)

    def _put_part(self, merge: _Task, item: Choose | FirstAlive, context: Context) -> None:
        part = _Task(merge.number, item)
        merge.wait_for(part)
        self._put(part, context)

    def _put(self, task: _Task, context: Context | None, *, is_written: bool = True) -> None:
        """Note a task as ready; one that is never run, or gives no statements, is done."""
        task.context = context
        if context is None or not is_written:
            self._finish(task)
            return
        if context or self._test is not None:
            self._check(task, context)
        if self._test is not None:
            is_behind = any(number == self._test.number for number, _ in context)
            if is_behind and self._behind_test is not None:
                self._behind_test.append(task)
                return
            if not is_behind and self._behind_test is None:
                what = _operation(self._flow, task)
                raise NotRaisedError(
                    "it runs in every turn, after an operation that does not", what
                )
        self._ready.put(task.number, context, task)

    def _pass_test(self) -> bool:
        """Go on to what waits for the test of the loop; False if there is nothing."""
        tasks = self._behind_test
        self._behind_test = None
        for task in tasks or ():
            assert task.context is not None
            self._ready.put(task.number, task.context, task)
        return bool(tasks)

    def _finish(self, task: _Task) -> None:
        """Note the context of a placed item, and start the items that waited for it."""
        if isinstance(task.item, Operation):
            self._flow.contexts[task.item.name] = task.context
        elif isinstance(task.item, LoopFrame):
            self._flow.loop_contexts[task.item] = task.context
        for waiting in task.then:
            waiting.waits -= 1
            if not waiting.waits:
                self._startable.append(waiting)

    def _check(self, task: _Task, context: Context) -> None:
        """Raise NotRaisedError for what wants to know where it is run, or that it is not."""
        if isinstance(task.item, Operation) and task.item.type in TRANSFER_OPS:
            raise NotRaisedError("it is in a loop, or on a branch", task.item)
        if len(context) > _MAX_DEPTH:
            raise NotRaisedError("branches are nested too deeply", _operation(self._flow, task))


def _operation(flow: Flow, task: _Task) -> Operation:
    """The operation that a task is for; of a loop the first."""
    item = task.item
    if isinstance(item, LoopFrame):
        return flow.members[item][0]
    return item if isinstance(item, Operation) else item.op


def arrange(
    order: Sequence[Operation],
    feeds: Sequence[Tensor],
    fetches: Sequence[Tensor],
    aliases: dict[Key, Tensor],
    is_written: Callable[[Operation], bool],
) -> Arrangement:
    """Arrange the operations of a graph, some of which are control flow of TensorFlow 1.

    Args:
        order: The operations.
        feeds: The tensors that are given.
        fetches: The tensors that are wanted.
        aliases: The tensors that are other names for tensors; variables of loops that never change
            are added.
        is_written: Whether an operation gives statements.

    Raises:
        InvalidArgumentError: the loops of the graph are malformed.
        NotRaisedError: there is no form for it.
    """
    needs = Needs(feeds)
    flow = Flow(order, needs, aliases, is_written)
    try:
        _check_borders(order, fetches, feeds, flow.frames, needs)
        items = _Arranger(flow).items(ROOT)
    except ControlFlowFormError as error:
        raise NotRaisedError(error.reason, error.at) from error
    return Arrangement(items, [flow.context(t, ROOT) for t in fetches], flow.predicates)


def _check_borders(
    order: Sequence[Operation],
    fetches: Sequence[Tensor],
    feeds: Sequence[Tensor],
    frames: Mapping[str, LoopFrame],
    needs: Needs,
) -> None:
    """Raise ControlFlowFormError where values cross the border of a loop otherwise than by its variables."""
    for tensor in feeds:
        if frames.get(tensor.op.name, ROOT) is not ROOT:
            raise ControlFlowFormError("a tensor inside a loop is fed", tensor.op)
    for tensor in fetches:
        op, frame = tensor.op, frames.get(tensor.op.name, ROOT)
        is_inside = op.type in ENTER_OPS or (
            frame is not ROOT and not (op.type in EXIT_OPS and frame.parent is ROOT)
        )
        if is_inside and not needs.is_fed(tensor):
            raise ControlFlowFormError("a tensor inside a loop is fetched", op)
    for op in order:
        check_sources(op, needs)


class _Arranger:
    def __init__(self, flow: Flow) -> None:
        self._flow = flow
        self._variables: dict[LoopFrame, list[Variable]] = {}
        for loop in sorted(flow.loops.values(), key=lambda loop: loop.depth, reverse=True):
            found = loop_variables(loop, flow.members[loop], flow.frames, flow.needs)
            self._variables[loop] = found
            for variable in found:
                head = variable.head.name, 0
                if flow.resolved(variable.next) == head:  # it keeps its value
                    flow.aliases[head] = variable.start

    def items(self, frame: LoopFrame) -> list[Item]:
        """The items outside of loops."""
        return self._nested(schedule(self._flow, frame), 0)

    def _loop(self, frame: LoopFrame) -> Loop:
        """The items of a loop."""
        flow, members = self._flow, self._flow.members[frame]
        cond = loop_test(members)
        test = flow.predicate("bool", cond.outputs[0], 2, cond)
        parts: dict[int | None, list[Placed]] = {None: [], 0: [], 1: []}
        for context, item in schedule(flow, frame, test):
            rest = tuple(choice for choice in context if choice[0] != test.number)
            parts[dict(context).get(test.number)].append((rest, item))
        variables = self._variables[frame]
        self._check_context(cond, ALWAYS)
        for variable in variables:
            self._check_context(variable.next.op, ((test.number, 1),))
        for op in members:
            if op.type in EXIT_OPS:
                self._check_context(op, ((test.number, 0),))
        changing = [v for v in variables if (v.head.name, 0) not in flow.aliases]
        return Loop(changing, cond, *(self._nested(parts[part], 0) for part in (None, 1, 0)))

    def _check_context(self, op: Operation, expected: Context) -> None:
        if self._flow.contexts[op.name] != expected:
            raise NotRaisedError("it does not run in every turn, or runs in one turn too many", op)

    def _nested(self, placed: Sequence[Placed], depth: int) -> list[Item]:
        """Items by the branches that they are on, from the predicate at `depth` of the contexts.

        Neighbours with the same predicate are joined branch by branch: no two branches of a predicate run.
        """
        items: list[Item] = []
        for number, run in groupby(placed, lambda one: _number_at(one[0], depth)):
            if number is None:
                items += [self._loop(i) if isinstance(i, LoopFrame) else i for _, i in run]
                continue
            branches: dict[int, list[Placed]] = {}
            for context, item in run:
                branches.setdefault(context[depth][1], []).append((context, item))
            nested = {branch: self._nested(branches[branch], depth + 1) for branch in branches}
            items.append(Conditional(self._flow.predicates[number], nested))
        return items


def _number_at(context: Context, depth: int) -> int | None:
    """The predicate at a place of a context; None behind its end."""
    return context[depth][0] if depth < len(context) else None
