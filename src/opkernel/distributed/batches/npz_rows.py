"""Rows of .npz files: each process reads those that it computes, and of compressed files all."""

from __future__ import annotations

import os
import zipfile
from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import IO, Any, ClassVar

import numpy as np

from opkernel.distributed.batches.rows import Array, number_of_rows
from opkernel.errors import DataLossError, InvalidArgumentError, OpError
from opkernel.interrupts import contextmanager
from opkernel.records import dataclass

_LOCAL_HEADER = 30
"""The bytes of a zip file's header of a member, before its name and its extra field."""
_HEADERS = {
    (1, 0): np.lib.format.read_array_header_1_0,
    (2, 0): np.lib.format.read_array_header_2_0,
}


@dataclass(frozen=True)
class NpzRows:
    """The rows of a file from `start` to `stop`."""

    path: str
    start: int
    stop: int
    are_files: ClassVar[bool] = False

    def __len__(self) -> int:
        return self.stop - self.start

    def part(self, start: int, stop: int) -> NpzRows:
        """Some of the rows."""
        return NpzRows(self.path, self.start + start, self.start + stop)

    def read(self) -> Mapping[str, Array]:
        """The arrays of the file, of these rows.

        Raises:
            DataLossError: the file is damaged.
        """
        with _opened(self.path) as (file, archive):
            members = [_member(file, archive, one) for one in archive.infolist()]
            return {one.name: self._rows(file, one) for one in members}

    def _rows(self, file: IO[bytes], member: _Member) -> Array:
        if member.offset is None:
            stat = os.stat(self.path)
            return _loaded(self.path, stat.st_mtime_ns, stat.st_size)[member.name][
                self.start : self.stop
            ]
        shape = (len(self), *member.shape[1:])
        size = member.dtype.itemsize * int(np.prod(member.shape[1:]))
        file.seek(member.offset + self.start * size)
        data = bytearray(len(self) * size)
        if file.readinto(data) != len(data):  # type: ignore[attr-defined]  # of a buffered file
            raise EOFError(f"{member.name} ends early")
        return (
            np.frombuffer(data, member.dtype).reshape(shape)
            if size
            else np.empty(shape, member.dtype)
        )


def npz_rows(path: str) -> NpzRows:
    """All rows of a file.

    Raises:
        DataLossError: the file is damaged.
        InvalidArgumentError: its arrays have different lengths.
    """
    with _opened(path) as (file, archive):
        members = [_member(file, archive, one) for one in archive.infolist()]
        for one in members:
            if not one.shape:
                raise InvalidArgumentError(
                    f"Input {one.name!r} is a scalar; its first axis counts the rows"
                )
        return NpzRows(path, 0, number_of_rows({one.name: one.shape[0] for one in members}))


@dataclass(frozen=True)
class _Member:
    """An array of a file; `offset` is where its elements are, None where they are not there in C order."""

    name: str
    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    offset: int | None


def _member(file: IO[bytes], archive: zipfile.ZipFile, info: zipfile.ZipInfo) -> _Member:
    with archive.open(info) as array:
        shape, is_fortran, dtype = _HEADERS[np.lib.format.read_magic(array)](array)
        start = array.tell()
    if dtype.hasobject:
        raise ValueError(f"{info.filename} has Python objects")
    offset = None
    if info.compress_type == zipfile.ZIP_STORED and (not is_fortran or len(shape) < 2):
        file.seek(info.header_offset + _LOCAL_HEADER - 4)
        lengths = np.frombuffer(file.read(4), "<u2")  # of the name and of the extra field
        offset = info.header_offset + _LOCAL_HEADER + int(lengths.sum()) + start
    return _Member(info.filename.removesuffix(".npy"), shape, dtype, offset)


@contextmanager
def _opened(path: str) -> Iterator[tuple[IO[bytes], zipfile.ZipFile]]:
    """The file and its members."""
    try:
        with open(path, "rb") as file, zipfile.ZipFile(path) as archive:
            yield file, archive
    except OpError:
        raise
    except Exception as error:  # zipfile, zlib and NumPy have many for a damaged file
        raise DataLossError(f"Cannot read arrays from {path}: {error}") from error


@lru_cache(maxsize=1)
def _loaded(path: str, time_ns: int, size: int) -> dict[str, Array]:
    """All arrays of the file that this process reads; its time and size tell it from an earlier one."""
    with np.load(path, allow_pickle=False) as loaded:
        return {name: loaded[name] for name in loaded.files}


forget_arrays = _loaded.cache_clear
"""Give up what is kept of the last file."""
