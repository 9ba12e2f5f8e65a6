"""Ops on queues: FIFOQueue, PaddingFIFOQueue, PriorityQueue, RandomShuffleQueue; enqueue, dequeue, close, size.

Source: TensorFlow core/ops/data_flow_ops.cc, core/kernels/queue_op.cc, fifo_queue_op.cc, padding_fifo_queue_op.cc,
priority_queue_op.cc, random_shuffle_queue_op.cc.
"""

from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np

from opkernel.device.made_bytes import check_bytes
from opkernel.errors import InvalidArgumentError
from opkernel.kernel import OpKernelConstruction, OpKernelContext, TensorRef, handle_from_input
from opkernel.opdef import (
    InferenceContext,
    ShapeHandle,
    no_outputs,
    register_op,
    scalar_shape,
    unchanged_shape,
    unknown_shape,
)
from opkernel.opdef.common_shapes.rules import (
    checked_no_outputs,
    checked_scalar,
    defined_shape,
    shape_rule,
)
from opkernel.ops.data_flow.queues import (
    UNBOUNDED,
    Element,
    FIFOQueue,
    PaddingFIFOQueue,
    PriorityQueue,
    QueueBase,
    RandomShuffleQueue,
)
from opkernel.ops.data_flow.waiting import Done, WaitingKernel
from opkernel.ops.input_checks import require, require_scalar
from opkernel.ops.registration import register_kernel
from opkernel.ops.resource_op_kernel import (
    InexpensiveKernel,
    LastResource,
    ResourceOpKernel,
    declare_versions,
    names_tensor,
    register_fact,
)
from opkernel.types import DataType, PartialTensorShape

_CAPACITY = "capacity: int = -1"
_OF_QUEUE = ("component_types: list(type) >= 1", "shapes: list(shape) >= 0 = []", _CAPACITY)
_NAMES = ("container: string = ''", "shared_name: string = ''")

for _name, _attrs, _doc in (
    ("FIFOQueue", _OF_QUEUE, "A queue that elements leave in the order in which they came."),
    (
        "PaddingFIFOQueue",
        _OF_QUEUE,
        "A FIFOQueue whose elements vary in size; batches are filled up with zeros.",
    ),
    (
        "PriorityQueue",
        ("component_types: list(type) >= 0 = []", "shapes: list(shape) >= 0", _CAPACITY),
        "A queue that the element of the smallest priority, an int64, leaves first.",
    ),
    (
        "RandomShuffleQueue",
        (*_OF_QUEUE, "min_after_dequeue: int = 0", "seed: int = 0", "seed2: int = 0"),
        "A queue that elements leave in random order.",
    ),
):
    declare_versions(
        f"{_name}() -> handle: {{}}",
        attrs=[*_attrs, *_NAMES],
        shape_fn=shape_rule("-> [2]"),
        shape_fn_v2=scalar_shape,
        is_stateful=True,
        doc=_doc,
    )


@register_kernel("FIFOQueue", "FIFOQueueV2")
class QueueOp(ResourceOpKernel):
    """Makes a queue of `queue_type`, which is FIFOQueue by default."""

    resource_type = QueueBase
    queue_type: type[QueueBase] = FIFOQueue

    def __init__(self, construction: OpKernelConstruction) -> None:
        super().__init__(construction)
        capacity = construction.get_attr("capacity", "int32")
        self.capacity: int = UNBOUNDED if capacity < 0 else capacity
        self.dtypes: list[DataType] = construction.get_attr("component_types")
        self.shapes = [self.component_shape(shape) for shape in construction.get_attr("shapes")]

    def component_shape(self, shape: PartialTensorShape) -> PartialTensorShape:
        """The shape that an attr stands for; raises InvalidArgumentError where it is none."""
        return defined_shape(shape)

    def create_resource(self, ctx: OpKernelContext) -> QueueBase:
        return self.queue_type(self.capacity, self.dtypes, self.shapes, self.info.name)

    def verify_resource(self, resource: QueueBase) -> None:
        type_name = self.type_string.removesuffix("V2")
        resource.check_matches(type_name, self.capacity, self.dtypes, self.shapes)


@register_kernel("PaddingFIFOQueue", "PaddingFIFOQueueV2")
class PaddingFIFOQueueOp(QueueOp):
    """Makes a PaddingFIFOQueue."""

    queue_type = PaddingFIFOQueue

    def component_shape(self, shape: PartialTensorShape) -> PartialTensorShape:
        require(shape.rank is not None, f"shape {shape} must have known rank.")
        return shape


@register_kernel("PriorityQueue", "PriorityQueueV2")
class PriorityQueueOp(QueueOp):
    """Makes a PriorityQueue, whose first component, the priority, the attrs do not tell."""

    queue_type = PriorityQueue

    def __init__(self, construction: OpKernelConstruction) -> None:
        super().__init__(construction)
        require(self.shapes, "A PriorityQueue needs the shapes of its components")
        self.dtypes = [DataType.DT_INT64, *self.dtypes]
        self.shapes = [PartialTensorShape([]), *self.shapes]


