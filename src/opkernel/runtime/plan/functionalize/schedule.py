"""The order of the operations of one frame, so that those of one context stand together.

Ready operations on the branch that was written last come first, then those nearest to it. That gives few
conditionals, and keeps the given order where there are none. Operations that wait for the test of a loop
come after all others.
"""

from collections.abc import Iterator

from opkernel.graph import Operation
from opkernel.graph.core.control_flow_info import LoopFrame, frame_name
from opkernel.graph.core.control_flow_ops import ENTER_OPS, EXIT_OPS, MERGE_OPS, TRANSFER_OPS
from opkernel.graph.core.edges import is_head_of_loop
from opkernel.runtime.plan.functionalize.contexts import (
    ALWAYS,
    Context,
    Predicate,
    all_of,
    are_exclusive,
    both,
    either,
)
from opkernel.runtime.plan.functionalize.flow import Flow
from opkernel.runtime.plan.functionalize.items import Choose, FirstAlive, NotRaisedError
from opkernel.runtime.plan.functionalize.ready import Ready

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


def schedule(flow: Flow, frame: LoopFrame, test: Predicate | None = None) -> list[Placed]:
    """The items of a frame in order, each with its context.

    Args:
        flow: What is known of the graph; the contexts are filled in.
        frame: The frame.
        test: What decides whether it goes on, if it is a loop.

    Raises:
        NotRaisedError: something of the frame waits for itself, or there is no form for it.
    """
    return list(_Schedule(flow, frame, test).run())


class _Schedule:
    def __init__(self, flow: Flow, frame: LoopFrame, test: Predicate | None) -> None:
        self._flow = flow
        self._frame = frame
        self._test = test
        self._ready: Ready[_Task] = Ready()
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
                task.context = both(common, ((flow.aliveness(merge).number, 1),))
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
