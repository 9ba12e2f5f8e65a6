"""Frames and iterations: what a step of the dataflow executor has computed so far.

A frame is one execution of a loop, an iteration one turn of it. The root frame, and those of calls of
functions, have one iteration.
Source: TensorFlow core/common_runtime/propagator_state.cc, pending_counts.h.
"""

from __future__ import annotations

import zlib
from collections.abc import Generator, Iterator, Sequence
from typing import Any

from opkernel.errors import ResourceExhaustedError
from opkernel.kernel import Step
from opkernel.records import dataclass
from opkernel.runtime.dataflow.node_item import (
    TAKE_AT_ONCE,
    Edge,
    FrameInfo,
    Kind,
    NodeItem,
    Requests,
    RootInfo,
)
from opkernel.runtime.plan.awaited_kernel import AwaitedKernel
from opkernel.runtime.plan.services import DEAD

_MAX_CALLS = 10_000  # in one another: a recursion without end stops there
_MERGE, _ENTER, _EXIT = int(Kind.MERGE), int(Kind.ENTER), int(Kind.EXIT)  # faster than the members
_NEXT_ITERATION, _TURN = int(Kind.NEXT_ITERATION), int(Kind.TURN)


@dataclass(slots=True, eq=False)
class PendingCall:
    """A node that calls functions, while it does.

    Attributes:
        item: The node.
        iteration: Where it is.
        inputs: Its inputs.
        requests: The calls that it asks for.
        depth: How many calls it is in, itself counted.
        function: The name of the function that is being run.
    """

    item: NodeItem
    iteration: Iteration
    inputs: Sequence[Any]
    requests: Requests
    depth: int
    function: str = ""


@dataclass(slots=True, eq=False)
class SuspendedPlan:
    """A part of a graph whose plan waits for a kernel.

    Attributes:
        item: The part.
        iteration: Where it is.
        steps: What the plan has still to do.
    """

    item: NodeItem
    iteration: Iteration
    steps: Generator[tuple[AwaitedKernel, Sequence[Any]], Sequence[Any], Sequence[Any]]


class Iteration:
    """One turn of a loop.

    Attributes:
        frame: The execution of the loop that it is of.
        number: Its number, from 0.
        slots: The inputs that have arrived; of a Merge the first that was alive, and its index.
        pending: The number of inputs that each node still waits for. Of a Merge the last bit says
            that no input that is alive has arrived.
        dead: How many dead inputs, data and control, have arrived for a node, where some have.
        outstanding: The number of nodes that are ready or being computed.
        children: The executions of loops inside that are under way, by name; those of functions, by
            call.
    """

    __slots__ = ("children", "dead", "frame", "number", "outstanding", "pending", "slots")

    def __init__(self, frame: Frame, number: int) -> None:
        self.frame = frame
        self.number = number
        self.slots = frame.slots[:]
        self.pending = frame.pending[:]
        self.dead: dict[int, int] = {}
        self.outstanding = 0
        self.children: dict[str | PendingCall, Frame] = {}


