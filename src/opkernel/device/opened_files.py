"""Files that kernels read: opened as permissions allow, and read in pieces that the budget allows."""

from __future__ import annotations

import io
import os
import select
import shutil
import stat
from typing import TYPE_CHECKING

from opkernel.device.allocation import check_allocation
from opkernel.device.budget import check_time
from opkernel.device.permissions import Permissions
from opkernel.errors import OutOfRangeError, ResourceExhaustedError
from opkernel.file_errors import file_errors
from opkernel.types import DataType

if TYPE_CHECKING:
    from _typeshed import WriteableBuffer

PIECE = 1 << 18
"""So many bytes are read before the budget is asked for more."""
_WAIT_MS = 20


def open_file(permissions: Permissions, path: str | bytes) -> io.BufferedReader:
    """A file to read from its beginning to its end.

    A pipe or device is waited for while there is time.

    Raises:
        PermissionDeniedError: it may not be read.
        OpError: it cannot be opened, as `file_errors` says.
    """
    with file_errors(os.fsdecode(path)):
        descriptor = permissions.open_to_read(path)
        is_regular = stat.S_ISREG(os.fstat(descriptor).st_mode)
        raw = io.FileIO(descriptor) if is_regular else _WaitingFile(descriptor, os.fsdecode(path))
        return io.BufferedReader(raw, PIECE)


def read_whole(permissions: Permissions, path: str | bytes) -> bytes:
    """The content of a file; its size counts as memory of the step.

    Raises:
        PermissionDeniedError: it may not be read.
        OpError: it cannot be read, as `file_errors` says.
        ResourceExhaustedError: it is larger than the memory limit.
        DeadlineExceededError: there is no time left.
    """
    name = os.fsdecode(path)
    with file_errors(name), open_file(permissions, path) as file:
        size = os.fstat(file.fileno()).st_size
        try:
            pieces, found = [], 0
            check_allocation((size,), DataType.DT_UINT8)
            while piece := file.read(PIECE):
                pieces.append(piece)
                found += len(piece)
                check_time("reading", name)
                if found > size:  # it grows, or does not tell its size
                    check_allocation((found,), DataType.DT_UINT8)
            return b"".join(pieces)
        except ResourceExhaustedError:  # is a MemoryError, too
            raise
        except (MemoryError, OverflowError) as error:
            raise OutOfRangeError(f"{name} is too large to be read") from error


def copy_file(permissions: Permissions, path: str, target: str) -> None:
    """Copy a file that may be read to one of the caller's own.

    Raises:
        PermissionDeniedError: it may not be read.
        OpError: it cannot be copied, as `file_errors` says.
    """
    with file_errors(path), open_file(permissions, path) as file, open(target, "wb") as copy:
        shutil.copyfileobj(file, copy)


class _WaitingFile(io.FileIO):
    """A pipe or device, which may have nothing to read yet."""

    def __init__(self, descriptor: int, path: str) -> None:
        super().__init__(descriptor)
        self._path = path

    def readinto(self, buffer: WriteableBuffer) -> int:
        """Fill the beginning of a buffer; 0 at the end."""
        ready = select.poll()
        ready.register(self.fileno(), select.POLLIN)
        while not ready.poll(_WAIT_MS):
            check_time("waiting for", self._path)
        return super().readinto(buffer) or 0
