"""Gradients of calls, conditionals and loops."""

from typing import Any

import opkernel.gradients as g
from opkernel.gradients.calls import call_gradient, case_gradient, if_gradient
from opkernel.gradients.frames_and_contexts import is_loop_switch
from opkernel.gradients.loops import while_gradient


@g.register_gradient("Switch", "RefSwitch")
def switch_gradient(op: g.Operation, when_false: g.Tensor, when_true: g.Tensor) -> g.Gradients:
    """The gradient of the side that was taken; each is dead where its side is."""
    if is_loop_switch(op):
        return when_true, None
    predicate = op.inputs[1]
    sides = [
        g.nodes.Switch(grad, predicate)[side] for side, grad in enumerate((when_false, when_true))
    ]
    return g.nodes.Merge(sides)[0], None


@g.register_gradient("_SwitchN")
def switch_n_gradient(op: g.Operation, *grads: g.Tensor) -> g.Gradients:
    """As of Switch, with more sides."""
    number = len(grads)
    sides = [
        g.nodes._SwitchN(grad, op.inputs[1], num_outs=number, name="SwitchN")[side]
        for side, grad in enumerate(grads)
    ]
    return g.nodes.Merge(sides)[0], None


@g.register_gradient("Merge", "RefMerge")
def merge_gradient(op: g.Operation, grad: g.Tensor, _: Any) -> g.Gradients:
    """The gradient goes to the input that came; it is dead for the others."""
    index = op.outputs[1]
    return [
        g.nodes.Switch(grad, g.nodes.Equal(index, number))[1] for number in range(len(op.inputs))
    ]


g.register_gradient("PartitionedCall", "StatefulPartitionedCall")(call_gradient)
g.register_gradient("If", "StatelessIf")(if_gradient)
g.register_gradient("Case", "StatelessCase")(case_gradient)
g.register_gradient("While", "StatelessWhile")(while_gradient)
