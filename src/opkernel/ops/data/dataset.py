"""Datasets and iterators: what all kinds have in common.

A dataset is an immutable value in a variant tensor. It says which types and shapes its elements have, and how many
they are if that is known. `iterator` begins a pass over it. An iterator's state stands in the attributes that its
class names in `state`, so that a pass can be saved and taken up again (`iterator_state`).

An element is a tuple of tensors. `next` gives None at the end, and again at each later call.

Source: DatasetBase and DatasetBaseIterator in TensorFlow core/framework/dataset.{h,cc}.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any, ClassVar, TypeAlias

import numpy as np

from opkernel.device.budget import check_time, current_budget
from opkernel.errors import (
    FailedPreconditionError,
    InvalidArgumentError,
    ResourceExhaustedError,
    UnimplementedError,
)
from opkernel.interrupts import Closing, contextmanager
from opkernel.kernel import Step
from opkernel.proto import VariantTensorDataProto
from opkernel.types import Array, DataType, PartialTensorShape, Variant

Element: TypeAlias = tuple[Any, ...]

INFINITE_CARDINALITY, UNKNOWN_CARDINALITY = -1, -2


class DatasetBase(Variant):
    """A dataset.

    Args:
        dtypes: The type of each component of an element.
        shapes: The shape of each, as far as it is known.
        inputs: The datasets that it is made from.

    Attributes:
        dtypes, shapes, inputs: The arguments.
        iterator_type: What passes over it.
        made_by: The node that made it; None where none did.
    """

    made_by: Any = None
    iterator_type: ClassVar[type[DatasetIterator]]

    def __init__(
        self,
        dtypes: Sequence[DataType],
        shapes: Sequence[PartialTensorShape],
        inputs: Sequence[DatasetBase] = (),
    ) -> None:
        self.dtypes, self.shapes = tuple(dtypes), tuple(shapes)
        self.inputs = tuple(inputs)

    def __repr__(self) -> str:
        return f"<{type(self).__name__} of ({', '.join(dtype.string for dtype in self.dtypes)})>"

    @property
    def op(self) -> str:
        """The op that gave it; empty if none did."""
        return str(self.made_by.node.op) if self.made_by else ""

    @property
    def input(self) -> DatasetBase:
        """The only dataset, or the first, that it is made from."""
        return self.inputs[0]

    def cardinality(self) -> int:
        """The number of elements; INFINITE_CARDINALITY or UNKNOWN_CARDINALITY."""
        return UNKNOWN_CARDINALITY

    def iterator(self) -> DatasetIterator:
        """A pass over it, at its beginning.

        Raises:
            ResourceExhaustedError: it has too many stages.
        """
        try:
            return self.iterator_type(self)
        except RecursionError:
            raise ResourceExhaustedError("The dataset has too many stages") from None

    @property
    def options(self) -> bytes:
        """The serialized Options that were set on it, last ones last."""
        return b"".join(dataset.options for dataset in self.inputs)

    def to_proto(self) -> VariantTensorDataProto:
        """Datasets do not stand in files.

        Raises:
            UnimplementedError: in any case.
        """
        raise UnimplementedError(
            f"{type(self).__name__} cannot be written: a dataset is part of its program"
        )


class DatasetIterator(Closing):
    """A pass over a dataset; used by one thread at a time. It ends with the block of its `with` statement, or by `close`.

    Attributes:
        dataset: The dataset.
        state: The names of the attributes that hold its state: numbers, elements, other iterators and lists of these.
    """

    state: ClassVar[tuple[str, ...]] = ()

    def __init__(self, dataset: Any) -> None:
        self.dataset = dataset
        self.start()

    def start(self) -> None:
        """Set the attributes of the state to what they are at the beginning."""

    def next(self, step: Step) -> Element | None:
        """The next element; None at the end.

        Args:
            step: The step that asks; functions run in it.
        """
        raise NotImplementedError(f"{type(self).__name__} does not override next")

    def restored(self, step: Step) -> None:
        """Make anew what is not saved, from what is: the state has just been read."""

    def paused(self) -> AbstractContextManager[None]:
        """A block in which the state is read: no thread of the pass changes it."""
        return nullcontext()

    def close(self) -> None:
        """Give back files and the like; the pass is over."""
        for value in vars(self).values():
            for one in value if isinstance(value, list) else (value,):
                if isinstance(one, DatasetIterator):
                    one.close()


class InputIterator(DatasetIterator):
    """A pass over a dataset that is made from one other; `input` is the pass over that one."""

    state: ClassVar[tuple[str, ...]] = ("input",)
    input: DatasetIterator

    def start(self) -> None:
        self.input = self.dataset.input.iterator()

    def inputs(self, step: Step, doing: str) -> Iterator[Element]:
        """The elements of the input, as long as there is time: for loops that may go on for long."""
        while (element := self.input.next(step)) is not None:
            yield element
            step.check()
            check_time(doing)


class PassedOnIterator(InputIterator):
    """Gives the elements of the input."""

    def next(self, step: Step) -> Element | None:
        return self.input.next(step)


class Turns:
    """Has the threads that use an iterator take turns; who waits keeps to the limits of its step."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._owner: int | None = None

    @contextmanager
    def turn(self, step: Step) -> Iterator[None]:
        """The turn of this thread.

        Args:
            step: The step that waits.

        Raises:
            FailedPreconditionError: it is this thread's turn already: the iterator needs itself for its next element.
            DeadlineExceededError, CancelledError: the step may wait no longer.
        """
        if self._owner == threading.get_ident():
            raise FailedPreconditionError("The iterator is needed to compute its own next element")
        is_ours = False
        try:
            while not is_ours:
                (is_ours,) = map(self._lock.acquire, [True], [_LOOKS_S])
                if not is_ours:
                    step.check()
                    check_time("waiting for an iterator")
            self._owner = threading.get_ident()
            yield
        finally:
            if is_ours:
                self._owner = None
                self._lock.release()


