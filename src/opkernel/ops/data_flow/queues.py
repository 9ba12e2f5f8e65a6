"""Queues: their common part, and the kinds: first in first out, with padding, shuffled, by priority.

An element is a tuple of tensors, one a component. Where elements are kept, and which comes next,
is the business of subclasses of QueueBase; waiting, closing, checks and batches are its own.

Source: TensorFlow core/kernels/queue_base.cc, typed_queue.h, {fifo_queue,padding_fifo_queue,priority_queue}.cc,
random_shuffle_queue_op.cc.
"""

import heapq
from collections import deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from opkernel.device.work_clock import WorkClock, in_time
from opkernel.errors import CancelledError, InvalidArgumentError, OutOfRangeError
from opkernel.kernel import OpKernelContext, check_allocation
from opkernel.ops.array.concat import stacked
from opkernel.ops.array.fill import zeros
from opkernel.ops.data_flow.waiting import (
    Attempt,
    Deliver,
    Done,
    Line,
    Steps,
    WaitingResource,
    finish_all,
)
from opkernel.ops.input_checks import require, require_equal, require_rank_at_least
from opkernel.ops.random.philox import Philox, words_one_by_one
from opkernel.types import DataType, PartialTensorShape, TensorShape

UNBOUNDED = 2**31 - 1
"""The capacity of a queue that never fills up."""

Element = tuple[Any, ...]
"""A tensor for each component; no other code has them."""

_OF_TURN = 1 << 11
"""The work of taking an element."""

_ENQUEUE, _DEQUEUE = "Enqueue operation", "Dequeue operation"


