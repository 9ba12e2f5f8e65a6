"""Rows of data sets, and the batches that they are cut into.

The process that computes rows of .npz, .npy and Parquet files reads them itself; of a compressed .npz file it
reads all. Parquet files are read with pyarrow (the extra `parquet`).
"""

from __future__ import annotations

import csv
import os
import zipfile
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import IO, Any, Protocol, Self

import numpy as np

from opkernel.errors import DataLossError, InvalidArgumentError, OpError
from opkernel.interrupts import contextmanager
from opkernel.libraries import library
from opkernel.records import dataclass, replace
from opkernel.types import Array


class Rows(Protocol):
    """Rows that one mapping, file or folder has; a process that gets them reads them itself."""

    @property
    def are_separate(self) -> bool:
        """Whether each row is read on its own, so that one may be bad and the others good."""

    def __len__(self) -> int: ...

    def part(self, start: int, stop: int) -> Rows:
        """Some of the rows, which are not read yet."""
        ...

    def read(self) -> Mapping[str, Any]:
        """The inputs by name; the first axes count the rows.

        Raises:
            OpError: a file cannot be read.
        """
        ...


@dataclass(frozen=True)
class ArrayRows:
    """Rows of arrays in memory, by the names of inputs."""

    arrays: Mapping[str, Array]
    are_separate = False

    def __len__(self) -> int:
        return number_of_rows({name: len(array) for name, array in self.arrays.items()})

    def part(self, start: int, stop: int) -> ArrayRows:
        """Some of the rows, in the same memory."""
        return ArrayRows({name: array[start:stop] for name, array in self.arrays.items()})

    def read(self) -> Mapping[str, Array]:
        """The arrays."""
        return self.arrays


def number_of_rows(lengths: Mapping[str, int]) -> int:
    """The length that all inputs have.

    Raises:
        InvalidArgumentError: they differ.
    """
    if len({*lengths.values()}) > 1:
        told = ", ".join(f"{name!r} has {length}" for name, length in lengths.items())
        raise InvalidArgumentError(f"The inputs have different numbers of rows: {told}")
    return next(iter(lengths.values()), 0)


def check_columns(
    path: str, columns: Sequence[str], inputs: Iterable[str], required: Collection[str]
) -> None:
    """Raise InvalidArgumentError where a table has no column for a required input."""
    missing = [name for name in inputs if name in required and name not in columns]
    if missing:
        raise InvalidArgumentError(
            f"{path} has no column {_listed(missing)}; it has the columns {_listed(columns)}, and the model "
            f"takes {_listed(inputs)}"
        )


def _listed(names: Iterable[str]) -> str:
    return ", ".join(map(repr, names)) or "none"


@dataclass(frozen=True)
class Batch:
    """Rows that the model gets at once.

    Attributes:
        number: how many batches come before.
        first_row: how many rows come before.
        rows: the rows.
    """

    number: int
    first_row: int
    rows: Rows


def cut(chunks: Iterable[Rows], batch_size: int) -> Iterator[Batch]:
    """The batches; none has rows of two chunks.

    Raises:
        InvalidArgumentError: the inputs of a chunk have different lengths.
    """
    number = first = 0
    for chunk in chunks:
        count = len(chunk)
        for start in range(0, count, batch_size):
            part = chunk.part(start, min(start + batch_size, count))
            yield Batch(number, first + start, part)
            number += 1
        first += count


_NPY, _ONLY = b"\x93NUMPY", "the array"
_LOCAL_HEADER = 30
"""The bytes of a zip file's header of a member, before its name and its extra field."""
_HEADERS = {
    (1, 0): np.lib.format.read_array_header_1_0,
    (2, 0): np.lib.format.read_array_header_2_0,
}


@dataclass(frozen=True)
class FileRows:
    """The rows of one file from `start` to `stop`.

    Attributes:
        path: the file.
        start: the first row.
        stop: the row after the last.
    """

    path: str
    start: int
    stop: int
    are_separate = False

    def __len__(self) -> int:
        return self.stop - self.start

    def part(self, start: int, stop: int) -> Self:
        """Some of the rows."""
        return replace(self, start=self.start + start, stop=self.start + stop)


@dataclass(frozen=True)
class NumpyRows(FileRows):
    """The rows of an .npz file, or of an .npy file.

    Attributes:
        name: The input that the array of an .npy file is for.
    """

    name: str = ""

    def read(self) -> Mapping[str, Array]:
        """The arrays of the file, of these rows.

        Raises:
            DataLossError: the file is damaged.
        """
        with _opened(self.path) as (file, members):
            return {self.name or one.name: self._rows(file, one) for one in members}

    def _rows(self, file: IO[bytes], member: _Member) -> Array:
        if member.offset is None:
            stat = os.stat(self.path)
            loaded = _loaded(self.path, stat.st_mtime_ns, stat.st_size)
            return loaded[member.name][self.start : self.stop]
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


def numpy_rows(path: str, name: str = "") -> NumpyRows:
    """All rows of a file.

    Args:
        path: The file.
        name: The input that the array of an .npy file is for.

    Raises:
        DataLossError: the file is damaged.
        InvalidArgumentError: its arrays have different lengths.
    """
    with _opened(path) as (_, members):
        for one in members:
            if not one.shape:
                raise InvalidArgumentError(
                    f"Input {one.name!r} is a scalar; its first axis counts the rows"
                )
        rows = number_of_rows({one.name: one.shape[0] for one in members})
        return NumpyRows(path, 0, rows, name)


@dataclass(frozen=True)
class _Member:
    """An array of a file; `offset` is where its elements are, None where they are not there in C order."""

    name: str
    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    offset: int | None


