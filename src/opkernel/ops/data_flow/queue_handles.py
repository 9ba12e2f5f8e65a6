"""Ops that make queues.

Source: TensorFlow core/ops/data_flow_ops.cc, core/kernels/queue_op.cc, fifo_queue_op.cc,
padding_fifo_queue_op.cc, priority_queue_op.cc, random_shuffle_queue_op.cc.
"""

from typing import Any

from opkernel.errors import InvalidArgumentError
from opkernel.kernel import OpKernelConstruction, OpKernelContext, TensorRef, handle_from_input
from opkernel.opdef import register_op, scalar_shape
from opkernel.ops.data_flow.queue_base import UNBOUNDED, QueueBase
from opkernel.ops.data_flow.queues import (
    FIFOQueue,
    PaddingFIFOQueue,
    PriorityQueue,
    RandomShuffleQueue,
)
from opkernel.ops.declared.rules import defined_shape, fixed_shapes
from opkernel.ops.registration import register_kernel
from opkernel.ops.resource_op_kernel import ResourceOpKernel, names_tensor
from opkernel.ops.step_resources import InexpensiveKernel
from opkernel.types import DataType, PartialTensorShape

_TYPES_AND_SHAPES = ("component_types: list(type) >= 1", "shapes: list(shape) >= 0 = []")
_CAPACITY = "capacity: int = -1"
_NAMES = ("container: string = ''", "shared_name: string = ''")

_ATTRS = {
    "FIFOQueue": (*_TYPES_AND_SHAPES, _CAPACITY, *_NAMES),
    "PaddingFIFOQueue": (*_TYPES_AND_SHAPES, _CAPACITY, *_NAMES),
    "PriorityQueue": (
        "component_types: list(type) >= 0 = []",
        "shapes: list(shape) >= 0",
        _CAPACITY,
        *_NAMES,
    ),
    "RandomShuffleQueue": (
        *_TYPES_AND_SHAPES,
        _CAPACITY,
        "min_after_dequeue: int = 0",
        "seed: int = 0",
        "seed2: int = 0",
        *_NAMES,
    ),
}
_DOCS = {
    "FIFOQueue": "A queue that elements leave in the order in which they came.",
    "PaddingFIFOQueue": "A FIFOQueue whose elements vary in size; batches are filled up with zeros.",
    "PriorityQueue": "A queue that the element of the smallest priority, an int64, leaves first.",
    "RandomShuffleQueue": "A queue that elements leave in random order.",
}

for _name, _attrs in _ATTRS.items():
    for _version, _handle, _shape_fn in (
        ("", "Ref(string)", fixed_shapes((2,))),
        ("V2", "resource", scalar_shape),
    ):
        register_op(
            f"{_name}{_version}",
            outputs=[f"handle: {_handle}"],
            attrs=_attrs,
            shape_fn=_shape_fn,
            is_stateful=True,
            doc=_DOCS[_name],
        )


class QueueOp(ResourceOpKernel):
    """Makes a queue of `queue_type`."""

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


@register_kernel("FIFOQueue", device="CPU")
@register_kernel("FIFOQueueV2", device="CPU")
class FIFOQueueOp(QueueOp):
    """Makes a FIFOQueue."""


@register_kernel("PaddingFIFOQueue", device="CPU")
@register_kernel("PaddingFIFOQueueV2", device="CPU")
class PaddingFIFOQueueOp(QueueOp):
    """Makes a PaddingFIFOQueue."""

    queue_type = PaddingFIFOQueue

    def component_shape(self, shape: PartialTensorShape) -> PartialTensorShape:
        if shape.rank is None:
            raise InvalidArgumentError(f"shape {shape} must have known rank.")
        return shape


@register_kernel("PriorityQueue", device="CPU")
@register_kernel("PriorityQueueV2", device="CPU")
class PriorityQueueOp(QueueOp):
    """Makes a PriorityQueue, whose first component, the priority, the attrs do not tell."""

    queue_type = PriorityQueue

    def __init__(self, construction: OpKernelConstruction) -> None:
        super().__init__(construction)
        if not self.shapes:
            raise InvalidArgumentError("A PriorityQueue needs the shapes of its components")
        self.dtypes = [DataType.DT_INT64, *self.dtypes]
        self.shapes = [PartialTensorShape([]), *self.shapes]


@register_kernel("RandomShuffleQueue", device="CPU")
@register_kernel("RandomShuffleQueueV2", device="CPU")
class RandomShuffleQueueOp(QueueOp):
    """Makes a RandomShuffleQueue."""

    def __init__(self, construction: OpKernelConstruction) -> None:
        super().__init__(construction)
        self.min_after_dequeue: int = construction.get_attr("min_after_dequeue", "int32")
        self.seeds: tuple[int, int] = (
            construction.get_attr("seed"),
            construction.get_attr("seed2"),
        )
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
    "FakeQueue",
    inputs=["resource: resource"],
    outputs=["handle: Ref(string)"],
    shape_fn=fixed_shapes((2,)),
    is_stateful=True,
    doc="The handle to a queue as ops of the first version take it.",
)


@register_kernel("FakeQueue", device="CPU")
class FakeQueueOp(InexpensiveKernel):
    """Gives the container and name of a resource handle."""

    def compute(self, ctx: OpKernelContext) -> None:
        handle = handle_from_input(ctx.input(0))
        ctx.set_output_ref(0, TensorRef(names_tensor(handle.container, handle.name)))
