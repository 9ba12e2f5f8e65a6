"""The kinds of queues: first in first out, with padding, shuffled, by priority.

Ops that make queues.

Source: TensorFlow core/kernels/{fifo_queue,padding_fifo_queue,priority_queue}.cc, random_shuffle_queue_op.cc,
core/ops/data_flow_ops.cc, core/kernels/queue_op.cc, fifo_queue_op.cc, padding_fifo_queue_op.cc,
priority_queue_op.cc.
"""

import heapq
from collections import deque
from collections.abc import Sequence
from typing import Any

import numpy as np

from opkernel.device.work_clock import in_time
from opkernel.errors import InvalidArgumentError
from opkernel.kernel import (
    OpKernelConstruction,
    OpKernelContext,
    TensorRef,
    check_allocation,
    handle_from_input,
)
from opkernel.opdef import register_op, scalar_shape
from opkernel.opdef.common_shapes.rules import defined_shape
from opkernel.opdef.common_shapes.shape_rule import shape_rule
from opkernel.ops.array.fill import zeros
from opkernel.ops.data_flow.queue_base import UNBOUNDED, Element, QueueBase
from opkernel.ops.data_flow.waiting import Steps
from opkernel.ops.philox import Philox, words_one_by_one
from opkernel.ops.registration import register_kernel
from opkernel.ops.resource_op_kernel import ResourceOpKernel, names_tensor
from opkernel.ops.step_resources import InexpensiveKernel
from opkernel.types import DataType, PartialTensorShape, TensorShape

__all__ = ["FIFOQueue", "PaddingFIFOQueue", "PriorityQueue", "RandomShuffleQueue"]


class FIFOQueue(QueueBase):
    """Elements leave in the order in which they came.

    Args:
        of_queue: As QueueBase.
    """

    type_name = "FIFOQueue"

    def __init__(self, *of_queue: Any) -> None:
        super().__init__(*of_queue)
        self._elements: deque[Element] = deque()

    @property
    def size(self) -> int:
        return len(self._elements)

    def _put(self, element: Element) -> None:
        self._elements.append(element)

    def _take(self) -> Element:
        return self._elements.popleft()

    def _put_back(self, elements: list[Element]) -> None:
        self._elements.extendleft(reversed(elements))


class PaddingFIFOQueue(FIFOQueue):
    """A queue whose components may vary in size; batches are filled up with zeros."""

    type_name = "PaddingFIFOQueue"

    def __init__(self, *of_queue: Any) -> None:
        super().__init__(*of_queue)
        if not self.component_shapes:
            raise InvalidArgumentError(
                "Shapes must be provided for all components, but received "
                f"{len(self.component_dtypes)} dtypes and 0 shapes."
            )

    def _shapes_match(self, shapes: Sequence[PartialTensorShape]) -> bool:
        pairs = zip(self.component_shapes, shapes, strict=False)
        return len(shapes) == len(self.component_shapes) and all(
            have.is_compatible_with(requested) for have, requested in pairs
        )

    def _stacked(self, component: int, tensors: list[Any]) -> Any:
        shape = self.component_shapes[component]
        if not tensors or shape.is_fully_defined():
            return super()._stacked(component, tensors)
        dtype = self.component_dtypes[component]
        sizes = [
            max(tensor.shape[axis] for tensor in in_time(tensors)) if size is None else size
            for axis, size in enumerate(shape.as_list())
        ]
        batch = zeros(check_allocation((len(tensors), *sizes), dtype), dtype)
        for row, tensor in zip(in_time(batch), tensors, strict=True):
            row[tuple(map(slice, tensor.shape))] = tensor
        return batch