class QueueBase(WaitingResource):
    """A queue of elements; used from any thread.

    Those who put elements in wait while it is full, in order; those who take them out wait while
    there are too few, in order.

    Args:
        capacity: How many elements it holds.
        component_dtypes: The types of the components.
        component_shapes: Their shapes, or none.
        name: The name, for messages.

    Attributes:
        type_name: The op, without its version.
        elements_type: What holds the elements.
        is_closed: Whether no more elements will be put in.

    Raises:
        InvalidArgumentError: there are no components, or not as many shapes.
    """

    type_name: ClassVar[str]
    elements_type: ClassVar[type[Any]] = list

    def __init__(
        self,
        capacity: int,
        component_dtypes: Sequence[DataType],
        component_shapes: Sequence[PartialTensorShape],
        name: str,
    ) -> None:
        require(component_dtypes, f"Empty component types for queue {name}")
        if component_shapes and len(component_dtypes) != len(component_shapes):
            raise InvalidArgumentError(
                "Different number of component types.  Types: "
                f"{_types_text(component_dtypes)}, Shapes: {_shapes_text(component_shapes)}"
            )
        self.capacity = capacity
        self.component_dtypes = tuple(component_dtypes)
        self.component_shapes = tuple(component_shapes)
        self.name = name
        self.is_closed = False
        self._elements = self.elements_type()
        self._enqueues, self._dequeues = Line(), Line()
        super().__init__(self._enqueues, self._dequeues)

    # How elements are kept; called under the lock

    @property
    def size(self) -> int:
        """The number of elements."""
        return len(self._elements)

    def _put(self, element: Element) -> None:
        """Add an element."""
        self._elements.append(element)

    def _take(self) -> Element:
        """Take out the element whose turn it is; there is one."""
        raise NotImplementedError

    def _put_back(self, elements: list[Element]) -> None:
        """Add elements that were taken out, in that order, and are not wanted any more."""
        raise NotImplementedError

    @property
    def _available(self) -> int:
        """How many elements may be taken out now."""
        return self.size

    def validate(self, element: Element) -> None:
        """Raise InvalidArgumentError unless the components of an element have their shapes."""
        for i, (shape, tensor) in enumerate(zip(self.component_shapes, element, strict=False)):
            _check_shape(i, shape, tensor)

    def validate_many(self, batch: Element) -> None:
        """Raise InvalidArgumentError unless the components of a batch have their shapes."""
        for i, tensor in enumerate(batch):
            require_rank_at_least(tensor, 1, f"Component {i} of a batch must not be a scalar")
        size = len(batch[0])
        for i, shape in enumerate(self.component_shapes):
            _check_shape(i, PartialTensorShape([size]).concatenate(shape), batch[i])
        for i, tensor in enumerate(batch):
            message = "All input tensors must have the same size in the 0th dimension. Component"
            require_equal(len(tensor), size, f"{message} {i} has {{}}, and should have {{}}")

    def check_matches(
        self, kind: str, capacity: int, dtypes: list[DataType], shapes: list[PartialTensorShape]
    ) -> None:
        """Raise InvalidArgumentError unless the queue is what a node of its shared name wants."""
        require_equal(self.type_name, kind, "Expected {}, found {}")
        described = [
            ("capacity", self.capacity, capacity, "was"),
            ("component types", *map(_types_text, (self.component_dtypes, dtypes)), "were"),
        ]
        if not self._shapes_match(shapes):
            texts = map(_shapes_text, (self.component_shapes, shapes))
            described.append(("component shapes", *texts, "were"))
        for what, have, requested, verb in described:
            if have != requested:
                raise InvalidArgumentError(
                    f"Shared queue '{self.name}' has {what} {have} but requested {what} {verb} "
                    f"{requested}"
                )

    def _shapes_match(self, shapes: Sequence[PartialTensorShape]) -> bool:
        return self.component_shapes == tuple(shapes)

    # What kernels do

    def offer(self, element: Element) -> bool:
        """Put an element in if there is room and nobody waits to put one in; whether it is in."""
        over: list[Attempt] = []
        try:
            with self._lock:
                if not self.has_room or self._enqueues:
                    return False
                self._put(element)
                over += self._after_change()
        finally:  # also after an interrupt
            finish_all(over)
        return True

    def poll(self) -> Element | None:
        """Take an element out if there is one and nobody waits for one; None if not."""
        over: list[Attempt] = []
        try:
            with self._lock:
                if self._available <= 0 or self._dequeues:
                    return None
                element = self._take()
                over += self._after_change()
        finally:  # also after an interrupt
            finish_all(over)
        return element

    @property
    def has_room(self) -> bool:
        """Whether an element may be put in now."""
        return self.size < self.capacity and not self.is_closed

    def enqueue(self, elements: Iterable[Element], ctx: OpKernelContext, done: Done) -> None:
        """Put elements in, one after the other, as there is room."""
        self.start(self._enqueues, ctx, done, self._enqueue_steps(elements), name=_ENQUEUE)

    def dequeue(self, ctx: OpKernelContext, done: Done, deliver: Deliver) -> None:
        """Take one element out."""
        self.start(self._dequeues, ctx, done, self._dequeue_steps(), deliver, name=_DEQUEUE)

    def dequeue_many(
        self, count: int, ctx: OpKernelContext, done: Done, deliver: Deliver, *, allow_fewer: bool
    ) -> None:
        """Take elements out, as a batch; fewer of a closed queue that has fewer, if allowed."""
        steps = self._dequeue_many_steps(count, allow_fewer)
        self.start(self._dequeues, ctx, done, steps, deliver, name=_DEQUEUE)

    def close(self, ctx: OpKernelContext, done: Done, *, cancel_pending: bool) -> None:
        """Let no more elements in after those that wait, or are cancelled with `cancel_pending`."""
        if cancel_pending:
            with self._changing() as over:
                self.is_closed = True
                over += self._enqueues.cancel_all()
            done()
        else:
            self.start(self._enqueues, ctx, done, self._close_steps(), name=_ENQUEUE)

    # The steps, which run under the lock

    def _enqueue_steps(self, elements: Iterable[Element]) -> Steps:
        room = 0
        for element in in_time(elements, doing="putting elements in a queue"):
            if not room:
                while (room := self.capacity - self.size) <= 0 and not self.is_closed:
                    yield
                if self.is_closed:
                    raise CancelledError(f"{self.type_name} '{self.name}' is closed.")
                self._changed()
            self._put(element)
            room -= 1

    def _dequeue_steps(self) -> Steps:
        while self._available <= 0:
            if self.is_closed:
                raise self._insufficient(1)
            yield
        self._changed()
        return self._take()

    def _dequeue_many_steps(self, count: int, allow_fewer: bool) -> Steps:
        if not self.component_shapes:
            raise InvalidArgumentError(
                f"{self.type_name}'s DequeueMany and DequeueUpTo require the components to have "
                "specified shapes."
            )
        taken: list[Element] = []
        clock = WorkClock("taking elements of a queue")
        try:
            while len(taken) < count:
                if self.is_closed and self.size < count - len(taken):
                    error = self._insufficient(count - len(taken))
                    self._return(taken)
                    if not allow_fewer or not self.size:
                        raise error
                    count = self.size
                for _ in range(ready := min(self._available, count - len(taken))):
                    clock.spend(_OF_TURN)
                    taken.append(self._take())
                if ready > 0:
                    self._changed()
                else:
                    yield
            return self._batch(taken)
        except BaseException:  # cancelled, or there is no time or memory left
            self._return(taken)
            raise

    def _close_steps(self) -> Steps:
        if self.is_closed:
            raise CancelledError(f"Queue '{self.name}' is already closed.")
        self.is_closed = True
        self._changed()
        yield from ()  # it never waits

    def _return(self, taken: list[Element]) -> None:
        """Put back the elements that were taken out."""
        if taken:
            self._put_back(taken)
            self._changed()
            taken.clear()

    def _insufficient(self, requested: int) -> OutOfRangeError:
        return OutOfRangeError(
            f"{self.type_name} '{self.name}' is closed and has insufficient elements "
            f"(requested {requested}, current size {self.size})"
        )

    def _batch(self, elements: list[Element]) -> Element:
        """Elements as one tensor for each component."""
        return tuple(
            self._stacked(i, [element[i] for element in elements])
            for i in range(len(self.component_dtypes))
        )

    def _stacked(self, component: int, tensors: list[Any]) -> Any:
        dtype, shape = self.component_dtypes[component], self.component_shapes[component]
        if not tensors:
            return zeros((0, *(size or 0 for size in shape.as_list())), dtype)
        check_allocation((len(tensors), *tensors[0].shape), dtype)
        return stacked(tensors)


