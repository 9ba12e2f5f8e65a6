"""Shapes of ops on queues, barriers and accumulators of gradients.

Source: TensorFlow core/ops/data_flow_ops.cc.
"""

from opkernel.errors import InvalidArgumentError
from opkernel.opdef import (
    InferenceContext,
    OpShapeInferenceFn,
    ShapeHandle,
    no_outputs,
    scalar_shape,
    unchanged_shape,
    unknown_shape,
)
from opkernel.ops.declared.input_ranks import (
    check_inputs,
    checked_no_outputs,
    checked_scalar,
    checked_unknown,
)
from opkernel.ops.declared.rules import fixed_shapes

_HANDLE = fixed_shapes((2,))


def _set_components(c: InferenceContext, batch: ShapeHandle | None = None) -> None:
    """The outputs are [batch..., component...], if the queue is known to hold as many."""
    held = c.input_handle_shapes_and_types(0)
    if held is None or len(held) != c.num_outputs():
        unknown_shape(c)
        return
    for i, component in enumerate(held):
        shape = component.shape
        c.set_output(i, shape if batch is None else c.concatenate(batch, shape))


def _dequeue_many(c: InferenceContext) -> None:
    count = c.input_tensor(1)
    size = None if count is None else c.get_scalar_from_tensor(count)
    if size is not None and size < 0:
        raise InvalidArgumentError(f"Input 'n' must be >= 0, but is {size}")
    _set_components(c, c.vector(size))


def _dequeue_up_to(c: InferenceContext) -> None:
    _set_components(c, c.vector(None))


def _insert_many(c: InferenceContext) -> None:
    """As many keys as there are values."""
    check_inputs(c, "h")
    keys = c.with_rank(c.input(1), 1)
    values = c.with_rank_at_least(c.input(2), 1)
    c.merge(keys, c.vector(c.dim(values, 0)))


SHAPE_FNS: dict[str, OpShapeInferenceFn] = {
    "AccumulatorApplyGradient": checked_no_outputs(".0"),
    "AccumulatorNumAccumulated": scalar_shape,
    "AccumulatorSetGlobalStep": checked_no_outputs(".0"),
    "AccumulatorTakeGradient": checked_unknown(".0"),
    "Barrier": _HANDLE,
    "BarrierClose": checked_no_outputs("h"),
    "BarrierIncompleteSize": checked_scalar("h"),
    "BarrierInsertMany": _insert_many,
    "BarrierReadySize": checked_scalar("h"),
    "BarrierTakeMany": unknown_shape,
    "ConditionalAccumulator": _HANDLE,
    "FIFOQueue": _HANDLE,
    "FIFOQueueV2": scalar_shape,
    "FakeQueue": _HANDLE,
    "PaddingFIFOQueue": _HANDLE,
    "PaddingFIFOQueueV2": scalar_shape,
    "PriorityQueue": _HANDLE,
    "PriorityQueueV2": scalar_shape,
    "QueueClose": checked_no_outputs("h"),
    "QueueCloseV2": no_outputs,
    "QueueDequeue": unknown_shape,
    "QueueDequeueMany": unknown_shape,
    "QueueDequeueManyV2": _dequeue_many,
    "QueueDequeueUpTo": unknown_shape,
    "QueueDequeueUpToV2": _dequeue_up_to,
    "QueueDequeueV2": _set_components,
    "QueueEnqueue": no_outputs,
    "QueueEnqueueMany": no_outputs,
    "QueueEnqueueManyV2": no_outputs,
    "QueueEnqueueV2": no_outputs,
    "QueueIsClosed": scalar_shape,
    "QueueIsClosedV2": scalar_shape,
    "QueueSize": checked_scalar("h"),
    "QueueSizeV2": unchanged_shape,
    "RandomShuffleQueue": _HANDLE,
    "RandomShuffleQueueV2": scalar_shape,
    "ResourceAccumulatorApplyGradient": checked_no_outputs(".0"),
    "ResourceAccumulatorNumAccumulated": scalar_shape,
    "ResourceAccumulatorSetGlobalStep": checked_no_outputs(".0"),
    "ResourceAccumulatorTakeGradient": checked_unknown(".0"),
    "ResourceConditionalAccumulator": _HANDLE,
}