class Frame:
    """One execution of a loop, of a function, or of the whole graph.

    Attributes:
        info: The facts that all executions share.
        id: A number that tells executions apart, and is the same in all parts of a graph.
        outer: The iteration that the loop or function was entered from; None for the root frame.
        call: The innermost call that it is in.
        step: The step of its nodes, which knows that call.
        last: The number of the last iteration that was begun.
        iterations: The iterations that are under way.
        missing_enters: The number of Enters that have not been run.
        exits: How many times an Exit has led a value out.
        dead_exits: The Exits that were dead in the last iteration.
        postponed: The values that the next iteration starts with, once fewer are under way.
        slots: What every iteration starts with, invariants included.
        pending: What each node of a new iteration waits for.
        beginning: The nodes that are ready when an iteration begins.
        invariants: The invariants that no iteration finds in its slots: what takes them is a Merge, or they are dead.
    """

    __slots__ = (
        "beginning",
        "call",
        "dead_exits",
        "exits",
        "id",
        "info",
        "invariants",
        "iterations",
        "last",
        "missing_enters",
        "outer",
        "pending",
        "postponed",
        "slots",
        "step",
    )

    def __init__(
        self,
        info: FrameInfo,
        step: Step,
        outer: Iteration | None = None,
        call: PendingCall | None = None,
    ) -> None:
        self.info = info
        self.step = step
        self.outer = outer
        self.call = call
        self.id = 0
        if outer is not None and not isinstance(info, RootInfo):
            place = f"{outer.frame.id};{outer.number};{info.name}"
            self.id = zlib.crc32(place.encode())
        self.last = 0
        self.missing_enters = info.enters
        self.exits = 0
        self.dead_exits: list[NodeItem] = []
        self.postponed: list[tuple[NodeItem, Any]] = []
        self.slots = info.slots
        self.pending = info.pending
        self.beginning: list[NodeItem] = []
        self.invariants: list[tuple[NodeItem, Any]] = []
        self.iterations = {0: Iteration(self, 0)}

    def keep(self, enter: NodeItem, value: Any) -> None:
        """Have all further iterations start with the value of an Enter."""
        edges = *enter.edges[0], *enter.controls
        if value is DEAD or any(consumer.kind == _MERGE for _, _, consumer in edges):
            self.invariants.append((enter, value))
            return
        if self.slots is self.info.slots:
            self.slots, self.pending = self.slots[:], self.pending[:]
        for slot, number, consumer in edges:
            if slot >= 0:
                self.slots[slot] = value
            self.pending[number] -= 1
            if not self.pending[number]:
                self.beginning.append(consumer)


