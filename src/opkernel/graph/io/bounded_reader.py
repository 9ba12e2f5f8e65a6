"""BoundedReader: a file of which a parser reads no more than it is allowed, whatever lengths the file claims.

`tarfile` and `zipfile` read headers and lists of files with the lengths that the archive states.
"""

from __future__ import annotations

import os
from typing import Protocol

from opkernel.device.budget import check_time
from opkernel.errors import ResourceExhaustedError

_PIECE = 1 << 20


class _ReadableFile(Protocol):
    """A binary file that can be read from any place."""

    def read(self, size: int, /) -> bytes: ...

    def seek(self, offset: int, whence: int, /) -> int: ...

    def tell(self) -> int: ...


class BoundedReader:
    """A file for a parser of archives.

    Args:
        file: The file, which is open, and closed by its owner.
        path: Its name, for messages.

    Attributes:
        bytes_left: How much may be read; None for any amount. The caller sets it from time to time.

    Raises:
        ResourceExhaustedError: more is to be read; the same holds of all methods.
        DeadlineExceededError: time is up.
    """

    def __init__(self, file: _ReadableFile, path: str, bytes_left: int | None = None) -> None:
        self._file = file
        self._path = path
        self.bytes_left = bytes_left

    def read(self, size: int = -1) -> bytes:
        """The next bytes: so many, or all that there are."""
        pieces = []
        while size:
            check_time("reading", self._path)
            piece = self._file.read(_PIECE if size < 0 else min(size, _PIECE))
            if not piece:
                break
            self._count(len(piece))
            pieces.append(piece)
            size -= len(piece) if size > 0 else 0
        return b"".join(pieces)

    def _count(self, num_bytes: int) -> None:
        if self.bytes_left is None:
            return
        self.bytes_left -= num_bytes
        if self.bytes_left < 0:
            raise ResourceExhaustedError(
                f"{self._path} has a header, or a list of files, larger than is read"
            )

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        """Go to a place."""
        return self._file.seek(offset, whence)

    def tell(self) -> int:
        """The place."""
        return self._file.tell()

    def seekable(self) -> bool:
        """Whether `seek` can be called."""
        return True

    def close(self) -> None:
        """Do nothing: the file belongs to whoever opened it."""