@register_kernel("RandomShuffleQueue", "RandomShuffleQueueV2")
class RandomShuffleQueueOp(QueueOp):
    """Makes a RandomShuffleQueue."""

    def __init__(self, construction: OpKernelConstruction) -> None:
        super().__init__(construction)
        self.min_after_dequeue: int = construction.get_attr("min_after_dequeue", "int32")
        self.seeds = construction.get_attr("seed"), construction.get_attr("seed2")
        if self.min_after_dequeue < 0:
            raise InvalidArgumentError(f"min_after_dequeue {self.min_after_dequeue} must be >= 0")
        if self.min_after_dequeue >= self.capacity:
            raise InvalidArgumentError(
                f"min_after_dequeue {self.min_after_dequeue} must be < capacity {self.capacity}"
            )

    def create_resource(self, ctx: OpKernelContext) -> QueueBase:
        of_queue: tuple[Any, ...] = self.capacity, self.dtypes, self.shapes, self.info.name
        return RandomShuffleQueue(self.min_after_dequeue, *self.seeds, *of_queue)

    def verify_resource(self, resource: QueueBase) -> None:
        super().verify_resource(resource)
        assert isinstance(resource, RandomShuffleQueue)
        resource.check_matches_shuffle(self.min_after_dequeue, self.seeds)


register_op(
    "FakeQueue(resource: resource) -> handle: Ref(string)",
    shape_fn=shape_rule("-> [2]"),
    is_stateful=True,
    doc="The handle to a queue as ops of the first version take it.",
)


@register_kernel("FakeQueue")
class FakeQueueOp(InexpensiveKernel):
    """Gives the container and name of a resource handle."""

    def compute(self, ctx: OpKernelContext) -> None:
        handle = handle_from_input(ctx.input(0))
        ctx.set_output_ref(0, TensorRef(names_tensor(handle.container, handle.name)))


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
    require(size is None or size >= 0, f"Input 'n' must be >= 0, but is {size}")
    _set_components(c, c.vector(size))


def dequeue_up_to_shape(c: InferenceContext) -> None:
    """[?, component...]."""
    _set_components(c, c.vector(None))


_TO_ENQUEUE = ("Tcomponents: list(type) >= 1", "timeout_ms: int = -1")
_TO_DEQUEUE = ("component_types: list(type) >= 1", "timeout_ms: int = -1")

declare_versions(
    "QueueEnqueue(handle: {}, components: Tcomponents)",
    attrs=_TO_ENQUEUE,
    shape_fn=no_outputs,
    shape_fn_v2=no_outputs,
    doc="Puts an element into the queue; waits while it is full.",
)
declare_versions(
    "QueueEnqueueMany(handle: {}, components: Tcomponents)",
    attrs=_TO_ENQUEUE,
    shape_fn=no_outputs,
    shape_fn_v2=no_outputs,
    doc="Puts the rows of the components into the queue; waits while it is full.",
)
declare_versions(
    "QueueDequeue(handle: {}) -> components: component_types",
    attrs=_TO_DEQUEUE,
    shape_fn=unknown_shape,
    shape_fn_v2=_set_components,
    doc="Takes an element out of the queue; waits until there is one.",
)
declare_versions(
    "QueueDequeueMany(handle: {}, n: int32) -> components: component_types",
    attrs=_TO_DEQUEUE,
    shape_fn=unknown_shape,
    shape_fn_v2=dequeue_many_shape,
    doc="Takes `n` elements out of the queue, as a batch; waits until there are as many.",
)
declare_versions(
    "QueueDequeueUpTo(handle: {}, n: int32) -> components: component_types",
    attrs=_TO_DEQUEUE,
    shape_fn=unknown_shape,
    shape_fn_v2=dequeue_up_to_shape,
    doc="As QueueDequeueMany; a queue that is closed gives what it has, if it has anything.",
)
declare_versions(
    "QueueClose(handle: {})",
    attrs=["cancel_pending_enqueues: bool = false"],
    shape_fn=checked_no_outputs("h"),
    shape_fn_v2=no_outputs,
    doc="Lets no more elements into the queue after those that wait.",
)
declare_versions(
    "QueueIsClosed(handle: {}) -> is_closed: bool",
    shape_fn=scalar_shape,
    shape_fn_v2=scalar_shape,
    traits="only_reads_state",
    doc="Whether the queue is closed.",
)
declare_versions(
    "QueueSize(handle: {}) -> size: int32",
    shape_fn=checked_scalar("h"),
    shape_fn_v2=unchanged_shape,
    traits="only_reads_state",
    doc="The number of elements in the queue.",
)


_OF_ROW = 200
"""The bytes of a tensor that shows a row."""


def _rows_of(batch: Element) -> Iterator[Element]:
    """The elements of a batch: each shows a row of each component."""
    check_bytes(_OF_ROW * len(batch) * len(batch[0]), "elements of a queue")
    return zip(*map(_rows_of_tensor, batch), strict=True)


