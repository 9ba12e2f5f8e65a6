"""Elements that threads compute before they are asked for, in order.

Each thread takes an element of the input, in turn, and computes its result. `capacity` results may wait. The pass begins
without threads: they start once two elements in a row have taken so long that threads pay.

A saved pass has the input's elements whose results wait; a restored one computes these again.

Source: PrefetchDatasetOp::Iterator in TensorFlow core/kernels/data/prefetch_dataset_op.cc,
ParallelMapDatasetOp::Iterator in parallel_map_dataset_op.cc.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from contextvars import copy_context
from functools import partial
from typing import Any, ClassVar

import numpy as np

from opkernel.device.allocation import under_budget
from opkernel.device.budget import Budget, check_time, current_budget
from opkernel.device.intra_op import intra_op_threads
from opkernel.errors import CancelledError, Code, InternalError, OpError, error_of_code
from opkernel.interrupts import contextmanager
from opkernel.kernel import Step
from opkernel.ops.data.dataset import (
    DatasetBase,
    DatasetIterator,
    Element,
    InputIterator,
    Turns,
    held,
)

_WORTHWHILE_S = 0.001
"""Threads start when two elements in a row take longer. Handing an element over costs a tenth of that."""
_LOOKS_S = 0.05
"""So often a thread that waits looks at the limits of its step."""
_GRACE_S = 1.0
"""For so long a pass that is closed waits for its threads: they may be in Python code that cannot be stopped."""
AUTOTUNED_CAPACITY = 4
_MOST_THREADS = 64

Compute = Callable[[Step, Element], Element | None]


class _Slot:
    """A result that waits, or is being computed.

    Attributes:
        given: The input's element, or the error in its place.
        outcome: The result, None for the end of the dataset, or the error; () while it is computed.
    """

    __slots__ = ("given", "is_done", "outcome")

    def __init__(self, given: Element | BaseException) -> None:
        self.given = given
        self.is_done = False
        self.outcome: Element | BaseException | None = ()


class _Threads:
    """The threads of a pass, and the results that wait.

    Args:
        source: The pass over the input; threads take its elements in turn.
        compute: Computes the result for an element; None where elements are results.
        slots: What waits already.
        capacity: How many results may wait.
        step: The step of the threads, which is theirs alone (`Step.detached`).
    """

    def __init__(
        self,
        source: DatasetIterator,
        compute: Compute | None,
        slots: Sequence[_Slot],
        capacity: int,
        step: Any,
    ) -> None:
        self.reading = Turns()
        self.slots = deque(slots)
        self.step = step
        self._uncomputed = deque(slot for slot in slots if not slot.is_done)
        self._source, self._compute, self._capacity = source, compute, capacity
        self._is_over = self._is_closed = False
        self._changed = threading.Condition()
        self._threads: list[threading.Thread] = []

    def start(self, count: int) -> bool:
        """Start so many threads, or as many as the system gives; whether there is any."""
        budget = current_budget()
        for number in range(count):
            work = partial(copy_context().run, self._work, budget)
            name = f"opkernel data {number + 1}"
            thread = threading.Thread(target=work, name=name, daemon=True)
            with self._changed:
                try:
                    thread.start()
                except RuntimeError:  # no more threads, or the interpreter is ending
                    return bool(self._threads)
                self._threads.append(thread)  # it needs the lock to take itself out
        return True

    def next(self, step: Step) -> Element | None:
        """The next result; None at the end."""
        with self._changed:
            while not (self.slots and self.slots[0].is_done):
                if self._is_closed or (self._is_over and not self.slots):
                    return None
                if not any(thread.is_alive() for thread in self._threads):  # as after a fork
                    raise InternalError("The threads of a dataset have ended")
                self._changed.wait(_LOOKS_S)
                step.check()
                check_time("waiting for an element")
            slot = self.slots.popleft()
            self._changed.notify_all()
        if isinstance(slot.outcome, BaseException):
            raise slot.outcome
        return slot.outcome

    def close(self) -> None:
        """End the threads, and wait for that; the last one closes the input."""
        with self._changed:
            if self._is_closed:
                return
            self._is_closed = True
            threads = [*self._threads]
            self._changed.notify_all()
        self.step.cancel()
        if not threads:
            self._end()
        until = time.monotonic() + _GRACE_S
        for thread in threads:
            if thread is not threading.current_thread():
                thread.join(max(until - time.monotonic(), 0))

    def _work(self, budget: Budget | None) -> None:
        with ExitStack() as stack:
            stack.enter_context(np.errstate(all="ignore"))
            if budget is not None:
                own = Budget(outer=budget.lasting)
                own.deadline = None  # that is one of who asks, not of the pass
                stack.enter_context(under_budget(own))
            while (slot := self._next_slot()) is not None:
                outcome = slot.outcome if slot.is_done else self._outcome(slot)
                with self._changed:
                    slot.outcome, slot.is_done = outcome, True
                    self._changed.notify_all()
        self._leave()

    def _next_slot(self) -> _Slot | None:
        """A slot whose result is to be computed; None where the thread is to end."""
        while True:
            with self._changed:
                if self._uncomputed:
                    return self._uncomputed.popleft()
                while self._is_full():
                    self._changed.wait()
            try:
                with self.reading.turn(self.step):
                    if self._is_closed or self._is_over:
                        return None
                    if not self._is_full():
                        return self._read()
            except CancelledError:  # while the thread waited for its turn
                return None

    def _is_full(self) -> bool:
        is_at_end = self._is_closed or self._is_over
        return not is_at_end and len(self.slots) >= self._capacity

    def _read(self) -> _Slot | None:
        try:
            given: Any = self._source.next(self.step)
            if given is not None:
                given = held(given)
        except BaseException as error:  # raised where the element is asked for
            given = error
        with self._changed:
            if given is None:
                self._is_over = True
                self._changed.notify_all()
                return None
            slot = _Slot(given)
            if self._compute is None or isinstance(given, BaseException):
                slot.outcome, slot.is_done = given, True
            self.slots.append(slot)
            return slot

    def _outcome(self, slot: _Slot) -> Element | BaseException | None:
        given = slot.given
        assert self._compute is not None
        assert not isinstance(given, BaseException)
        try:
            result = self._compute(self.step, given)
            return None if result is None else held(result)
        except BaseException as error:  # raised where the element is asked for
            return error

    def _leave(self) -> None:
        with self._changed:
            self._threads.remove(threading.current_thread())
            is_last = self._is_closed and not self._threads
            self._changed.notify_all()
        if is_last:
            self._end()

    def _end(self) -> None:
        self._source.close()
        self.step.end()


class ReadAheadIterator(InputIterator):
    """Has threads compute its elements, where the dataset says so and that pays.

    The dataset's `threads` says how many there are; 0 for none. Its `capacity` says how many results may wait, and its
    `compute` gives the result for an element; None where elements are results. Threads keep the dataset, not this.
    """

    state: ClassVar[tuple[str, ...]] = ("input", "waiting")

    def start(self) -> None:
        super().start()
        self._threads: _Threads | None = None
        self._is_slow = False
        self._slots: list[_Slot] = []

    @property
    def waiting(self) -> list[Any]:
        """The input's elements whose results wait, and errors as lists of code and message."""
        slots = self._slots if self._threads is None else self._threads.slots
        return [_saved(slot.given) for slot in slots]

    @waiting.setter
    def waiting(self, saved: list[Any]) -> None:
        self._slots = [_slot(given, is_result=self.dataset.compute is None) for given in saved]

    @contextmanager
    def paused(self) -> Iterator[None]:
        """Within the block, no thread reads the input."""
        threads = self._threads
        if threads is None:
            yield
        else:
            with threads.reading.turn(threads.step):
                yield

    def next(self, step: Step) -> Element | None:
        if self._threads is not None:
            return self._threads.next(step)
        if not self.dataset.threads:
            return self._computed(step)
        begun = time.perf_counter()
        try:
            return self._computed(step)
        finally:
            was_slow, self._is_slow = self._is_slow, time.perf_counter() - begun > _WORTHWHILE_S
            own = step.detached() if was_slow and self._is_slow else None
            if own is not None:
                self._start(own)

    def _computed(self, step: Step) -> Element | None:
        given: Any = self._slots.pop(0).given if self._slots else self.input.next(step)
        if isinstance(given, BaseException):
            raise given
        compute: Compute | None = self.dataset.compute
        element: Element | None = given
        return element if element is None or compute is None else compute(step, element)

    def _start(self, step: Any) -> None:
        dataset = self.dataset
        threads = _Threads(self.input, dataset.compute, self._slots, dataset.capacity, step)
        if threads.start(dataset.threads):
            self._threads, self._slots = threads, []
        else:
            step.end()

    def close(self) -> None:
        if self._threads is None:
            super().close()
        else:
            self._threads.close()

    def __del__(self) -> None:
        if getattr(self, "_threads", None) is not None:
            self.close()


class ReadAheadDataset(DatasetBase):
    """The elements of a dataset, which a thread reads ahead.

    Args:
        source: The dataset.
        capacity: How many elements may wait.
    """

    iterator_type = ReadAheadIterator
    threads = 1
    compute: Compute | None = None

    def __init__(self, source: DatasetBase, capacity: int = AUTOTUNED_CAPACITY) -> None:
        super().__init__(source.dtypes, source.shapes, [source])
        self.capacity = capacity


def _saved(given: Any) -> Any:
    if isinstance(given, OpError):
        return [int(given.code), given.message]
    if isinstance(given, BaseException):
        return [int(Code.UNKNOWN), f"{type(given).__name__}: {given}"]
    return given


def _slot(given: Any, *, is_result: bool) -> _Slot:
    is_error = isinstance(given, list)
    slot = _Slot(error_of_code(*given) if is_error else given)
    if is_result or is_error:
        slot.outcome, slot.is_done = slot.given, True
    return slot


def threads_for(calls: int) -> int:
    """How many threads compute that many calls side by side; -1 for as many as there are processors."""
    threads = intra_op_threads()
    return threads if calls == -1 else min(calls, _MOST_THREADS)
