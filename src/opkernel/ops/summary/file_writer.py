"""The resource behind ops that write event files: a queue of events, and the file.

State: `_open_files` keeps the files of writers from being collected together with these.

Source: TensorFlow core/summary/summary_file_writer.cc.
"""

from __future__ import annotations

import threading
import time
from contextlib import suppress

from opkernel.errors import OpError
from opkernel.io.events_file import EventsFile
from opkernel.kernel import ResourceBase
from opkernel.ops.summary.wire import field
from opkernel.proto import Event

GRAPH_DEF, SUMMARY = 4, 5
"""The numbers of fields of Event."""
_MOST_BYTES = 1 << 24
"""A queue of more bytes is written, whatever its length."""

_open_files: set[EventsFile] = set()
"""A collection that finds a writer and its file may close the file first, before the writer has written its queue."""


class SummaryFileWriter(ResourceBase):
    """Writes events when there are more than `max_queue`, or some time after the last time.

    Args:
        file: The file, which it closes.
        max_queue: So many events wait; a negative number is no limit.
        flush_millis: The time in milliseconds; a negative number is no limit.
    """

    def __init__(self, file: EventsFile, max_queue: int, flush_millis: int) -> None:
        super().__init__()
        self._file = file
        _open_files.add(file)
        self._max_queue, self._flush_seconds = max_queue, flush_millis / 1000
        self._lock = threading.Lock()
        self._queue: list[bytes] = []
        self._queued_bytes = 0
        self._is_closed = False
        self._last_flush = time.monotonic()

    def write(self, step: int, number: int, content: bytes) -> None:
        """Write an event of now.

        Args:
            step: The step.
            number: The field that has the content: `GRAPH_DEF`, or `SUMMARY` for a serialized Summary.
            content: The content.

        Raises:
            OpError: the file cannot be written.
        """
        self.write_event(b"".join([event_of_now(step), *field(number, content)]))

    def write_event(self, event: bytes) -> None:
        """Write a serialized Event.

        Raises:
            OpError: the file cannot be written.
        """
        with self._lock:
            self._queue.append(event)
            self._queued_bytes += len(event)
            if self._is_full():
                self._write_queue()

    def flush(self) -> None:
        """Write the waiting events.

        Raises:
            OpError: the file cannot be written.
        """
        with self._lock:
            self._write_queue()

    def _is_full(self) -> bool:
        waited = time.monotonic() - self._last_flush
        return (
            0 <= self._max_queue < len(self._queue)
            or 0 <= self._flush_seconds < waited
            or self._queued_bytes > _MOST_BYTES
        )

    def _write_queue(self) -> None:
        queue, self._queue, self._queued_bytes = self._queue, [], 0
        for event in queue:
            self._file.write(event)
        self._file.flush()
        self._last_flush = time.monotonic()

    def memory_used(self) -> int:
        return self._queued_bytes

    def close(self) -> None:
        """Write the waiting events, and end the file. A second call does nothing.

        Raises:
            OpError: the file cannot be written.
        """
        with self._lock:
            if self._is_closed:
                return
            self._is_closed = True
            try:
                self._write_queue()
            finally:
                _open_files.discard(self._file)
                self._file.close()

    def on_destroy(self) -> None:
        """Write the waiting events, and end the file; errors have no receiver here."""
        with suppress(OpError):
            self.close()


def event_of_now(step: int) -> bytes:
    """The fields of an Event that come before its content."""
    return Event(wall_time=time.time(), step=step).SerializeToString()