def _member(name: str, array: IO[bytes]) -> _Member:
    """The array of a file that is at its beginning."""
    shape, is_fortran, dtype = _HEADERS[np.lib.format.read_magic(array)](array)
    if dtype.hasobject:
        raise ValueError(f"{name} has Python objects")
    return _Member(name, shape, dtype, None if is_fortran and len(shape) > 1 else array.tell())


def _member_of_archive(file: IO[bytes], archive: zipfile.ZipFile, info: zipfile.ZipInfo) -> _Member:
    with archive.open(info) as array:
        member = _member(info.filename.removesuffix(".npy"), array)
    if member.offset is None or info.compress_type != zipfile.ZIP_STORED:
        return replace(member, offset=None)
    file.seek(info.header_offset + _LOCAL_HEADER - 4)
    lengths = np.frombuffer(file.read(4), "<u2")  # of the name and of the extra field
    start = info.header_offset + _LOCAL_HEADER + int(lengths.sum())
    return replace(member, offset=start + member.offset)


@contextmanager
def _opened(path: str) -> Iterator[tuple[IO[bytes], list[_Member]]]:
    """The file and its members."""
    try:
        with open(path, "rb") as file:
            if file.read(len(_NPY)) == _NPY:
                file.seek(0)
                yield file, [_member(_ONLY, file)]
                return
            with zipfile.ZipFile(path) as archive:
                found = archive.infolist()
                yield file, [_member_of_archive(file, archive, one) for one in found]
    except OpError:
        raise
    except Exception as error:  # zipfile, zlib and NumPy have many for a damaged file
        raise DataLossError(f"Cannot read arrays from {path}: {error}") from error


@lru_cache(maxsize=1)
def _loaded(path: str, time_ns: int, size: int) -> dict[str, Array]:
    """All arrays of the file that this process reads; its time and size tell it from an earlier one."""
    loaded = np.load(path, allow_pickle=False)
    if isinstance(loaded, np.ndarray):
        return {_ONLY: loaded}
    with loaded:
        return {name: loaded[name] for name in loaded.files}


@dataclass(frozen=True)
class TableRows(FileRows):
    """The rows of a table.

    Attributes:
        columns: the columns that are read.
        step: how many rows are read at once.
    """

    columns: tuple[str, ...]
    step: int

    def read(self) -> Mapping[str, Array]:
        """The columns of these rows.

        Raises:
            UnimplementedError: pyarrow is not installed.
            DataLossError: the file is damaged.
            InvalidArgumentError: a value is missing.
        """
        stat = os.stat(self.path)
        with reading(self.path):
            table = _table(self.path, self.columns, self.step, stat.st_mtime_ns, stat.st_size)
            batch = table.rows(self.start, self.stop)
            return {name: _array(self.path, name, batch.column(name)) for name in self.columns}


def table_rows(
    path: str, inputs: Collection[str], required: Collection[str], step: int
) -> TableRows:
    """All rows of a file.

    Args:
        path: The file.
        inputs: The columns to read, as far as it has them.
        required: Those that it must have.
        step: How many rows to read at once.

    Raises:
        UnimplementedError: pyarrow is not installed.
        DataLossError: the file is damaged.
        InvalidArgumentError: it lacks a column.
    """
    parquet = _parquet(path)
    with reading(path), parquet.ParquetFile(path) as file:
        check_columns(path, file.schema_arrow.names, inputs, required)
        columns = tuple(name for name in file.schema_arrow.names if name in inputs)
        return TableRows(path, 0, file.metadata.num_rows, columns, step)


def _parquet(path: str) -> Any:
    return library("pyarrow.parquet", f"{path} is a Parquet file, which")


@contextmanager
def reading(path: str) -> Iterator[None]:
    """What a library raises in the block for a damaged file is a DataLossError.

    Errors of pyarrow, and of text that is not UTF-8, are also one of those caught here.
    """
    try:
        yield
    except OpError:
        raise
    except (OSError, ValueError, csv.Error) as error:
        raise DataLossError(f"Cannot read {path}: {error}") from error


class _Table:
    """A table that is read from its first row to its last, and anew for a row before."""

    def __init__(self, path: str, columns: tuple[str, ...], step: int) -> None:
        self._path, self._columns, self._step = path, columns, step
        self._rewind()

    def _rewind(self) -> None:
        file = _parquet(self._path).ParquetFile(self._path)
        self._next, self._batches = 0, file.iter_batches(self._step, columns=self._columns)

    def rows(self, start: int, stop: int) -> Any:
        """Rows that are read at once."""
        if start < self._next:
            self._rewind()
        for batch in self._batches:
            first, self._next = self._next, self._next + len(batch)
            if first == start and self._next >= stop:
                return batch.slice(0, stop - start)
        raise ValueError(f"its rows {start} to {stop} are not there")


@lru_cache(maxsize=1)
def _table(path: str, columns: tuple[str, ...], step: int, time_ns: int, size: int) -> _Table:
    """The table that this process reads; its time and size tell it from an earlier one."""
    return _Table(path, columns, step)


def forget_tables() -> None:
    """Give up what this process keeps of the files of arrays and tables that it has read."""
    _loaded.cache_clear()
    _table.cache_clear()


def _array(path: str, name: str, column: Any) -> Array:
    """A column; lists of one length become further axes."""
    if column.null_count:
        raise InvalidArgumentError(f"{path}: column {name!r} has rows without a value")
    try:
        return _stacked(column.to_numpy(zero_copy_only=False))
    except ValueError as error:
        raise InvalidArgumentError(
            f"{path}: column {name!r} has lists of different lengths"
        ) from error


def _stacked(value: Array) -> Array:
    """A list of lists as one array."""
    if value.dtype == object and len(value) and isinstance(value[0], np.ndarray):
        return np.stack([_stacked(one) for one in value])
    return value
