"""ReaderBase: the common part of all readers: work from a queue, turns, counts, state.

Work that waits now and then, written as a generator; no thread is blocked meanwhile.

Source: TensorFlow core/framework/reader_base.cc, reader_interface.h.
"""

import threading
from collections.abc import Callable, Generator, Iterator
from contextvars import copy_context
from functools import partial
from sys import getsizeof
from typing import ClassVar, NamedTuple

from opkernel.device.budget import check_time
from opkernel.errors import CancelledError, InvalidArgumentError, UnimplementedError, as_op_error
from opkernel.interrupts import contextmanager
from opkernel.kernel import OpKernelContext, check_allocation
from opkernel.messages import short_repr
from opkernel.ops.data_flow.queues import Element, QueueBase
from opkernel.ops.data_flow.waiting import Done, Line, Steps, WaitingResource
from opkernel.ops.input_checks import require_equal
from opkernel.proto import DecodeError, ReaderBaseState
from opkernel.records import dataclass
from opkernel.types import DataType

Wait = Callable[[Done], None]
"""Starts to wait; the function that it is given is to be called when the wait is over."""

Waits = Generator[Wait, None, None]
"""Work of one kernel: it goes on after each wait, unless the kernel has failed then."""


def run_waits(waits: Waits, ctx: OpKernelContext, done: Done, *, takes_long: bool = False) -> None:
    """Do the work, of which an error is the kernel's status, and call `done` in the end.

    Work that takes long has a thread of its own. So has work after a wait, as whoever ends the wait has
    other things to do.
    """
    context = copy_context()  # the budget of the step, among others

    def go_on() -> None:
        try:
            while ctx.status is None and (wait := next(waits, None)) is not None:
                if not _is_over_at_once(wait, later):
                    return
            waits.close()
        except Exception as error:  # whatever goes wrong belongs to the kernel
            waits.close()
            ctx.set_status(as_op_error(error))
        done()

    def later() -> None:
        _on_thread(partial(context.run, go_on))

    if takes_long:
        later()
    else:
        go_on()


def _is_over_at_once(wait: Wait, later: Done) -> bool:
    """Start a wait; `later` is called at its end, unless it is over at once."""
    first = threading.Lock()  # taken by what comes first: the end, or the return of the call

    def end() -> None:
        if not first.acquire(blocking=False):
            later()

    wait(end)
    return not first.acquire(blocking=False)


def _on_thread(work: Callable[[], None]) -> None:
    """Have a new thread do the work, or the calling one where the system gives no more threads."""
    try:
        threading.Thread(target=work, name="opkernel reader", daemon=True).start()
    except RuntimeError:
        work()


_RECORD_BYTES = getsizeof((b"", b"")) + 2 * getsizeof(b"")
_CHECKED_BYTES = 1 << 16
"""So many bytes of records come together before the budget is asked for more."""


class Record(NamedTuple):
    """What one read gives."""

    key: bytes
    value: bytes


class Records(list[Record]):
    """The records of one kernel, which its step must have the memory for."""

    def __init__(self) -> None:
        super().__init__()
        self._size = self._checked_size = 0

    def append(self, record: Record) -> None:
        """Add a record.

        Raises:
            ResourceExhaustedError: that is too much.
        """
        key, value = record
        self._size += _RECORD_BYTES + len(key) + len(value)
        if self._size - self._checked_size >= _CHECKED_BYTES or not self:
            self._checked_size, *_ = check_allocation((self._size,), DataType.DT_UINT8)
        super().append(record)


@dataclass(slots=True)
class ReaderState:
    """How far a reader is.

    Attributes:
        work_started, work_finished: How many files it has begun and finished.
        num_records_produced: How many records it has read.
        current_work: The file that it reads, or read last.
    """

    work_started: int = 0
    work_finished: int = 0
    num_records_produced: int = 0
    current_work: bytes = b""


