"""Writers of event files; which of them summaries are written by, for which step, and whether.

State: the default writer, the step and the condition, in each thread.
Source: TensorFlow python/ops/summary_ops_v2.py.
"""

from __future__ import annotations

import itertools
import os
from collections.abc import Callable
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from opkernel import raw_ops
from opkernel.errors import FailedPreconditionError, InvalidArgumentError
from opkernel.interrupts import setting
from opkernel.messages import short_repr
from opkernel.runtime.calls.eager import execute
from opkernel.tracebacks import entrances
from opkernel.training.resource import Resource
from opkernel.types import object_scalar

if TYPE_CHECKING:
    from contextlib import AbstractContextManager

_Condition = bool | Callable[[], bool]

_MAX_QUEUE = 10
_FLUSH_MILLIS = 120_000
_INT32 = np.iinfo(np.int32)
_numbers = itertools.count(1)
_writer: ContextVar[SummaryWriter | None] = ContextVar("summary_writer", default=None)
_step: ContextVar[Any] = ContextVar("summary_step", default=None)
_condition: ContextVar[_Condition] = ContextVar("record_summaries", default=True)


@entrances
class SummaryWriter:
    """Writes an event file; `create_file_writer` makes it. Functions that are traced may use it.

    Args:
        logdir: The directory of the file.
        max_queue: So many events wait before they are written.
        flush_millis: The longest that they wait, in milliseconds.
        filename_suffix: The end of the file's name.

    Raises:
        InvalidArgumentError: a number is not an int32, or a name is no string.
        OpError: the file cannot be made.
    """

    def __init__(
        self, logdir: Any, max_queue: int, flush_millis: int, filename_suffix: str
    ) -> None:
        arguments = {
            "logdir": _name("logdir", logdir),
            "max_queue": _int32("max_queue", max_queue),
            "flush_millis": _int32("flush_millis", flush_millis),
            "filename_suffix": _name("filename_suffix", filename_suffix),
        }

        def create() -> Any:
            name = f"opkernel.summary.{next(_numbers)}"
            handle = execute("SummaryWriter", {}, {"shared_name": name})
            execute("CreateSummaryFileWriter", {"writer": handle, **arguments}, {})
            return handle

        self._resource = Resource("summary_writer", create, lambda: None)
        self._eager_handle = self._resource.captured_value
        self._is_closed = False

    @property
    def handle(self) -> Any:
        """The handle of the writer, or a tensor of that where a function is being traced.

        Raises:
            FailedPreconditionError: the writer is closed.
        """
        self._check_is_open()
        return self._resource.handle

    def as_default(self, step: Any = None) -> AbstractContextManager[Self]:
        """Within the block, summaries are written by this writer.

        Args:
            step: The step of summaries that are written without one.

        Raises:
            FailedPreconditionError: the writer is closed.
        """
        self._check_is_open()
        values: dict[ContextVar[Any], Any] = {_writer: self}
        if step is not None:
            values[_step] = step
        return setting(values, self)

    def set_as_default(self, step: Any = None) -> None:
        """From here on, this thread's summaries are written by this writer.

        Args:
            step: The step of summaries that are written without one.

        Raises:
            FailedPreconditionError: the writer is closed.
        """
        self._check_is_open()
        _writer.set(self)
        if step is not None:
            _step.set(step)

    def flush(self) -> None:
        """Write the waiting events into the file. A closed writer has none.

        Raises:
            OpError: the file cannot be written.
        """
        if not self._is_closed:
            raw_ops.FlushSummaryWriter(writer=self.handle)

    def close(self) -> None:
        """Write the waiting events, and end the file. A second call does nothing.

        Raises:
            OpError: the file cannot be written.
        """
        if self._is_closed:
            return
        self._is_closed = True
        try:
            execute("FlushSummaryWriter", {"writer": self._eager_handle}, {})
        finally:
            execute("CloseSummaryWriter", {"writer": self._eager_handle}, {})

    def _check_is_open(self) -> None:
        if self._is_closed:
            raise FailedPreconditionError("The SummaryWriter is already closed")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()


def create_file_writer(
    logdir: str | bytes | os.PathLike[str],
    max_queue: int | None = None,
    flush_millis: int | None = None,
    filename_suffix: str | None = None,
    name: str | None = None,
) -> SummaryWriter:
    """A writer that begins an event file in a directory.

        writer = opkernel.summary.create_file_writer("logs")
        with writer.as_default():
            opkernel.summary.scalar("loss", 0.5, step=1)

    Args:
        logdir: The directory; it is made where it is missing.
        max_queue: So many events wait before they are written: 10 if not given.
        flush_millis: The longest that they wait, in milliseconds: 120000 if not given.
        filename_suffix: The end of the file's name: ".v2" if not given.
        name: Ignored.

    Raises:
        InvalidArgumentError: a number is not an int32, or a name is no string.
        OpError: the file cannot be made.
    """
    return SummaryWriter(
        logdir,
        _MAX_QUEUE if max_queue is None else max_queue,
        _FLUSH_MILLIS if flush_millis is None else flush_millis,
        ".v2" if filename_suffix is None else filename_suffix,
    )


def _name(what: str, given: Any) -> Any:
    if not isinstance(given, str | bytes | os.PathLike):
        raise InvalidArgumentError(f"{what} is a string, not {short_repr(given)}")
    return object_scalar(os.fsencode(given))


def _int32(what: str, given: Any) -> Any:
    if not isinstance(given, int | np.integer) or not _INT32.min <= given <= _INT32.max:
        raise InvalidArgumentError(f"{what} is an int32, not {short_repr(given)}")
    return np.int32(given)


def default_writer() -> SummaryWriter | None:
    """The writer that this thread's summaries are written by; None where they are not to be written."""
    return _writer.get() if should_record_summaries() else None


def should_record_summaries() -> bool:
    """Whether this thread's summaries are written: there is a default writer, and `record_if` allows it."""
    condition = _condition.get()
    if _writer.get() is None:
        return False
    return bool(condition() if callable(condition) else condition)


def record_if(condition: _Condition) -> AbstractContextManager[None]:
    """Within the block, this thread's summaries are written only if a condition holds.

    Args:
        condition: A bool, or a function that gives one each time; functions that are traced ask it when they are.
    """
    return setting({_condition: condition})


def get_step() -> Any:
    """The step of summaries that are written without one; None if there is none."""
    return _step.get()


def set_step(step: Any) -> None:
    """Set the step of this thread's summaries that are written without one.

    Args:
        step: An integer, a Variable, or None.
    """
    _step.set(step)


def flush(writer: SummaryWriter | None = None) -> None:
    """Write the waiting events of a writer into its file.

    Args:
        writer: The writer; the default writer if not given, or nothing where there is none.

    Raises:
        OpError: the file cannot be written.
    """
    writer = _writer.get() if writer is None else writer
    if writer is not None:
        writer.flush()
