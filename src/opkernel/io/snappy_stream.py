"""Files of blocks that are compressed with Snappy: the size of each, four bytes, then the block.

Source: TensorFlow tsl/lib/io/snappy/snappy_inputbuffer.cc, snappy_outputbuffer.cc.
"""

from __future__ import annotations

import io
import os
from typing import BinaryIO

from opkernel.checkpoint.snappy import compressed, decompressed
from opkernel.device.allocation import check_allocation
from opkernel.errors import DataLossError
from opkernel.types import DataType

SNAPPY = "SNAPPY"
"""The name of the compression."""
_BLOCK = 1 << 16
"""The content of a block that is written; TensorFlow's readers take up to 256 KiB."""


class SnappyReader(io.RawIOBase):
    """What a compressed file holds.

    Args:
        file: The file, which it closes.
        path: The name of the file, for messages.
    """

    def __init__(self, file: BinaryIO, path: str) -> None:
        super().__init__()
        self._file, self._path = file, path
        self._content = memoryview(b"")

    def readable(self) -> bool:
        """It is."""
        return True

    def readinto(self, buffer: memoryview[int]) -> int:  # type: ignore[override]  # bytes come in
        """Fill the beginning of a buffer; 0 at the end.

        Raises:
            DataLossError: the file is damaged.
        """
        while not self._content:
            header = self._file.read(4)
            if not header:
                return 0
            size = int.from_bytes(header, "big")
            check_allocation((size,), DataType.DT_UINT8)
            block = self._file.read(size)
            if len(header) < 4 or len(block) < size:
                raise DataLossError(f"{os.fsdecode(self._path)} ends within a block")
            self._content = memoryview(decompressed(block))
        count = min(len(buffer), len(self._content))
        buffer[:count] = self._content[:count]
        self._content = self._content[count:]
        return count

    def close(self) -> None:
        """Close the file."""
        self._file.close()
        super().close()


class SnappyWriter:
    """Writes bytes to a file in blocks that are compressed.

    Args:
        file: The file; it stays open.
    """

    def __init__(self, file: BinaryIO) -> None:
        self._file, self._waiting = file, bytearray()

    def write(self, data: bytes) -> None:
        """Write bytes."""
        self._waiting += data
        while len(self._waiting) >= _BLOCK:
            self._write_block(bytes(self._waiting[:_BLOCK]))
            del self._waiting[:_BLOCK]

    def finish(self) -> None:
        """Write what waits."""
        if self._waiting:
            self._write_block(bytes(self._waiting))
            self._waiting.clear()

    def _write_block(self, content: bytes) -> None:
        block = compressed(content)
        self._file.write(len(block).to_bytes(4, "big") + block)
