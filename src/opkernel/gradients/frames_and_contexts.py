"""Frames and contexts: which loops and which branches of TensorFlow 1 each operation of a graph is in.

Backpropagation walks the operations of one frame. A loop among them, with all that is inside, is one
unit of the walk.

A tensor in the branch of a conditional has no value where the branch is not taken. A context is a conjunction of
branches, sides of Switches, outer ones first.

Source: BuildControlFlowInfo in TensorFlow core/graph/control_flow.cc; python/ops/control_flow_ops.py (CondContext).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any

from opkernel.errors import InvalidArgumentError, OpError, UnimplementedError
from opkernel.gradients.gradient_nodes import any_value, nodes
from opkernel.graph import Graph, Operation, Tensor
from opkernel.graph.core.edges import is_head_of_loop
from opkernel.graph.core.frame_loops import frame_name
from opkernel.graph.core.structural_ops import (
    ENTER_OPS,
    EXIT_OPS,
    MERGE_OPS,
    NEXT_ITERATION_OPS,
    SWITCH_OPS,
)


@dataclass(frozen=True, slots=True, eq=False)
class LoopVariable:
    """A value that changes from turn to turn.

    Attributes:
        enter: gives the first value.
        merge: gives the value of each turn; the condition sees one more than the body.
        switch: gives the last value, or the value of a turn.
        result: the value that a turn gives to the next.
        exits: give the last value outside.
    """

    enter: Operation
    merge: Operation
    switch: Operation
    result: Tensor
    exits: Sequence[Operation]


class FrameLoop:
    """A loop of a graph; for a walk over operations it stands for all that is inside.

    Its variables go round: Enter, Merge, Switch, NextIteration and back to the Merge, and from the Switch
    to an Exit. Its constants enter by an Enter that gives a value to all turns.

    Attributes:
        name: the name of its frame.
        type: the op that stands for it in messages.
        graph: the graph that it is in.
        inputs: the first values of the variables, and the constants.
        outputs: the last values of the variables, as often as they leave the loop.
        variables: the variables; the first inputs are theirs.
        constants: the Enters of the constants; the other inputs are theirs.
        stops: tensors inside that count as constant for gradients.
        reached: for each input whether it depends on the tensors that gradients are with respect
            to.
    """

    type = "Enter"

    def __init__(self, name: str, enters: Sequence[Operation], stops: Sequence[Tensor]) -> None:
        self.name = name
        self.graph: Graph = enters[0].graph
        self.stops = stops
        self.variables = [_variable(op) for op in enters if not _is_constant(op)]
        self.constants = [op for op in enters if _is_constant(op)]
        self.inputs = tuple([op.inputs[0] for op in self.enters])
        self.outputs = tuple([op.outputs[0] for v in self.variables for op in v.exits])
        self.reached = [True] * len(self.inputs)

    @property
    def enters(self) -> list[Operation]:
        """The operations that lead into the loop, one for each input."""
        return [*[variable.enter for variable in self.variables], *self.constants]

    @property
    def arguments(self) -> list[Tensor]:
        """The tensors of a turn that stand for the inputs."""
        variables = [variable.merge.outputs[0] for variable in self.variables]
        return [*variables, *[enter.outputs[0] for enter in self.constants]]

    @property
    def results(self) -> list[Tensor]:
        """The tensors that a turn passes to the next, in the order of the arguments."""
        variables = [variable.result for variable in self.variables]
        return [*variables, *[enter.outputs[0] for enter in self.constants]]

    @property
    def condition(self) -> Tensor:
        """Whether there is another turn."""
        if not self.variables:
            raise InvalidArgumentError(f"The loop '{self.name}' has no variables")
        return self.variables[0].switch.inputs[1]

    def add_variable(self, first: Tensor, turn: Callable[[Tensor], Tensor]) -> Tensor:
        """Give it a further variable.

        Args:
            first: its first value.
            turn: adds the nodes that make the next value from a value.

        Returns:
            Its last value.
        """
        like = self.variables[0].enter
        iterations = like.get_attr("parallel_iterations")
        enter = nodes.Enter(first, frame_name=self.name, parallel_iterations=iterations)
        merge = nodes.Merge([enter, enter]).output
        last, value = nodes.Switch(merge, self.condition)
        merge.op.update_input(1, nodes.NextIteration(turn(nodes.Identity(value))))
        result: Tensor = nodes.Exit(last)
        return result


def is_loop_switch(op: Operation) -> bool:
    """Whether an operation is the Switch of a loop's variable."""
    return op.type in SWITCH_OPS and op.edges[2].type == "LoopCond"


def _is_constant(enter: Operation) -> bool:
    return bool(enter.node_def.attr["is_constant"].b)


