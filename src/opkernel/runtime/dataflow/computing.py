"""Computing one node: its inputs, its context, its function and its outputs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from opkernel.errors import InternalError
from opkernel.kernel import (
    ContextParams,
    FrameAndIter,
    OpKernelContext,
)
from opkernel.runtime.dataflow.frames import Iteration
from opkernel.runtime.dataflow.node_item import (
    Kind,
    NodeItem,
)
from opkernel.runtime.plan.keys import (
    dereferenced,
    referred_value,
)
from opkernel.runtime.plan.services import DEAD

_CALL, _STEP = int(Kind.CALL), int(Kind.STEP)  # faster than the members


def call(item: NodeItem, iteration: Iteration, inputs: Sequence[Any]) -> Sequence[Any]:
    """The outputs of a node that is computed by a function.

    Raises:
        InternalError: they are not as many as the node has.
    """
    if item.kind == _CALL:
        return (item.function(*inputs),)
    outputs: Sequence[Any]
    if item.kind == _STEP:
        outputs = item.function(iteration.frame.step, inputs)
    else:
        outputs = item.function(*inputs)
    return check_number(item, outputs)


def check_number(item: NodeItem, outputs: Sequence[Any]) -> Sequence[Any]:
    """The outputs of a node.

    Raises:
        InternalError: they are not as many as the node has.
    """
    if len(outputs) != len(item.edges):
        raise InternalError(f"{len(item.edges)} outputs expected, the kernel gave {len(outputs)}")
    return outputs


def inputs_of(item: NodeItem, inputs: Sequence[Any]) -> Sequence[Any]:
    """The inputs as a kernel of its own context gets them: without references, None for dead ones."""
    if item.refs and item.kernel is not None:
        return dereferenced(item.kernel, inputs)
    if item.refs:  # of control flow, which wants their values
        inputs = list(inputs)
        for index in item.refs:
            inputs[index] = referred_value(inputs[index], item.op.inputs[index].op.name)
    return [None if value is DEAD else value for value in inputs] if item.is_transfer else inputs


def context_of(item: NodeItem, inputs: Sequence[Any], iteration: Iteration) -> OpKernelContext:
    """The context for a kernel, which says where in the loops it is."""
    assert item.kernel is not None
    frame = iteration.frame
    if frame.outer is None and not iteration.dead:
        return OpKernelContext(item.kernel, inputs, frame.step, item.params)
    params = ContextParams(
        frame_iter=FrameAndIter(frame.id, iteration.number),
        is_input_dead=item.id in iteration.dead,
        outputs_required=item.params.outputs_required,
    )
    return OpKernelContext(item.kernel, inputs, frame.step, params)


def outputs_of(item: NodeItem, ctx: OpKernelContext) -> Sequence[Any]:
    """The outputs that a kernel has set; an output that a receiver left unset is dead."""
    if not item.is_transfer:
        return ctx.finish()
    if ctx.status is not None:
        raise ctx.status
    return [DEAD if output is None else output for output in ctx.outputs]