class ReaderBase(WaitingResource):
    """Reads the records of one file after the other; used from any thread.

    A kernel waits for its turn, and keeps it until it is done, also while it waits for the queue.

    Args:
        name: The name, for messages.

    Attributes:
        type_name: The op, without its version.
        has_one_record: Whether each file is one record.
        takes_no_time: Whether no file is opened or read.
        state: How far it is; changed in turn.
    """

    type_name: ClassVar[str]
    has_one_record: ClassVar[bool] = False
    takes_no_time: ClassVar[bool] = False

    def __init__(self, name: str) -> None:
        self._turns = Line()
        super().__init__(self._turns)
        self._has_turn = False
        self.name = name
        self.state = ReaderState()

    # What formats do, in turn

    def start_work(self, ctx: OpKernelContext) -> None:
        """Begin with the file `state.current_work`."""

    def finish_work(self) -> None:
        """Leave the file, if there is one."""

    def read_record(self, ctx: OpKernelContext) -> Record | None:
        """The next record of the file; None at its end."""
        raise NotImplementedError(f"{type(self).__name__} does not override read_record")

    # What kernels do

    def read(self, count: int, queue: QueueBase, ctx: OpKernelContext, found: Records) -> Waits:
        """Read up to so many records: fewer where a file ends."""
        yield partial(self._take_turn, ctx)
        with self._turn():
            while len(found) < count:
                _check_goes_on(ctx)
                if not self._is_working:
                    yield partial(self._take_work, queue, ctx)
                    self.start_work(ctx)
                    self.state.work_started += 1
                record = self.read_record(ctx)
                if record is not None:
                    self.state.num_records_produced += 1
                    found.append(record)
                if record is None or self.has_one_record:
                    self.finish_work()
                    self.state.work_finished = self.state.work_started
                    if found:
                        return

    def reset(self, ctx: OpKernelContext) -> Waits:
        """Forget the file and the counts."""
        yield partial(self._take_turn, ctx)
        with self._turn():
            self._reset()

    def serialize_state(self, ctx: OpKernelContext, found: list[bytes]) -> Waits:
        """Put the state, as a ReaderBaseState, into a list."""
        yield partial(self._take_turn, ctx)
        with self._turn():
            self._check_has_state("SerializeState")
            fields = {name: getattr(self.state, name) for name in ReaderState.__slots__}
            found.append(ReaderBaseState(**fields).SerializeToString())

    def restore_state(self, serialized: bytes, ctx: OpKernelContext) -> Waits:
        """Take a state on; where that fails the reader is reset."""
        yield partial(self._take_turn, ctx)
        with self._turn():
            self._reset()
            self._check_has_state("RestoreState")
            self.state = self._parsed(serialized)

    def may_take_long(self, count: int) -> bool:
        """Whether reading so many records is worth a thread; one of an open file is not."""
        return not self.takes_no_time and not (count <= 1 and self._is_working)

    # The parts of these

    @property
    def _is_working(self) -> bool:
        return self.state.work_finished < self.state.work_started

    def _reset(self) -> None:
        self.finish_work()
        self.state = ReaderState()

    def _take_turn(self, ctx: OpKernelContext, done: Done) -> None:
        steps = self._turn_steps()
        self.start(self._turns, ctx, done, steps, name=f"The wait for {self.type_name}")

    def _turn_steps(self) -> Steps:
        while self._has_turn:
            yield
        self._has_turn = True

    @contextmanager
    def _turn(self) -> Iterator[None]:
        """A block at whose end the turn, which was taken before, is over."""
        try:
            yield
        finally:
            with self._changing():
                self._has_turn = False

    def _take_work(self, queue: QueueBase, ctx: OpKernelContext, done: Done) -> None:
        self.state.current_work = b""
        queue.dequeue(ctx, done, self._accept_work)

    def _accept_work(self, element: Element) -> None:
        require_equal(
            len(element), 1, f"{self._described} wants a queue of one component, not {{}}"
        )
        (names,) = element
        if names.dtype != object:
            raise InvalidArgumentError(f"{self._described} wants a queue of strings")
        message = f"{self._described} wants one name in each element of the queue, not {{}}"
        require_equal(names.size, 1, message)
        self.state.current_work = names.item()

    def _check_has_state(self, what: str) -> None:
        if not self.has_one_record:
            raise UnimplementedError(f"{self._described} does not support Reader{what}")

    def _parsed(self, serialized: bytes) -> ReaderState:
        try:
            given = ReaderBaseState.FromString(serialized)
        except DecodeError as error:
            raise InvalidArgumentError(
                f"Could not parse state for {self._described}: {short_repr(serialized)}"
            ) from error
        state = ReaderState(*[getattr(given, name) for name in ReaderState.__slots__])
        if min(state.work_started, state.work_finished, state.num_records_produced) < 0:
            raise InvalidArgumentError(f"Negative number in a state for {self._described}: {state}")
        if state.work_started > state.work_finished:
            raise InvalidArgumentError(
                f"Inconsistent work started vs. finished in a state for {self._described}: {state}"
            )
        return state

    @property
    def _described(self) -> str:
        return f"{self.type_name} '{self.name}'"

    def on_destroy(self) -> None:
        """Close the file."""
        self.finish_work()


def _check_goes_on(ctx: OpKernelContext) -> None:
    manager = ctx.cancellation_manager
    if manager is not None and manager.is_cancelled:
        raise CancelledError("Reading was cancelled")
    check_time("reading records")