def _variable(enter: Operation) -> LoopVariable:
    """The variable that an Enter begins."""
    for merge in enter.outputs[0].consumers():
        backs = [t.op for t in merge.inputs if t.op.type in NEXT_ITERATION_OPS]
        switches = [op for op in merge.outputs[0].consumers() if is_loop_switch(op)]
        if merge.type in MERGE_OPS and len(backs) == 1 and switches:
            exits = [op for s in switches for op in s.outputs[0].consumers() if op.type in EXIT_OPS]
            return LoopVariable(enter, merge, switches[0], backs[0].inputs[0], exits)
    raise UnimplementedError(
        f"Gradients of the loop that '{enter.name}' enters are not implemented: a variable of a loop must "
        "have the form Enter, Merge, Switch, NextIteration",
        node=enter.name,
        op=enter.type,
    )


Frame = tuple[str, ...]
"""The names of the loops around an operation, outermost first."""

Unit = Operation | FrameLoop
"""A unit of backpropagation."""


class Frames:
    """The frames of the operations of a graph.

    Attributes:
        enters: the operations that lead into each loop.
    """

    def __init__(self, graph: Graph) -> None:
        self._frames: dict[Operation, Frame] = {}
        self.enters: dict[Frame, list[Operation]] = {}
        for op in graph.get_operations():
            if op.type in ENTER_OPS:
                self.enters.setdefault(self.behind(op), []).append(op)

    def of(self, op: Operation) -> Frame:
        """The frame of an operation; an Enter is outside of its loop, an Exit inside."""
        frames, waiting = self._frames, [op]
        while waiting:
            source = _source(waiting[-1])
            if source is None or source in frames:
                frames[waiting.pop()] = () if source is None else self.behind(source)
            else:
                waiting.append(source)
        return frames[op]

    def behind(self, op: Operation) -> Frame:
        """The frame of the consumers of an operation."""
        frame = self._frames.get(op)
        if frame is None:
            frame = self.of(op)
        if op.type in ENTER_OPS:
            return (*frame, frame_name(op))
        return frame[:-1] if op.type in EXIT_OPS else frame

    def home(self, op: Operation) -> Frame:
        """The frame of the loop that an operation belongs to, that of an Enter and an Exit, too."""
        return self.behind(op) if op.type in ENTER_OPS else self.of(op)


def in_frame_of(tensor: Tensor) -> AbstractContextManager[None]:
    """Let new constants be in the loop that a tensor is in."""
    is_in_loop = Frames(tensor.graph).behind(tensor.op)
    return tensor.graph.control_dependencies([tensor.op] if is_in_loop else [])


def settle_shapes(graph: Graph) -> None:
    """Let tensors in loops have the shapes that they have in all turns, as far as that is known."""
    frames = Frames(graph)
    if not frames.enters:
        return
    try:
        shapes = graph.infer_shapes()
    except OpError:  # kernels raise where shapes do not fit
        return
    for tensor, shape in shapes.items():
        if frames.home(tensor.op) and not tensor.shape.is_fully_defined():
            tensor.set_shape(shape)


class Level:
    """One frame of a graph as backpropagation sees it: its operations, and the loops in it."""

    def __init__(self, ys: Sequence[Tensor], stops: Iterable[Tensor]) -> None:
        """The frame that results are in; `stops` are for the loops to know of."""
        self._loops: dict[Frame, FrameLoop] = {}
        self._stops = tuple(stops)
        self._frames = Frames(ys[0].graph) if ys else None
        if self._frames is not None and self._frames.enters:
            self._frame = min([self._frames.behind(y.op) for y in ys], key=len)
        else:
            self._frames = None

    def unit(self, op: Operation) -> Unit | None:
        """The unit of an operation; None outside of the frame and in another turn."""
        if self._frames is None:
            return op
        if op.type in NEXT_ITERATION_OPS and self._frames.of(op) == self._frame:
            return None
        home, depth = self._frames.home(op), len(self._frame)
        if home[:depth] != self._frame:
            return None
        return op if len(home) == depth else self._loop(home[: depth + 1])

    def unit_of_argument(self, x: Tensor) -> Unit:
        """The unit of a tensor by which we differentiate.

        Raises:
            UnimplementedError: there is a border of a loop between the tensor and the results.
        """
        unit = self.unit(x.op)
        if unit is None or (isinstance(unit, FrameLoop) and x not in unit.outputs):
            raise UnimplementedError(
                f"Gradients with respect to '{x.name}' are not implemented: it is in another loop than "
                "the results",
                node=x.op.name,
                op=x.op.type,
            )
        return unit

    def sources(self, unit: Unit) -> list[Unit]:
        """The producer of each input of a unit that lies in the frame."""
        return self._units([tensor.op for tensor in unit.inputs])

    def consumers(self, tensor: Tensor) -> list[Unit]:
        """The consumers of a tensor in the frame."""
        return self._units(tensor.consumers())

    def _units(self, ops: Iterable[Operation]) -> list[Unit]:
        return [unit for op in ops if (unit := self.unit(op)) is not None]

    def _loop(self, frame: Frame) -> FrameLoop:
        loop = self._loops.get(frame)
        if loop is None:
            assert self._frames is not None
            of_loop = self._frames.home
            stops = [stop for stop in self._stops if of_loop(stop.op)[: len(frame)] == frame]
            loop = self._loops[frame] = FrameLoop(frame[-1], self._frames.enters[frame], stops)
        return loop


