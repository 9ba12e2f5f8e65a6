"""Tables of sorted keys and values, in which checkpoints keep their index: LevelDB's format.

A table is a sequence of blocks, then an index of the blocks, then a footer. In a block each key leaves out
what it shares with the key before it, except for every sixteenth. A block ends with its compression and checksum; it may
be compressed with Snappy, which is only read.

Source: TensorFlow tsl/lib/io/table.cc, table_builder.cc, block_builder.cc, format.cc.
"""

from __future__ import annotations

import os
import struct
from bisect import bisect_left
from collections.abc import Iterator, Mapping
from typing import BinaryIO

from opkernel.checkpoint.crc32c import crc32c, mask
from opkernel.checkpoint.snappy import decompressed
from opkernel.errors import DataLossError, FailedPreconditionError
from opkernel.files import Opener, open_to_read
from opkernel.types.varints import read_varint, varint

_MAGIC = struct.pack("<Q", 0xDB4775248B80FB57)
_FOOTER = 48
_TRAILER = 5
_NO_COMPRESSION, _SNAPPY = 0, 1
_BLOCK_BYTES = 256 << 10
_RESTARTS_EVERY = 16
_MOST_SHARING = 16
"""So many keys at most share what a block says once."""


class Table:
    """A table in a file; blocks are read when a key of theirs is asked for.

    Args:
        path: The file.
        open_file: Opens it.

    Raises:
        DataLossError: the file is no table, or damaged; the same holds of all methods.
        OSError: the file cannot be read.
    """

    def __init__(self, path: str, open_file: Opener = open_to_read) -> None:
        self._path = path
        self._descriptor = open_file(path)
        try:
            self._size = os.fstat(self._descriptor).st_size
            self._index = self._read_index()
        except BaseException:
            self.close()
            raise
        self._last: tuple[int, list[tuple[bytes, bytes]]] = (-1, [])

    def close(self) -> None:
        """Close the file."""
        descriptor, self._descriptor = self._descriptor, -1
        if descriptor >= 0:
            os.close(descriptor)

    def __del__(self) -> None:
        if hasattr(self, "_descriptor"):
            self.close()

    def check_open(self) -> None:
        """Raise FailedPreconditionError once the file is closed."""
        if self._descriptor < 0:
            raise FailedPreconditionError(f"{self._path} is closed: open the checkpoint again")

    def is_current(self) -> bool:
        """Whether the path still leads to this file; also where it leads to none."""
        try:
            return os.path.samestat(os.stat(self._path), os.fstat(self._descriptor))
        except OSError:
            return True

    def get(self, key: bytes) -> bytes | None:
        """The value of a key; None where there is none."""
        number = bisect_left(self._index, key, key=lambda entry: entry[0])
        if number == len(self._index):
            return None
        for found, value in self._entries(number):
            if found == key:
                return value
        return None

    def __iter__(self) -> Iterator[tuple[bytes, bytes]]:
        """All keys and values, in order."""
        for number in range(len(self._index)):
            yield from self._entries(number)

    def _read_index(self) -> list[tuple[bytes, bytes]]:
        """The last key of each block, or what sorts after it, and the block's place."""
        if self._size < _FOOTER:
            raise self._damage("it is too short for a table")
        footer = self._bytes(self._size - _FOOTER, _FOOTER)
        if not footer.endswith(_MAGIC):
            raise self._damage("it does not end as a table does")
        _, position = self._place(footer, 0)
        place, _ = self._place(footer, position)
        index = _entries(self._block(*place), self._path)
        end = 0  # blocks follow each other: a file cannot make a reader read one again and again
        for _, one in index:
            (offset, size), _ = self._place(one, 0)
            if offset < end:
                raise self._damage(f"the block at byte {offset} begins before byte {end}")
            end = offset + size + _TRAILER
        return index

    def _entries(self, number: int) -> list[tuple[bytes, bytes]]:
        """The keys and values of a block; the last block that was asked for is kept."""
        self.check_open()
        last, entries = self._last
        if last != number:
            place, _ = self._place(self._index[number][1], 0)
            entries = _entries(self._block(*place), self._path)
            self._last = number, entries
        return entries

    def _place(self, data: bytes, start: int) -> tuple[tuple[int, int], int]:
        """The offset and size of a block, and the position after them."""
        try:
            offset, position = read_varint(data, start)
            size, position = read_varint(data, position)
        except DataLossError as error:
            raise self._damage("the place of a block is missing") from error
        return (offset, size), position

    def _block(self, offset: int, size: int) -> bytes:
        if offset + size + _TRAILER > self._size:
            raise self._damage(f"it ends before the block at byte {offset} does")
        data = self._bytes(offset, size + _TRAILER)
        content, kind = data[:size], data[size]
        if mask(crc32c(data[: size + 1])) != int.from_bytes(data[size + 1 :], "little"):
            raise self._damage(f"the checksum of the block at byte {offset} is wrong")
        if kind not in (_NO_COMPRESSION, _SNAPPY):
            raise self._damage(f"the block at byte {offset} has an unknown compression")
        try:
            return content if kind == _NO_COMPRESSION else decompressed(content)
        except DataLossError as error:
            raise self._damage(error.message) from error

    def _bytes(self, offset: int, size: int) -> bytes:
        data = os.pread(self._descriptor, size, offset)
        if len(data) < size:
            raise self._damage("it was cut short after it was opened")
        return data

    def _damage(self, reason: str) -> DataLossError:
        return DataLossError(f"{self._path} is damaged: {reason}")


