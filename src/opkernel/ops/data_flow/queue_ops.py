"""Ops on queues: enqueue, dequeue, close, size.

Source: TensorFlow core/ops/data_flow_ops.cc, core/kernels/queue_op.cc.
"""

from functools import partial

from opkernel.errors import InvalidArgumentError
from opkernel.kernel import OpKernelConstruction, OpKernelContext
from opkernel.opdef import (
    InferenceContext,
    ShapeHandle,
    no_outputs,
    register_op,
    scalar_shape,
    unchanged_shape,
    unknown_shape,
)
from opkernel.opdef.common_shapes.rules import checked_no_outputs, checked_scalar
from opkernel.ops.data_flow.queue_base import Element, QueueBase, rows_of
from opkernel.ops.data_flow.waiting import Deliver, Done, WaitingKernel
from opkernel.ops.input_checks import require_scalar
from opkernel.ops.registration import register_kernel
from opkernel.ops.resource_op_kernel import register_fact

# What the ops are


def _set_components(c: InferenceContext, batch: ShapeHandle | None = None) -> None:
    """The outputs are [batch..., component...], if the queue is known to hold as many."""
    held = c.input_handle_shapes_and_types(0)
    if held is None or len(held) != c.num_outputs():
        unknown_shape(c)
        return
    for i, component in enumerate(held):
        shape = component.shape
        c.set_output(i, shape if batch is None else c.concatenate(batch, shape))


def dequeue_many_shape(c: InferenceContext) -> None:
    """[n, component...]."""
    count = c.input_tensor(1)
    size = None if count is None else c.get_scalar_from_tensor(count)
    if size is not None and size < 0:
        raise InvalidArgumentError(f"Input 'n' must be >= 0, but is {size}")
    _set_components(c, c.vector(size))


def dequeue_up_to_shape(c: InferenceContext) -> None:
    """[?, component...]."""
    _set_components(c, c.vector(None))


_TO_ENQUEUE = ("Tcomponents: list(type) >= 1", "timeout_ms: int = -1")
_TO_DEQUEUE = ("component_types: list(type) >= 1", "timeout_ms: int = -1")
_TO_CLOSE = ("cancel_pending_enqueues: bool = false",)
_COMPONENTS_IN, _COMPONENTS_OUT = ("components: Tcomponents",), ("components: component_types",)

for _name, _inputs, _outputs, _attrs, _shape_fn, _shape_fn_v2, _doc in (
    (
        "QueueEnqueue",
        _COMPONENTS_IN,
        (),
        _TO_ENQUEUE,
        no_outputs,
        no_outputs,
        "Puts an element into the queue; waits while it is full.",
    ),
    (
        "QueueEnqueueMany",
        _COMPONENTS_IN,
        (),
        _TO_ENQUEUE,
        no_outputs,
        no_outputs,
        "Puts the rows of the components into the queue; waits while it is full.",
    ),
    (
        "QueueDequeue",
        (),
        _COMPONENTS_OUT,
        _TO_DEQUEUE,
        unknown_shape,
        _set_components,
        "Takes an element out of the queue; waits until there is one.",
    ),
    (
        "QueueDequeueMany",
        ("n: int32",),
        _COMPONENTS_OUT,
        _TO_DEQUEUE,
        unknown_shape,
        dequeue_many_shape,
        "Takes `n` elements out of the queue, as a batch; waits until there are as many.",
    ),
    (
        "QueueDequeueUpTo",
        ("n: int32",),
        _COMPONENTS_OUT,
        _TO_DEQUEUE,
        unknown_shape,
        dequeue_up_to_shape,
        "As QueueDequeueMany; a queue that is closed gives what it has, if it has anything.",
    ),
    (
        "QueueClose",
        (),
        (),
        _TO_CLOSE,
        checked_no_outputs("h"),
        no_outputs,
        "Lets no more elements into the queue after those that wait.",
    ),
    (
        "QueueIsClosed",
        (),
        ("is_closed: bool",),
        (),
        scalar_shape,
        scalar_shape,
        "Whether the queue is closed.",
    ),
    (
        "QueueSize",
        (),
        ("size: int32",),
        (),
        checked_scalar("h"),
        unchanged_shape,
        "The number of elements in the queue.",
    ),
):
    for _version, _handle, _fn in (
        ("", "Ref(string)", _shape_fn),
        ("V2", "resource", _shape_fn_v2),
    ):
        register_op(
            f"{_name}{_version}",
            inputs=[f"handle: {_handle}", *_inputs],
            outputs=_outputs,
            attrs=_attrs,
            shape_fn=_fn,
            traits="only_reads_state" if _name in ("QueueIsClosed", "QueueSize") else "",
            is_stateful=_version == "V2",
            doc=_doc,
        )