def _source(op: Operation) -> Operation | None:
    """An operation that tells the frame: that of the first edge that is no back edge."""
    sources: tuple[Operation, ...] = (*op.edges[::2], *op.control_inputs)
    for source in sources:
        if source.type not in NEXT_ITERATION_OPS:
            return source
    return None


_PASSING = frozenset({"Identity", "Switch", "_SwitchN"})


@dataclass(frozen=True, slots=True)
class Branch:
    """One output of a Switch.

    Attributes:
        decider: the predicate of the Switch.
        index: the output.
        number: how many outputs there are.
        is_indexed: whether outputs are chosen by their number, as `_SwitchN` does.
    """

    decider: Tensor
    index: int
    number: int
    is_indexed: bool

    def switch(self, value: Tensor, decider: Tensor) -> Any:
        """The outputs of a Switch of another value."""
        if self.is_indexed:
            return nodes._SwitchN(value, decider, num_outs=self.number, name="SwitchN")
        return nodes.Switch(value, decider)

    def fill(self, value: Tensor) -> Tensor:
        """A tensor that is alive in the other branches, too, with a value of no use."""
        graph = value.graph
        with graph.as_default(), graph.control_dependencies(None):
            with graph.control_dependencies([self.decider.op]):
                filling = any_value(value.dtype.base)
            sides = list(self.switch(filling, self.decider))
            sides[self.index] = value
            filled: Tensor = nodes.Merge(sides).output
            return filled


Context = tuple[Branch, ...]


class Contexts:
    """The contexts of the tensors of a graph, each within its loop."""

    def __init__(self, graph: Graph) -> None:
        self._has_switches = any(op.type in SWITCH_OPS for op in graph.get_operations())
        self._frames = Frames(graph) if self._has_switches else None
        self._known: dict[Operation, Context] = {}

    def of(self, tensor: Tensor) -> Context:
        """Where a tensor is alive."""
        if not self._has_switches:
            return ()
        waiting = [tensor.op]
        while waiting:
            op = waiting[-1]
            missing = [s for s in self._sources(op) if s not in self._known]
            if op in self._known:
                waiting.pop()
            elif missing:
                waiting += missing
            else:
                self._known[op] = self._context(op)
        return self._along(tensor)

    def _sources(self, op: Operation) -> list[Operation]:
        return [*[tensor.op for tensor in self._inputs(op)], *op.control_inputs]

    def _inputs(self, op: Operation) -> Sequence[Tensor]:
        """The inputs that decide whether an operation runs; a loop runs if its inputs are alive."""
        assert self._frames is not None
        if op.type in ENTER_OPS or is_head_of_loop(op):
            return ()
        if op.type in EXIT_OPS:
            return [enter.inputs[0] for enter in self._frames.enters[self._frames.of(op)]]
        return op.inputs

    def _context(self, op: Operation) -> Context:
        """The context of an operation whose inputs' contexts are known."""
        if op.type in ENTER_OPS or is_head_of_loop(op):
            return ()
        found = [self._along(tensor) for tensor in self._inputs(op)]
        if op.type in MERGE_OPS:
            return tuple([b for b in found[0] if all(b in other for other in found)])
        found += [self._known[control] for control in op.control_inputs]
        longest_first = sorted(found, key=len, reverse=True)
        return tuple(dict.fromkeys(branch for context in longest_first for branch in context))

    def _along(self, tensor: Tensor) -> Context:
        """The context of an operation that takes a tensor and nothing else."""
        op = tensor.op
        context = self._known[op]
        if op.type not in SWITCH_OPS or is_loop_switch(op):
            return context
        decider = _behind(op.inputs[1], frozenset({"Identity"}))
        branch = Branch(decider, tensor.value_index, len(op.outputs), op.type == "_SwitchN")
        return context if branch in context else (*context, branch)


def origin(tensor: Tensor) -> Tensor:
    """The tensor that one has its value from, wherever it is alive itself."""
    return _behind(tensor, _PASSING)


def _behind(tensor: Tensor, passing: frozenset[str]) -> Tensor:
    """The tensor behind a tensor, past operations of some kinds."""
    while tensor.op.type in passing:
        source: Tensor = tensor.op.inputs[0]
        if source.dtype.is_ref:  # its value may change
            break
        tensor = source
    return tensor
