"""Arranging operations as a program: a tree of statements, conditionals and loops."""

from collections.abc import Callable, Sequence
from itertools import groupby

from opkernel.graph import Operation, Tensor
from opkernel.graph.core.control_flow_info import ROOT, LoopFrame
from opkernel.graph.core.control_flow_ops import EXIT_OPS
from opkernel.graph.core.loop_form import (
    ControlFlowFormError,
    Variable,
    loop_test,
    loop_variables,
)
from opkernel.graph.edit.prune import Needs
from opkernel.runtime.plan.functionalize.contexts import ALWAYS, Context
from opkernel.runtime.plan.functionalize.flow import Flow
from opkernel.runtime.plan.functionalize.items import (
    Arrangement,
    Conditional,
    Item,
    Loop,
    NotRaisedError,
)
from opkernel.runtime.plan.functionalize.loops import check_borders
from opkernel.runtime.plan.functionalize.schedule import Placed, schedule
from opkernel.runtime.plan.keys import Key


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
        check_borders(order, fetches, feeds, flow.frames, needs)
        items = _Arranger(flow).items(ROOT)
    except ControlFlowFormError as error:
        raise NotRaisedError(error.reason, error.at) from error
    return Arrangement(items, [flow.context(t, ROOT) for t in fetches], flow.predicates)


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
        test = flow.test(cond)
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