# How they are computed


class QueueKernel(WaitingKernel[QueueBase]):
    """A kernel that is given a queue."""

    resource_type = QueueBase


class QueueAccess(QueueKernel):
    """A kernel that may wait for the queue; timeouts of single nodes are not supported."""

    def __init__(self, construction: OpKernelConstruction) -> None:
        super().__init__(construction)
        construction.requires(
            construction.get_attr("timeout_ms") == -1, "Timeout not supported yet."
        )


class _Enqueue(QueueAccess):
    forwards_inputs = True

    def components(self, queue: QueueBase, ctx: OpKernelContext) -> Element:
        """The components, which no other code has."""
        ctx.match_signature([self.input_types[0], *queue.component_dtypes], [])
        return tuple([ctx.own_input(index) for index in range(1, ctx.num_inputs)])


@register_kernel("QueueEnqueue", "QueueEnqueueV2")
class QueueEnqueue(_Enqueue):
    """Puts in one element."""

    def access(self, queue: QueueBase, ctx: OpKernelContext, done: Done) -> None:
        element = self.components(queue, ctx)
        queue.validate(element)
        queue.enqueue([element], ctx, done)


@register_kernel("QueueEnqueueMany", "QueueEnqueueManyV2")
class QueueEnqueueMany(_Enqueue):
    """Puts in the rows of a batch."""

    def access(self, queue: QueueBase, ctx: OpKernelContext, done: Done) -> None:
        batch = self.components(queue, ctx)
        queue.validate_many(batch)
        queue.enqueue(rows_of(batch), ctx, done)


def _sets_components(ctx: OpKernelContext) -> Deliver:
    return partial(ctx.set_output_list, "components")


@register_kernel("QueueDequeue", "QueueDequeueV2")
class QueueDequeue(QueueAccess):
    """Takes out one element."""

    def access(self, queue: QueueBase, ctx: OpKernelContext, done: Done) -> None:
        ctx.match_signature(self.input_types, queue.component_dtypes)
        queue.dequeue(ctx, done, _sets_components(ctx))


@register_kernel("QueueDequeueMany", "QueueDequeueManyV2")
class QueueDequeueMany(QueueAccess):
    """Takes out a batch."""

    allow_small_batch = False

    def access(self, queue: QueueBase, ctx: OpKernelContext, done: Done) -> None:
        count = ctx.input(1)
        require_scalar(count, f"{self.type_string}: n must be a scalar, but has shape {{}}")
        if count < 0:
            raise InvalidArgumentError(f"{self.type_string} requested {count} < 0 elements")
        ctx.match_signature(self.input_types, queue.component_dtypes)
        queue.dequeue_many(
            int(count), ctx, done, _sets_components(ctx), allow_small_batch=self.allow_small_batch
        )


@register_kernel("QueueDequeueUpTo", "QueueDequeueUpToV2")
class QueueDequeueUpTo(QueueDequeueMany):
    """Takes out a batch, which may be smaller once the queue is closed."""

    allow_small_batch = True


@register_kernel("QueueClose", "QueueCloseV2")
class QueueClose(QueueKernel):
    """Closes the queue after what waits to be put in."""

    def __init__(self, construction: OpKernelConstruction) -> None:
        super().__init__(construction)
        self.cancel_pending: bool = construction.get_attr("cancel_pending_enqueues")

    def access(self, queue: QueueBase, ctx: OpKernelContext, done: Done) -> None:
        queue.close(ctx, done, cancel_pending=self.cancel_pending)


register_fact("QueueIsClosed", "QueueIsClosedV2", of=QueueBase, fact=lambda queue: queue.is_closed)
register_fact("QueueSize", "QueueSizeV2", of=QueueBase, fact=lambda queue: queue.size)