def is_table(path: str) -> bool:
    """Whether a path leads to a table that can be read."""
    try:
        if os.path.isfile(path):
            Table(path).close()
            return True
    except (DataLossError, OSError):
        pass
    return False


def _entries(block: bytes, path: str) -> list[tuple[bytes, bytes]]:
    """The keys and values of a block."""
    try:
        (num_restarts,) = struct.unpack("<I", block[-4:])
        end = len(block) - 4 * (num_restarts + 1)
        if end < 0:
            raise DataLossError("a block is shorter than its restarts")
        return [*_walk(block, end)]
    except (DataLossError, struct.error) as error:
        raise DataLossError(f"{path} is damaged: a block cannot be read: {error}") from error


def _walk(block: bytes, end: int) -> Iterator[tuple[bytes, bytes]]:
    key, position, left = b"", 0, _MOST_SHARING * len(block)
    while position < end:
        shared, position = read_varint(block, position)
        unshared, position = read_varint(block, position)
        size, position = read_varint(block, position)
        start = position + unshared
        if shared > len(key) or start + size > end:
            raise DataLossError("an entry reaches beyond the block")
        following = key[:shared] + block[position:start]
        if following <= key and key:
            raise DataLossError("its keys are not in order")
        key = following
        left -= len(key)
        if left < 0:
            raise DataLossError("its keys are longer than it can hold")
        yield key, block[start : start + size]
        position = start + size


def write_table(file: BinaryIO, first: bytes, entries: Mapping[bytes, bytes]) -> None:
    """Write a table: what the empty key stands for, and the entries of the other keys in any order."""
    writer = TableWriter(file)
    writer.add(b"", first)
    for key in sorted(entries):
        writer.add(key, entries[key])
    writer.finish()


class TableWriter:
    """Writes a table: `add` in the order of the keys, then `finish`.

    Args:
        file: What takes the bytes.
    """

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self._offset = 0
        self._block = _Block(_RESTARTS_EVERY)
        self._index = _Block(1)
        self._pending: bytes | None = None

    def add(self, key: bytes, value: bytes) -> None:
        """Add a key, which sorts after all before it, and its value."""
        if self._pending is not None:
            self._index.add(_between(self._block.last_key, key), self._pending)
            self._pending = None
        self._block.add(key, value)
        if self._block.size >= _BLOCK_BYTES:
            self._flush()

    def finish(self) -> None:
        """Write what is left, the index and the footer."""
        self._flush()
        metaindex = self._write(_Block(_RESTARTS_EVERY))
        if self._pending is not None:
            self._index.add(_after(self._block.last_key), self._pending)
        footer = metaindex + self._write(self._index)
        self._file.write(footer.ljust(_FOOTER - len(_MAGIC), b"\0") + _MAGIC)

    def _flush(self) -> None:
        if self._block.data:
            self._pending = self._write(self._block)
            self._block = _Block(_RESTARTS_EVERY, self._block.last_key)

    def _write(self, block: _Block) -> bytes:
        """Write a block; the result is its place."""
        data = block.content() + bytes([_NO_COMPRESSION])
        self._file.write(data + struct.pack("<I", mask(crc32c(data))))
        place = varint(self._offset) + varint(len(data) - 1)
        self._offset += len(data) + 4
        return place


class _Block:
    """A block that is being written."""

    def __init__(self, restarts_every: int, last_key: bytes = b"") -> None:
        self.last_key = last_key
        self._every = restarts_every
        self.data = bytearray()
        self._restarts = [0]
        self._since_restart = 0

    @property
    def size(self) -> int:
        """The bytes of its content."""
        return len(self.data) + 4 * len(self._restarts) + 4

    def add(self, key: bytes, value: bytes) -> None:
        shared = 0
        if self._since_restart < self._every:
            shared = _common_length(self.last_key, key) if self.data else 0
        else:
            self._restarts.append(len(self.data))
            self._since_restart = 0
        self.data += varint(shared) + varint(len(key) - shared) + varint(len(value))
        self.data += key[shared:] + value
        self.last_key = key
        self._since_restart += 1

    def content(self) -> bytes:
        """The entries, where keys stand whole, and how many of these places there are."""
        return bytes(self.data) + struct.pack(
            f"<{len(self._restarts) + 1}I", *self._restarts, len(self._restarts)
        )


def _common_length(one: bytes, other: bytes) -> int:
    """How many bytes two keys share at their beginnings."""
    if other.startswith(one):
        return len(one)
    return next((i for i, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), len(other))


def _between(key: bytes, following: bytes) -> bytes:
    """A short key that is not below one and below the following one."""
    place = _common_length(key, following)
    if place < min(len(key), len(following)) and key[place] + 1 < following[place]:
        return key[:place] + bytes([key[place] + 1])
    return key


def _after(key: bytes) -> bytes:
    """A short key that is not below one."""
    for place, byte in enumerate(key):
        if byte != 0xFF:
            return key[:place] + bytes([byte + 1])
    return key