class RandomShuffleQueue(QueueBase):
    """A random element leaves, as long as enough others stay behind.

    Args:
        min_after_dequeue: How many must stay, until the queue is closed.
        seed, seed2: Determine the order; at random where both are 0.
        of_queue: As QueueBase.
    """

    type_name = "RandomShuffleQueue"

    def __init__(self, min_after_dequeue: int, seed: int, seed2: int, *of_queue: Any) -> None:
        super().__init__(*of_queue)
        self.min_after_dequeue = min_after_dequeue
        self.seeds = seed, seed2
        self._elements: list[Element] = []
        self._samples = words_one_by_one(Philox.seeded(seed, seed2))

    @property
    def size(self) -> int:
        return len(self._elements)

    @property
    def _available(self) -> int:
        return self.size if self.is_closed else self.size - self.min_after_dequeue

    def check_matches_shuffle(self, min_after_dequeue: int, seeds: tuple[int, int]) -> None:
        """`check_matches` for what only these queues have."""
        if min_after_dequeue != self.min_after_dequeue:
            raise InvalidArgumentError(
                f"Shared queue '{self.name}' has min_after_dequeue {self.min_after_dequeue} but "
                f"requested min_after_dequeue was {min_after_dequeue}."
            )
        if any(seeds) and seeds != self.seeds:
            raise InvalidArgumentError(
                f"Shared queue '{self.name}' has random seeds {self.seeds} but requested seeds "
                f"are {seeds}."
            )

    def _put(self, element: Element) -> None:
        self._elements.append(element)

    def _take(self) -> Element:
        index = next(self._samples) % len(self._elements)
        element = self._elements[index]
        self._elements[index] = self._elements[-1]
        self._elements.pop()
        return element

    def _put_back(self, elements: list[Element]) -> None:
        self._elements += reversed(elements)


class _Prioritised:
    """An element in the heap of a PriorityQueue."""

    __slots__ = ("element", "priority")

    def __init__(self, priority: int, element: Element) -> None:
        self.priority = priority
        self.element = element

    def __lt__(self, other: "_Prioritised") -> bool:
        return self.priority < other.priority


class PriorityQueue(QueueBase):
    """The element whose first component is smallest leaves.

    Elements of equal priority leave in the order of the heap: `heapq` moves them as `std::priority_queue`
    does.
    """

    type_name = "PriorityQueue"

    def __init__(
        self,
        capacity: int,
        component_dtypes: Sequence[DataType],
        component_shapes: Sequence[PartialTensorShape],
        name: str,
    ) -> None:
        super().__init__(capacity, component_dtypes, component_shapes, name)
        self._heap: list[_Prioritised] = []

    @property
    def size(self) -> int:
        return len(self._heap)

    def _put(self, element: Element) -> None:
        if np.ndim(element[0]):
            raise InvalidArgumentError(
                "Expected the priority element to be a scalar, but received shape: "
                f"{TensorShape(np.shape(element[0]))}"
            )
        heapq.heappush(self._heap, _Prioritised(int(element[0]), element))

    def _take(self) -> Element:
        return heapq.heappop(self._heap).element

    def _put_back(self, elements: list[Element]) -> None:
        for element in elements:
            self._put(element)

    def _dequeue_many_steps(self, count: int, allow_small_batch: bool) -> Steps:
        """A batch is in order, so it is taken at once, when there are enough."""
        while self.size < count and not self.is_closed:
            yield
        if self.size < count and (not allow_small_batch or not self.size):
            raise self._insufficient(count)
        return (yield from super()._dequeue_many_steps(min(count, self.size), False))


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
        ("", "Ref(string)", shape_rule("-> [2]")),
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


@register_kernel("FIFOQueue", "FIFOQueueV2")
class FIFOQueueOp(QueueOp):
    """Makes a FIFOQueue."""


@register_kernel("PaddingFIFOQueue", "PaddingFIFOQueueV2")
class PaddingFIFOQueueOp(QueueOp):
    """Makes a PaddingFIFOQueue."""

    queue_type = PaddingFIFOQueue

    def component_shape(self, shape: PartialTensorShape) -> PartialTensorShape:
        if shape.rank is None:
            raise InvalidArgumentError(f"shape {shape} must have known rank.")
        return shape


@register_kernel("PriorityQueue", "PriorityQueueV2")
class PriorityQueueOp(QueueOp):
    """Makes a PriorityQueue, whose first component, the priority, the attrs do not tell."""

    queue_type = PriorityQueue

    def __init__(self, construction: OpKernelConstruction) -> None:
        super().__init__(construction)
        if not self.shapes:
            raise InvalidArgumentError("A PriorityQueue needs the shapes of its components")
        self.dtypes = [DataType.DT_INT64, *self.dtypes]
        self.shapes = [PartialTensorShape([]), *self.shapes]


@register_kernel("RandomShuffleQueue", "RandomShuffleQueueV2")
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
