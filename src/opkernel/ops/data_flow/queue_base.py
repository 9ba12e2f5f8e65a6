"""QueueBase: the common part of all queues: waiting, closing, checks, batches.

An element is a tuple of tensors, one a component. Where elements are kept, and which comes next,
is the business of subclasses.

Source: TensorFlow core/kernels/queue_base.cc, fifo_queue.cc, typed_queue.h.
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, ClassVar

from opkernel.device.made_bytes import check_bytes
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
from opkernel.ops.input_checks import require_equal, require_rank_at_least
from opkernel.types import DataType, PartialTensorShape, TensorShape

UNBOUNDED = 2**31 - 1
"""The capacity of a queue that never fills up."""

Element = tuple[Any, ...]
"""A tensor for each component; no other code has them."""

_OF_ROW, _OF_TURN = 200, 1 << 11
"""The bytes of a tensor that shows a row, and the work of taking an element."""

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
        is_closed: Whether no more elements will be put in.

    Raises:
        InvalidArgumentError: there are no components, or not as many shapes.
    """

    type_name: ClassVar[str]

    def __init__(
        self,
        capacity: int,
        component_dtypes: Sequence[DataType],
        component_shapes: Sequence[PartialTensorShape],
        name: str,
    ) -> None:
        if not component_dtypes:
            raise InvalidArgumentError(f"Empty component types for queue {name}")
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
        self._enqueues, self._dequeues = Line(), Line()
        super().__init__(self._enqueues, self._dequeues)

    # How elements are kept; called under the lock

    @property
    def size(self) -> int:
        """The number of elements."""
        raise NotImplementedError

    def _put(self, element: Element) -> None:
        """Add an element."""
        raise NotImplementedError

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

    # Checks

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
            if len(tensor) != size:
                raise InvalidArgumentError(
                    "All input tensors must have the same size in the 0th dimension. Component "
                    f"{i} has {len(tensor)}, and should have {size}"
                )

    def check_matches(
        self,
        type_name: str,
        capacity: int,
        dtypes: Sequence[DataType],
        shapes: Sequence[PartialTensorShape],
    ) -> None:
        """Raise InvalidArgumentError unless the queue is what a node of its shared name wants."""
        require_equal(self.type_name, type_name, "Expected {}, found {}")
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

    def enqueue(self, elements: Iterable[Element], ctx: OpKernelContext, done: Done) -> None:
        """Put elements in, one after the other, as there is room."""
        steps = self._enqueue_steps(elements)
        self.start(self._enqueues, Attempt(ctx, done, steps, name=_ENQUEUE))

    def dequeue(self, ctx: OpKernelContext, done: Done, deliver: Deliver) -> None:
        """Take one element out."""
        steps = self._dequeue_steps()
        self.start(self._dequeues, Attempt(ctx, done, steps, deliver, name=_DEQUEUE))

    def dequeue_many(
        self,
        count: int,
        ctx: OpKernelContext,
        done: Done,
        deliver: Deliver,
        *,
        allow_small_batch: bool = False,
    ) -> None:
        """Take elements out, as a batch; fewer of a closed queue that has fewer, if allowed."""
        steps = self._dequeue_many_steps(count, allow_small_batch)
        self.start(self._dequeues, Attempt(ctx, done, steps, deliver, name=_DEQUEUE))

    def close(self, ctx: OpKernelContext, done: Done, *, cancel_pending: bool) -> None:
        """Let no more elements in after those that wait, or are cancelled with `cancel_pending`."""
        if cancel_pending:
            with self._lock:
                self.is_closed = True
                self._changed()
                over = [*self._enqueues.cancel_all(), *self._resume_all()]
            finish_all(over)
            done()
        else:
            self.start(self._enqueues, Attempt(ctx, done, self._close_steps(), name=_ENQUEUE))

    # The steps, which run under the lock

    def _enqueue_steps(self, elements: Iterable[Element]) -> Steps:
        for element in in_time(elements, doing="putting elements in a queue"):
            while self.size >= self.capacity and not self.is_closed:
                yield
            if self.is_closed:
                raise CancelledError(f"{self.type_name} '{self.name}' is closed.")
            self._put(element)
            self._changed()

    def _dequeue_steps(self) -> Steps:
        while self._available <= 0:
            if self.is_closed:
                raise self._insufficient(1)
            yield
        self._changed()
        return self._take()

    def _dequeue_many_steps(self, count: int, allow_small_batch: bool) -> Steps:
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
                    if not allow_small_batch or not self.size:
                        raise error
                    count = self.size
                if self._available <= 0:
                    yield
                    continue
                clock.spend(_OF_TURN)
                taken.append(self._take())
                self._changed()
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

    # Batches

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


def rows_of(batch: Element) -> Iterator[Element]:
    """The elements of a batch: each shows a row of each component."""
    check_bytes(_OF_ROW * len(batch) * len(batch[0]), "elements of a queue")
    return (tuple([tensor[i, ...] for tensor in batch]) for i in range(len(batch[0])))


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