class StepFrames:
    """The frames that are under way in a step, and the ready nodes; for one thread.

    Attributes:
        root: The iteration of the root frame.
        roots: It, and those of other partitions that are run with it.
        ready: The nodes that may be computed, each with its iteration.
        unfinished: The last iterations of loops that ended without a value for each Exit; a few.
    """

    def __init__(self, root: FrameInfo, step: Step) -> None:
        self.root = Frame(root, step).iterations[0]
        self.roots = [self.root]
        self.ready: list[tuple[NodeItem, Iteration]] = []
        self.unfinished: list[Iteration] = []

    def enter_function(
        self, call: PendingCall, body: RootInfo, step: Step, arguments: Sequence[Any]
    ) -> None:
        """Begin a function, with its own step; its `RETURN` becomes ready when it is over.

        Raises:
            ResourceExhaustedError: too many calls are in one another.
        """
        if call.depth > _MAX_CALLS:
            raise ResourceExhaustedError(
                f"Functions call each other too deeply: {call.function!r} is called within "
                f"{_MAX_CALLS} other calls"
            )
        frame = call.iteration.children[call] = Frame(body, step, call.iteration, call)
        first = frame.iterations[0]
        self.begin(first, arguments)
        if not first.outstanding:
            self.clean_up(first)

    def begin(self, iteration: Iteration, feeds: Sequence[Any]) -> None:
        """Make ready the nodes that a graph or function begins with."""
        info = iteration.frame.info
        assert isinstance(info, RootInfo)
        self.ready += [(item, iteration) for item in info.roots]
        iteration.outstanding = len(info.roots)
        self.activate(info.source, feeds, iteration)

    def hand_on_simply(self, item: NodeItem, outputs: Sequence[Any], iteration: Iteration) -> None:
        """As `hand_on` where `NodeItem.is_simple` holds, and much faster."""
        slots, pending, ready = iteration.slots, iteration.pending, self.ready
        before = len(ready)
        for output, edges in zip(outputs, item.edges, strict=True):
            for slot, number, consumer in edges:
                slots[slot] = output
                count = pending[number] = pending[number] - 1
                if not count:
                    ready.append((consumer, iteration))
        for _, number, consumer in item.controls:
            count = pending[number] = pending[number] - 1
            if not count:
                ready.append((consumer, iteration))
        more = len(ready) - before - 1
        if more:
            iteration.outstanding += more
            if not iteration.outstanding:
                self.clean_up(iteration)

    def hand_on(
        self, item: NodeItem, outputs: Sequence[Any], iteration: Iteration, is_dead: bool = False
    ) -> None:
        """Take the outputs of a node that is done; `is_dead`: it was not run, and all are dead."""
        kind = item.kind
        if kind <= _MERGE:
            self.activate(item, outputs, iteration, is_dead)
        elif kind == _NEXT_ITERATION:
            if not is_dead:
                self._next_iteration(item, outputs, iteration)
        elif kind == _ENTER:
            self._enter(item, outputs[0], iteration)
        elif kind == _EXIT:
            outer = iteration.frame.outer
            assert outer is not None  # checked when the graph was
            if not is_dead:
                iteration.frame.exits += 1
                self.activate(item, outputs, outer)
            elif iteration.number == iteration.frame.last:
                iteration.frame.dead_exits.append(item)
        else:
            self.activate(item, outputs, iteration, is_dead)
        iteration.outstanding -= 1
        if not iteration.outstanding:
            self.clean_up(iteration)

    def activate(
        self, item: NodeItem, outputs: Sequence[Any], iteration: Iteration, is_dead: bool = False
    ) -> None:
        """Give outputs to their consumers; consumers that have all inputs become ready."""
        slots, pending, dead = iteration.slots, iteration.pending, iteration.dead
        ready, found = self.ready, 0
        for output, edges in zip(outputs, item.edges, strict=True):
            if output is DEAD:
                found += self._give_dead(item, edges, iteration)
                continue
            for slot, number, consumer in edges:
                if consumer.kind in TAKE_AT_ONCE:
                    is_ready = self._take_at_once(output, slot, consumer, iteration)
                else:
                    slots[slot] = output
                    count = pending[number] = pending[number] - 1
                    is_ready = not count
                if is_ready:
                    found += 1
                    ready.append((consumer, iteration))
        for _, number, consumer in item.controls:
            if consumer.kind == _MERGE:
                count = pending[number] = pending[number] - 2
                is_ready = not count or (count == 1 and _all_dead(consumer, dead))
            else:
                if is_dead:
                    dead[number] = dead.get(number, 0) + 1
                pending[number] -= 1
                is_ready = not pending[number]
            if is_ready:
                found += 1
                ready.append((consumer, iteration))
        iteration.outstanding += found

    def clean_up(self, iteration: Iteration) -> None:
        """Drop an iteration that has nothing left to do, and iterations that waited for its end."""
        frame = iteration.frame
        if frame.outer is None:
            return
        found: Iteration | None = iteration
        while found is not None and _is_done(found):
            iteration, number = found, found.number
            del frame.iterations[number]
            if frame.postponed:
                self._begin_iteration(frame)
            found = frame.iterations.get(number + 1)
        if not frame.iterations:
            self._end(iteration)

    def drop(self) -> None:
        """Forget the ready nodes, and drop the iterations under way."""
        self.ready.clear()
        for iteration in list(self.iterations()):
            iteration.children.clear()

    def iterations(self) -> Iterator[Iteration]:
        """All that are under way, outer ones first."""
        waiting = [*self.roots]
        while waiting:
            iteration = waiting.pop()
            yield iteration
            for frame in iteration.children.values():
                waiting += frame.iterations.values()

    def _take_at_once(self, output: Any, slot: int, merge: NodeItem, iteration: Iteration) -> bool:
        """Give an input that is alive to a Merge, or to a NextIteration that need not run; whether it is ready now."""
        if merge.kind == _TURN:
            self._next_iteration(merge, (output,), iteration)
            return False
        count = iteration.pending[merge.id]
        if count & 1:
            iteration.pending[merge.id] = count - 1
            iteration.slots[merge.start] = output, merge.function[slot - merge.start]
        return count == 1

    def _give_dead(self, item: NodeItem, edges: Sequence[Edge], iteration: Iteration) -> int:
        """Give a dead output of a node to its consumers; how many are ready now.

        At once, an Exit notes it, and a NextIteration forgets it.
        """
        dead, pending, found = iteration.dead, iteration.pending, 0
        for slot, number, consumer in edges:
            if consumer.kind == _EXIT and pending[number] == 1:  # of most turns, so no further note
                pending[number] = 0
                if iteration.number == iteration.frame.last:
                    iteration.frame.dead_exits.append(consumer)
                continue
            dead[number] = dead.get(number, 0) + 1
            kind = consumer.kind
            if kind == _MERGE:
                # A loop that is not entered has no next turn either, so that a dead Enter is enough.
                is_over = item.kind == _ENTER or _all_dead(consumer, dead)
                is_ready = is_over and pending[number] == 1
            else:
                iteration.slots[slot] = DEAD
                count = pending[number] = pending[number] - 1
                is_ready = not count
            if not is_ready or kind in (_NEXT_ITERATION, _TURN):
                continue
            if kind != _EXIT:
                found += 1
                self.ready.append((consumer, iteration))
            elif iteration.number == iteration.frame.last:
                iteration.frame.dead_exits.append(consumer)
        return found

    def _enter(self, item: NodeItem, value: Any, iteration: Iteration) -> None:
        info = item.enters
        assert info is not None
        frame = iteration.children.get(info.name)
        if frame is None:
            around = iteration.frame
            frame = iteration.children[info.name] = Frame(info, around.step, iteration, around.call)
        frame.missing_enters -= 1
        if item.is_constant:
            frame.keep(item, value)
            for number in range(frame.last + 1):
                self.activate(item, (value,), frame.iterations[number], value is DEAD)
        else:
            self.activate(item, (value,), frame.iterations[0], value is DEAD)
        if not frame.missing_enters:
            first = frame.iterations.get(0)
            if first is not None and not first.outstanding:
                self.clean_up(first)

    def _next_iteration(self, item: NodeItem, outputs: Sequence[Any], iteration: Iteration) -> None:
        frame = iteration.frame
        if iteration.number < frame.last:
            following = frame.iterations[iteration.number + 1]
        elif len(frame.iterations) < frame.info.parallel_iterations:
            following = self._begin_iteration(frame)
        else:
            frame.postponed.append((item, outputs))
            return
        self.activate(item, outputs, following)

    def _begin_iteration(self, frame: Frame) -> Iteration:
        frame.last += 1
        iteration = frame.iterations[frame.last] = Iteration(frame, frame.last)
        frame.dead_exits.clear()
        postponed, frame.postponed = frame.postponed, []
        for item, outputs in postponed:
            self.activate(item, outputs, iteration)
        for item, value in frame.invariants:
            self.activate(item, (value,), iteration, value is DEAD)
        self.ready += [(item, iteration) for item in frame.beginning]
        iteration.outstanding += len(frame.beginning)
        return iteration

    def _end(self, last: Iteration) -> None:
        """Take a loop that is over out of the iteration that it was entered from; end a function."""
        frame = last.frame
        if isinstance(frame.info, RootInfo):
            self.ready.append((frame.info.sink, last))
            return
        if frame.exits + len(frame.dead_exits) < frame.info.exits and len(self.unfinished) < 10:
            self.unfinished.append(last)
        outer = frame.outer
        assert outer is not None
        del outer.children[frame.info.name]
        for item in frame.dead_exits:
            self.activate(item, (DEAD,), outer, is_dead=True)
        if not outer.outstanding:
            self.clean_up(outer)


def _all_dead(merge: NodeItem, dead: dict[int, int]) -> bool:
    return dead.get(merge.id, 0) == merge.stop - merge.start


def _is_done(iteration: Iteration) -> bool:
    if iteration.outstanding or iteration.children:
        return False
    frame = iteration.frame
    if iteration.number == 0:
        return not frame.missing_enters
    return iteration.number - 1 not in frame.iterations