def _check_shape(component: int, expected: PartialTensorShape, tensor: Any) -> None:
    if not expected.is_compatible_with(PartialTensorShape(tensor.shape)):
        raise InvalidArgumentError(
            f"Shape mismatch in tuple component {component}. Expected {expected}, "
            f"got {TensorShape(tensor.shape)}"
        )


def _types_text(dtypes: Sequence[DataType]) -> str:
    return f"[{', '.join(dtype.string for dtype in dtypes)}]"


def _shapes_text(shapes: Sequence[PartialTensorShape]) -> str:
    return f"[{', '.join(map(str, shapes))}]"


class FIFOQueue(QueueBase):
    """Elements leave in the order in which they came."""

    type_name = "FIFOQueue"
    elements_type = deque
    _elements: deque[Element]

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
    _elements: list[Element]

    def __init__(self, min_after_dequeue: int, seed: int, seed2: int, *of_queue: Any) -> None:
        super().__init__(*of_queue)
        self.min_after_dequeue = min_after_dequeue
        self.seeds = seed, seed2
        self._samples = words_one_by_one(Philox.seeded(seed, seed2))

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

    def _take(self) -> Element:
        elements = self._elements
        index = next(self._samples) % len(elements)
        elements[index], elements[-1] = elements[-1], elements[index]
        return elements.pop()

    def _put_back(self, elements: list[Element]) -> None:
        self._elements += reversed(elements)


@dataclass(slots=True)
class _Prioritised:
    """An element in the heap of a PriorityQueue."""

    priority: int
    element: Element

    def __lt__(self, other: "_Prioritised") -> bool:
        return self.priority < other.priority


class PriorityQueue(QueueBase):
    """The element whose first component is smallest leaves.

    Elements of equal priority leave in the order of the heap: `heapq` moves them as `std::priority_queue`
    does.
    """

    type_name = "PriorityQueue"
    _elements: list[_Prioritised]

    def _put(self, element: Element) -> None:
        if np.ndim(element[0]):
            raise InvalidArgumentError(
                "Expected the priority element to be a scalar, but received shape: "
                f"{TensorShape(np.shape(element[0]))}"
            )
        heapq.heappush(self._elements, _Prioritised(int(element[0]), element))

    def _take(self) -> Element:
        return heapq.heappop(self._elements).element

    def _put_back(self, elements: list[Element]) -> None:
        for element in elements:
            self._put(element)

    def _dequeue_many_steps(self, count: int, allow_fewer: bool) -> Steps:
        """A batch is in order, so it is taken at once, when there are enough."""
        while self.size < count and not self.is_closed:
            yield
        if self.size < count and (not allow_fewer or not self.size):
            raise self._insufficient(count)
        return (yield from super()._dequeue_many_steps(min(count, self.size), False))