def _rows_of_tensor(tensor: Any) -> Iterator[Any]:
    """Its rows as arrays; an iterator of a vector would give numbers."""
    return iter(tensor) if tensor.ndim > 1 else (tensor[i, ...] for i in range(len(tensor)))


class QueueAccess(WaitingKernel[QueueBase]):
    """A kernel that may wait for the queue; timeouts of single nodes are not supported."""

    resource_type = QueueBase

    def __init__(self, construction: OpKernelConstruction) -> None:
        super().__init__(construction)
        construction.requires(
            construction.get_attr("timeout_ms") == -1, "Timeout not supported yet."
        )
        self._last = LastResource[QueueBase]()

    def queue(self, ctx: OpKernelContext) -> QueueBase:
        """The queue, whose components have the types of the node."""
        handle = ctx.inputs[0]
        found = self._last.get(handle)
        if found is None:
            with self.find(ctx) as found:
                self.match_signature(found)
            self._last.put(handle, found)
        return found

    def match_signature(self, queue: QueueBase) -> None:
        """Raise InvalidArgumentError unless the components of a queue have the types of the node."""
        self.properties.match_signature(self.input_types, queue.component_dtypes)


class _Enqueue(QueueAccess):
    forwards_inputs = True

    def match_signature(self, queue: QueueBase) -> None:
        """Raise InvalidArgumentError unless the components of a queue have the types of the node."""
        self.properties.match_signature([self.input_types[0], *queue.component_dtypes], [])

    def components(self, ctx: OpKernelContext) -> Element:
        """The components, which no other code has."""
        tensors = enumerate(ctx.inputs[1:], 1)
        return tuple([t if isinstance(t, np.generic) else ctx.own_input(i) for i, t in tensors])


@register_kernel("QueueEnqueue", "QueueEnqueueV2")
class QueueEnqueue(_Enqueue):
    """Puts in one element."""

    def attempt(self, ctx: OpKernelContext) -> bool:
        """Put it in where there is room."""
        queue = self.queue(ctx)
        if not queue.has_room:
            return False
        element = self.components(ctx)
        queue.validate(element)
        return queue.offer(element)

    def access(self, queue: QueueBase, ctx: OpKernelContext, done: Done) -> None:
        self.match_signature(queue)
        element = self.components(ctx)
        queue.validate(element)
        queue.enqueue([element], ctx, done)


@register_kernel("QueueEnqueueMany", "QueueEnqueueManyV2")
class QueueEnqueueMany(_Enqueue):
    """Puts in the rows of a batch."""

    def access(self, queue: QueueBase, ctx: OpKernelContext, done: Done) -> None:
        self.match_signature(queue)
        batch = self.components(ctx)
        queue.validate_many(batch)
        queue.enqueue(_rows_of(batch), ctx, done)


@register_kernel("QueueDequeue", "QueueDequeueV2")
class QueueDequeue(QueueAccess):
    """Takes out one element."""

    def attempt(self, ctx: OpKernelContext) -> bool:
        """Take it out where there is one."""
        element = self.queue(ctx).poll()
        if element is None:
            return False
        for index, tensor in enumerate(element):
            ctx.set_output(index, tensor)
        return True

    def access(self, queue: QueueBase, ctx: OpKernelContext, done: Done) -> None:
        self.match_signature(queue)
        queue.dequeue(ctx, done, partial(ctx.set_output_list, "components"))


@register_kernel("QueueDequeueMany", "QueueDequeueManyV2", "QueueDequeueUpTo", "QueueDequeueUpToV2")
class QueueDequeueMany(QueueAccess):
    """Takes out a batch, which UpTo lets be smaller once the queue is closed."""

    def access(self, queue: QueueBase, ctx: OpKernelContext, done: Done) -> None:
        count = ctx.input(1)
        require_scalar(count, f"{self.type_string}: n must be a scalar, but has shape {{}}")
        if count < 0:
            raise InvalidArgumentError(f"{self.type_string} requested {count} < 0 elements")
        self.match_signature(queue)
        deliver = partial(ctx.set_output_list, "components")
        allow_fewer = self.type_string.startswith("QueueDequeueUpTo")
        queue.dequeue_many(int(count), ctx, done, deliver, allow_fewer=allow_fewer)


@register_kernel("QueueClose", "QueueCloseV2")
class QueueClose(WaitingKernel[QueueBase]):
    """Closes the queue after what waits to be put in."""

    resource_type = QueueBase

    def __init__(self, construction: OpKernelConstruction) -> None:
        super().__init__(construction)
        self.cancel_pending: bool = construction.get_attr("cancel_pending_enqueues")

    def access(self, queue: QueueBase, ctx: OpKernelContext, done: Done) -> None:
        queue.close(ctx, done, cancel_pending=self.cancel_pending)


register_fact("QueueIsClosed", "QueueIsClosedV2", of=QueueBase, fact=lambda queue: queue.is_closed)
register_fact("QueueSize", "QueueSizeV2", of=QueueBase, fact=lambda queue: queue.size)