_LOOKS_S = 0.02
"""So often a thread that waits looks at the limits of its step."""


def held(element: Element) -> Element:
    """An element that a dataset keeps beyond the step, so that its memory counts.

    Raises:
        ResourceExhaustedError: the memory limit leaves no room for it.
    """
    budget = current_budget()
    if budget is not None:
        for tensor in element:
            budget.lasting.hold(tensor)
    return element


_BYTES_OF_ENTRY = 100  # of a key in a dict: its hash, two references, and room to grow
_COUNTED_AT_ONCE = 16384


class KeysInMemory:
    """Counts the memory of the keys that a pass keeps beyond the step, as long as this object is there.

    Args:
        keys: Those that there are already.
    """

    def __init__(self, keys: Iterable[Any] = ()) -> None:
        self._marks: list[Array] = []
        self._uncounted = 0
        for key in keys:
            self.add(key)

    def add(self, key: Any) -> None:
        """Count a key, together with others of a few bytes.

        Raises:
            ResourceExhaustedError: the memory limit leaves no room for it.
        """
        self._uncounted += sys.getsizeof(key) + _BYTES_OF_ENTRY
        if self._uncounted < _COUNTED_AT_ONCE or (budget := current_budget()) is None:
            return
        mark = np.empty(0, np.uint8)
        budget.lasting.hold(mark, self._uncounted, "keys that a dataset remembers")
        self._marks.append(mark)
        self._uncounted = 0


def dataset_of(tensor: Array) -> DatasetBase:
    """The dataset that a tensor holds.

    Raises:
        InvalidArgumentError: the tensor is no scalar, or holds something else.
    """
    if tensor.ndim:
        raise InvalidArgumentError("Dataset tensor must be a scalar of dtype DT_VARIANT.")
    dataset = tensor[()]
    if not isinstance(dataset, DatasetBase):
        raise InvalidArgumentError("Tensor must be a Dataset object.")
    return dataset
