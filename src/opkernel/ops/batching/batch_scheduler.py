"""BatchScheduler: queues of calls, which join them to batches, and the threads that process batches.

A batch is due when it is full, when its first call has waited long enough, or when a later one was begun. Threads begin
when a batch is due, and end when none is. So a scheduler that has nothing to do has no threads.

Source: TensorFlow core/kernels/batching_util/shared_batch_scheduler.h, input_split_metadata.h.
"""

import threading
import time
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Any, Protocol

from opkernel.errors import InvalidArgumentError, UnavailableError
from opkernel.records import dataclass


class Task(Protocol):
    """A call, or a part of one, that waits in a queue."""

    @property
    def rows(self) -> int:
        """How many rows it has, at least 1."""

    def split(self, sizes: list[int]) -> list[Any]:
        """Tasks of so many rows each, in their order."""


@dataclass(frozen=True)
class QueueOptions:
    """How a queue joins calls.

    Attributes:
        max_task_rows: The most rows of a call.
        max_batch_rows: The most rows of a batch.
        timeout_s: How long the first call of a batch waits for others.
        max_enqueued_batches: How many batches may wait for a thread.
        splits: Whether a call may be spread over several batches.
    """

    max_task_rows: int
    max_batch_rows: int
    timeout_s: float
    max_enqueued_batches: int
    splits: bool


class _Batch:
    """Tasks that are processed together; `due` is the time from which on it waits for no others."""

    def __init__(self) -> None:
        self.tasks: list[Any] = []
        self.rows = 0
        self.due = float("inf")
        self.timer: threading.Timer | None = None

    def end_timer(self) -> None:
        if self.timer is not None:
            self.timer.cancel()


class BatchScheduler:
    """Processes the batches of its queues, one of each in turn.

    Args:
        num_threads: So many batches are processed at once.
        options: How the queues join calls.
        process: Processes the tasks of a batch. It must not raise.
    """

    def __init__(
        self, num_threads: int, options: QueueOptions, process: Callable[[list[Any]], None]
    ) -> None:
        self._num_threads = num_threads
        self._options = options
        self._process = process
        self._lock = threading.Lock()
        self._running = 0
        self._queues: deque[tuple[str, deque[_Batch]]] = deque()

    def schedule(self, task: Task, queue: str = "") -> None:
        """Put a task into the queue of a name, which is made if need be.

        Raises:
            InvalidArgumentError: it has more rows than a call may have.
            UnavailableError: the queue is full.
        """
        limit = self._options.max_task_rows
        if task.rows > limit:
            raise InvalidArgumentError(
                f"Task size {task.rows} is larger than maximum input batch size {limit}"
            )
        with self._lock:
            batches = self._batches(queue)
            self._check_capacity(batches, task.rows)
            for part in self._parts(batches[-1], task):
                self._add(batches, part)
            begins = self._begins_thread()
        if begins:
            self._begin_thread()

    def discard(self, is_unwanted: Callable[[Any], bool]) -> None:
        """Take tasks out that wait."""
        with self._lock:
            for _, batches in self._queues:
                for batch in batches:
                    batch.tasks = [task for task in batch.tasks if not is_unwanted(task)]
                    batch.rows = sum(task.rows for task in batch.tasks)
                    if not batch.tasks:
                        batch.end_timer()
                        batch.due = float("inf")

    def _batches(self, queue: str) -> deque[_Batch]:
        """The batches of a queue: the last one is open."""
        for name, batches in self._queues:
            if name == queue:
                return batches
        made = deque([_Batch()])
        self._queues.append((queue, made))
        return made

    def _check_capacity(self, batches: deque[_Batch], rows: int) -> None:
        options = self._options
        free = options.max_batch_rows - batches[-1].rows
        more = options.max_enqueued_batches - len(batches)
        if options.splits:
            is_full = rows > more * options.max_batch_rows + free
        else:
            is_full = rows > free and more <= 0
        if is_full:
            raise UnavailableError(
                f"The batch scheduling queue to which this task was submitted is full; currently has "
                f"{len(batches)} batches enqueued and max_enqueued_batches is {options.max_enqueued_batches}"
            )

    def _parts(self, last: _Batch, task: Task) -> list[Any]:
        """The task, or its parts: the first one fills the open batch, and the others are as large as batches."""
        size = self._options.max_batch_rows
        free = size - last.rows
        if not self._options.splits or task.rows <= free:
            return [task]
        first = [free] if free else []
        whole, rest = divmod(task.rows - free, size)
        return task.split([*first, *[size] * whole, *([rest] if rest else [])])

    def _add(self, batches: deque[_Batch], task: Task) -> None:
        options, batch = self._options, batches[-1]
        if batch.rows + task.rows > options.max_batch_rows:
            batch.due = 0
            batch = _Batch()
            batches.append(batch)
        if not batch.tasks:
            batch.due = time.monotonic() + options.timeout_s
            if options.timeout_s:
                batch.timer = threading.Timer(options.timeout_s, self._wake)
                batch.timer.daemon = True
                with suppress(RuntimeError):  # no more threads: it waits until another call comes
                    batch.timer.start()
        batch.tasks.append(task)
        batch.rows += task.rows
        if batch.rows >= options.max_batch_rows:
            batch.due = 0

    def _wake(self) -> None:
        with self._lock:
            begins = self._begins_thread()
        if begins:
            self._begin_thread()

    def _begins_thread(self) -> bool:
        """Whether a batch is due that a further thread may process; that thread counts as running then."""
        begins = self._running < self._num_threads and any(self._due())
        self._running += begins
        return begins

    def _begin_thread(self) -> None:
        try:
            threading.Thread(target=self._work, name="opkernel batches", daemon=True).start()
        except RuntimeError:  # the system gives no more threads
            self._work()

    def _due(self) -> Iterator[deque[_Batch]]:
        """The queues whose first batches with tasks are due."""
        now = time.monotonic()
        for _, batches in self._queues:
            while len(batches) > 1 and not batches[0].tasks:
                batches.popleft()
            if batches[0].tasks and batches[0].due <= now:
                yield batches

    def _take(self) -> list[Any]:
        """The tasks of the next batch; none where none is due, and the thread is no longer running."""
        with self._lock:
            batches = next(self._due(), None)
            if batches is None:
                self._running -= 1
                return []
            batch = batches.popleft()
            if not batches:
                batches.append(_Batch())
            while self._queues[-1][1] is not batches:  # the other queues come first then
                self._queues.rotate(-1)
        batch.end_timer()
        return batch.tasks

    def _work(self) -> None:
        while tasks := self._take():
            self._process(tasks)
