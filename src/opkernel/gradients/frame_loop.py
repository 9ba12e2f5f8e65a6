"""FrameLoop: a loop of TensorFlow 1 as one thing with inputs and outputs.

Its variables go round: Enter, Merge, Switch, NextIteration and back to the Merge, and from the Switch
to an Exit. Its constants enter by an Enter that gives a value to all turns.

Source: TensorFlow core/graph/control_flow.cc, core/kernels/control_flow_ops.cc.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from opkernel.errors import InvalidArgumentError, UnimplementedError
from opkernel.gradients.node_methods import nodes
from opkernel.graph import Graph, Operation, Tensor
from opkernel.graph.core.control_flow_ops import (
    EXIT_OPS,
    LOOP_HEAD_OPS,
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
        if merge.type in LOOP_HEAD_OPS and len(backs) == 1 and switches:
            exits = [op for s in switches for op in s.outputs[0].consumers() if op.type in EXIT_OPS]
            return LoopVariable(enter, merge, switches[0], backs[0].inputs[0], exits)
    raise UnimplementedError(
        f"Gradients of the loop that '{enter.name}' enters are not implemented: a variable of a loop must "
        "have the form Enter, Merge, Switch, NextIteration",
        node=enter.name,
        op=enter.type,
    )
