"""Event files, which TensorBoard shows: TFRecords of Event messages. The first one tells the version of the format.

Source: TensorFlow core/util/events_writer.cc.
"""

from __future__ import annotations

import itertools
import os
import time
from typing import TYPE_CHECKING

from opkernel.device.permissions import OWN_CODE, Permissions
from opkernel.file_errors import file_errors
from opkernel.io.record_format import RecordWriter, TFRecordOptions
from opkernel.proto import Event, SourceMetadata

if TYPE_CHECKING:
    from typing import BinaryIO

_VERSION = "brain.Event:2"
_numbers = itertools.count()


class EventsFile:
    """A new event file, to which events are appended. It belongs to one thread at a time.

    Args:
        logdir: The directory of the file; it is made where it is missing.
        suffix: The end of the file's name.
        permissions: Which files may be written.

    Attributes:
        path: The file.

    Raises:
        PermissionDeniedError: the file may not be written.
        OpError: the file cannot be made.
    """

    def __init__(
        self, logdir: str | bytes, suffix: str | bytes = "", permissions: Permissions = OWN_CODE
    ) -> None:
        now = int(time.time())
        host = os.uname().nodename if hasattr(os, "uname") else "localhost"
        name = f"events.out.tfevents.{now:010d}.{host}.{os.getpid()}.{next(_numbers)}"
        self.path = os.path.join(os.fsdecode(logdir), name + os.fsdecode(suffix))
        with file_errors(self.path):
            file: BinaryIO = os.fdopen(permissions.open_to_write(self.path), "wb")
            file.truncate()
        self._writer = RecordWriter(file, self.path, TFRecordOptions())
        source = SourceMetadata(writer="opkernel")
        event = Event(wall_time=now, file_version=_VERSION, source_metadata=source)
        self.write(event.SerializeToString())
        self.flush()

    def write(self, event: bytes) -> None:
        """Append a serialized Event.

        Raises:
            OpError: the file cannot be written.
        """
        self._writer.write(event)

    def flush(self) -> None:
        """Hand the written events to the system.

        Raises:
            OpError: the file cannot be written.
        """
        self._writer.flush()

    def close(self) -> None:
        """End the file.

        Raises:
            OpError: the file cannot be written.
        """
        self._writer.close()
